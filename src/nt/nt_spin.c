/* SPDX-License-Identifier: MIT */
/*
 * Spin locks. The low half of KSPIN_LOCK is a three-state futex (free, held, held with waiters),
 * the high half the owner. Unlike in a kernel, a holder can be preempted here, so a contender
 * sleeps after a short spin. On sim a lock is contended only if its holder yielded while holding
 * it.
 */
#include "nt/nt_verify.h"

#define SPINS 128

struct spin_lock {
	_Atomic uint32_t state, owner;
};
_Static_assert(sizeof(struct spin_lock) == sizeof(KSPIN_LOCK), "a KSPIN_LOCK holds both halves");

static bool try_acquire(_Atomic uint32_t *state)
{
	uint32_t free = 0;

	return atomic_load_explicit(state, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong_explicit(state, &free, 1, memory_order_acquire,
						       memory_order_relaxed);
}

static void acquire_contended(struct vmm_nt *nt, struct spin_lock *lock)
{
	_Atomic uint32_t *state = &lock->state;

	for (int i = 0; i < SPINS && vmm_os_kind(nt->os) == VMM_OS_LINUX; i++) {
		if (try_acquire(state))
			return;
	}
	while (atomic_exchange_explicit(state, 2, memory_order_acquire) != 0) {
		uint32_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);

		if (vmm_os_wait(nt->os, state, 2, VMM_OS_FOREVER, "spin lock held by thread",
				owner) == VMM_UNSUCCESSFUL)
			return; /* dead world: the holder never runs again */
	}
}

/* `slots` here and below: those of the calling thread. */
static void acquire(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK SpinLock,
		    const void *caller)
{
	struct spin_lock *lock = (struct spin_lock *)SpinLock;
	uint32_t self = nt_identity(nt, slots);

	if (vmm_unlikely(atomic_load_explicit(&lock->owner, memory_order_relaxed) == self)) {
		nt_violation(nt, "NT-04", service, "thread %u holds this spin lock already", self);
		return;
	}
	if (vmm_unlikely(nt->lock_order != NULL))
		nt_lock_order_take(nt, self, lock, caller);
	if (!try_acquire(&lock->state)) {
		slots[VMM_NT_SLOT_WAIT] = (uintptr_t)service;
		acquire_contended(nt, lock);
		slots[VMM_NT_SLOT_WAIT] = 0;
	}
	atomic_store_explicit(&lock->owner, self, memory_order_relaxed);
}

VMM_COLD static void not_at_dispatch(struct vmm_nt *nt, const uint64_t *slots, const char *service)
{
	nt_violation(nt, "NT-04", service, "%s called at IRQL %u, not at DISPATCH_LEVEL", service,
		     vmm_nt_irql_of(slots));
}

static bool release_held(struct vmm_nt *nt, uint64_t *slots, const char *service,
			 PKSPIN_LOCK SpinLock)
{
	struct spin_lock *lock = (struct spin_lock *)SpinLock;
	uint32_t owner = atomic_load_explicit(&lock->owner, memory_order_relaxed);

	/* Both are 0 if the thread has never taken a spin lock and the lock is free. */
	if (vmm_unlikely(owner != (uint32_t)slots[SLOT_IDENTITY] || !owner)) {
		nt_violation(nt, "NT-04", service,
			     "thread %u releases a spin lock held by %u (0: no thread)",
			     nt_identity(nt, slots), owner);
		return false;
	}
	if (vmm_unlikely(nt->lock_order != NULL))
		nt_lock_order_release(nt, owner, lock);
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
		vmm_os_wake(nt->os, &lock->state, 1);
	return true;
}

static bool release(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK SpinLock)
{
	if (vmm_unlikely(slots[VMM_NT_SLOT_IRQL] != DISPATCH_LEVEL))
		not_at_dispatch(nt, slots, service);
	return release_held(nt, slots, service, SpinLock);
}

void nt_spin_acquire(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock)
{
	acquire(nt, slots, service, lock, __builtin_return_address(0));
}

void nt_spin_release(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock)
{
	release_held(nt, slots, service, lock);
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint64_t before = slots[VMM_NT_SLOT_IRQL];

	if (vmm_unlikely(before > DISPATCH_LEVEL))
		nt_above_limit(nt, "KeAcquireSpinLock", DISPATCH_LEVEL);
	else
		slots[VMM_NT_SLOT_IRQL] = DISPATCH_LEVEL;
	acquire(nt, slots, "KeAcquireSpinLock", SpinLock, __builtin_return_address(0));
	return (KIRQL)before;
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (release(nt, slots, "KeReleaseSpinLock", SpinLock) && NewIrql != slots[VMM_NT_SLOT_IRQL])
		vmm_nt_lower_of(nt, slots, "vmm_nt_lower", NewIrql);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (vmm_unlikely(slots[VMM_NT_SLOT_IRQL] != DISPATCH_LEVEL))
		not_at_dispatch(nt, slots, "KeAcquireSpinLockAtDpcLevel");
	acquire(nt, slots, "KeAcquireSpinLockAtDpcLevel", SpinLock, __builtin_return_address(0));
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	release(nt, slots, "KeReleaseSpinLockFromDpcLevel", SpinLock);
}

BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
	struct spin_lock *lock = (struct spin_lock *)SpinLock;
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (vmm_unlikely(slots[VMM_NT_SLOT_IRQL] != DISPATCH_LEVEL))
		not_at_dispatch(nt, slots, "KeTryToAcquireSpinLockAtDpcLevel");
	if (!try_acquire(&lock->state)) {
		nt_polled(nt);
		return FALSE;
	}
	atomic_store_explicit(&lock->owner, nt_identity(nt, slots), memory_order_relaxed);
	/* A try cannot deadlock, but a lock that is taken while this one is held can. */
	if (vmm_unlikely(nt->lock_order != NULL))
		nt_lock_order_hold(nt, nt_identity(nt, slots), lock, __builtin_return_address(0));
	return TRUE;
}

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
	const struct spin_lock *lock = (const struct spin_lock *)SpinLock;

	nt_polled(vmm_nt_current());
	return (BOOLEAN)(atomic_load_explicit(&lock->state, memory_order_acquire) == 0);
}

VOID YieldProcessor(VOID)
{
	struct vmm_nt *nt = vmm_nt_current();

	vmm_os_yield(nt->os);
	nt_polled(nt);
}
