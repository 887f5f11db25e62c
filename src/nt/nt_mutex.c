/* SPDX-License-Identifier: MIT */
/* Mutexes and semaphores; waiting for them is in nt_wait.c. Guarded by the dispatcher lock. */
#include "nt/nt_internal.h"

VOID KeInitializeMutex(PRKMUTEX Mutex, ULONG Level)
{
	(void)Level;
	*Mutex = (KMUTEX){.Owner = 0};
	nt_header_init(&Mutex->Header, OBJECT_MUTEX, true);
}

LONG KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN Wait)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots), owner;
	_Atomic uint32_t *waiter = NULL;
	LONG before;

	nt_limit(nt, "KeReleaseMutex", Wait ? APC_LEVEL : DISPATCH_LEVEL);
	if (!nt_header_valid(nt, "KeReleaseMutex", &Mutex->Header, OBJECT_MUTEX, OBJECT_MUTEX))
		return 0;
	nt_dispatcher_lock(nt);
	before = Mutex->Header.SignalState;
	owner = Mutex->Owner;
	if (owner == self && before < 0) {
		Mutex->Header.SignalState++;
	} else if (owner == self) {
		Mutex->Owner = 0;
		waiter = nt_signal_locked(nt, &Mutex->Header);
	}
	nt_dispatcher_unlock_and_wake(nt, waiter);
	if (owner != self)
		nt_violation(nt, "NT-14", "KeReleaseMutex",
			     "thread %u releases a mutex that it does not hold; the owner is %u "
			     "(0: none)",
			     self, owner);
	return before;
}

LONG KeReadStateMutex(PRKMUTEX Mutex)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG state;

	nt_limit(nt, "KeReadStateMutex", DISPATCH_LEVEL);
	if (!nt_header_valid(nt, "KeReadStateMutex", &Mutex->Header, OBJECT_MUTEX, OBJECT_MUTEX))
		return 0;
	nt_dispatcher_lock(nt);
	state = Mutex->Header.SignalState;
	nt_dispatcher_unlock(nt);
	nt_polled(nt);
	return state;
}

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
	struct vmm_nt *nt = vmm_nt_current();

	if (Count < 0 || Limit < 1 || Count > Limit)
		nt_violation(nt, "NT-07", "KeInitializeSemaphore", "count %d, limit %d", Count,
			     Limit);
	*Semaphore = (KSEMAPHORE){.Limit = Limit};
	nt_header_init(&Semaphore->Header, OBJECT_SEMAPHORE, false);
	Semaphore->Header.SignalState = Count;
}

LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait)
{
	struct vmm_nt *nt = vmm_nt_current();
	_Atomic uint32_t *waiter = NULL;
	bool fits;
	LONG before;

	(void)Increment;
	nt_limit(nt, "KeReleaseSemaphore", Wait ? PASSIVE_LEVEL : DISPATCH_LEVEL);
	if (!nt_header_valid(nt, "KeReleaseSemaphore", &Semaphore->Header, OBJECT_SEMAPHORE,
			     OBJECT_SEMAPHORE))
		return 0;
	nt_dispatcher_lock(nt);
	before = Semaphore->Header.SignalState;
	fits = Adjustment > 0 && Adjustment <= Semaphore->Limit - before;
	if (fits) {
		Semaphore->Header.SignalState += Adjustment;
		waiter = nt_satisfy_locked(nt, &Semaphore->Header);
	}
	nt_dispatcher_unlock_and_wake(nt, waiter);
	if (!fits)
		nt_violation(nt, "NT-14", "KeReleaseSemaphore",
			     "released %d times at count %d, the limit is %d; the count does not "
			     "change",
			     Adjustment, before, Semaphore->Limit);
	return before;
}

LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG state;

	if (!nt_header_valid(nt, "KeReadStateSemaphore", &Semaphore->Header, OBJECT_SEMAPHORE,
			     OBJECT_SEMAPHORE))
		return 0;
	nt_dispatcher_lock(nt);
	state = Semaphore->Header.SignalState;
	nt_dispatcher_unlock(nt);
	nt_polled(nt);
	return state;
}
