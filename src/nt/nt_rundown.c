/* SPDX-License-Identifier: MIT */
/*
 * Remove locks and rundown protection: counts of uses, and a wait for the last one. The count of a
 * rundown reference is in units of two; bit 0 says that it ends.
 */
#include "nt/nt_internal.h"

/* ---- remove locks ---- */

VOID IoInitializeRemoveLockEx(PIO_REMOVE_LOCK Lock, ULONG AllocateTag, ULONG MaxLockedMinutes,
			      ULONG HighWatermark, ULONG RemlockSize)
{
	(void)AllocateTag, (void)MaxLockedMinutes, (void)HighWatermark, (void)RemlockSize;
	nt_limit(vmm_nt_current(), "IoInitializeRemoveLock", PASSIVE_LEVEL);
	*Lock = (IO_REMOVE_LOCK){.Common = {.IoCount = 1}};
	KeInitializeEvent(&Lock->Common.RemoveEvent, SynchronizationEvent, FALSE);
}

static bool is_removed(const IO_REMOVE_LOCK *lock)
{
	return __atomic_load_n(&lock->Common.Removed, __ATOMIC_SEQ_CST);
}

static void release(struct vmm_nt *nt, const char *service, PIO_REMOVE_LOCK lock)
{
	LONG left = InterlockedDecrement(&lock->Common.IoCount);

	if (left < (is_removed(lock) ? 0 : 1)) {
		InterlockedIncrement(&lock->Common.IoCount);
		nt_violation(nt, "NT-15", service,
			     "the remove lock is released more often than it was acquired");
	} else if (left == 0) {
		KeSetEvent(&lock->Common.RemoveEvent, IO_NO_INCREMENT, FALSE);
	}
}

NTSTATUS IoAcquireRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, PCSTR File, ULONG Line,
			       ULONG RemlockSize)
{
	struct vmm_nt *nt = vmm_nt_current();

	(void)Tag, (void)File, (void)Line, (void)RemlockSize;
	nt_limit(nt, "IoAcquireRemoveLock", DISPATCH_LEVEL);
	InterlockedIncrement(&RemoveLock->Common.IoCount);
	if (!is_removed(RemoveLock))
		return STATUS_SUCCESS;
	release(nt, "IoAcquireRemoveLock", RemoveLock);
	return STATUS_DELETE_PENDING;
}

VOID IoReleaseRemoveLockEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize)
{
	struct vmm_nt *nt = vmm_nt_current();

	(void)Tag, (void)RemlockSize;
	nt_limit(nt, "IoReleaseRemoveLock", DISPATCH_LEVEL);
	release(nt, "IoReleaseRemoveLock", RemoveLock);
}

VOID IoReleaseRemoveLockAndWaitEx(PIO_REMOVE_LOCK RemoveLock, PVOID Tag, ULONG RemlockSize)
{
	struct vmm_nt *nt = vmm_nt_current();
	LONG uses = __atomic_load_n(&RemoveLock->Common.IoCount, __ATOMIC_SEQ_CST);

	(void)Tag, (void)RemlockSize;
	nt_limit(nt, "IoReleaseRemoveLockAndWait", PASSIVE_LEVEL);
	if (is_removed(RemoveLock) || uses < 2) {
		nt_violation(nt, "NT-15", "IoReleaseRemoveLockAndWait",
			     is_removed(RemoveLock) ? "called a second time"
						    : "the caller has not acquired the lock");
		return;
	}
	__atomic_store_n(&RemoveLock->Common.Removed, (BOOLEAN)TRUE, __ATOMIC_SEQ_CST);
	/* The use of the caller, and that of IoInitializeRemoveLock. */
	InterlockedDecrement(&RemoveLock->Common.IoCount);
	if (InterlockedDecrement(&RemoveLock->Common.IoCount) > 0)
		KeWaitForSingleObject(&RemoveLock->Common.RemoveEvent, Executive, KernelMode, FALSE,
				      NULL);
}

/* ---- rundown protection ---- */

static _Atomic ULONG_PTR *count_of(PEX_RUNDOWN_REF reference)
{
	return (_Atomic ULONG_PTR *)&reference->Count;
}

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
	atomic_store(count_of(RunRef), 0);
}

VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
	struct vmm_nt *nt = vmm_nt_current();

	if (atomic_load(count_of(RunRef)) != 1)
		nt_violation(nt, "NT-15", "ExReInitializeRundownProtection",
			     "the rundown is not complete (state 0x%llx)",
			     (unsigned long long)atomic_load(count_of(RunRef)));
	else
		atomic_store(count_of(RunRef), 0);
}

VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef)
{
	atomic_store(count_of(RunRef), 1);
}

BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
	ULONG_PTR before = atomic_load(count_of(RunRef));

	nt_limit(vmm_nt_current(), "ExAcquireRundownProtection", DISPATCH_LEVEL);
	do {
		if (before & 1)
			return FALSE;
	} while (!atomic_compare_exchange_weak(count_of(RunRef), &before,
					       before + 2 * (ULONG_PTR)Count));
	return TRUE;
}

BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef)
{
	return ExAcquireRundownProtectionEx(RunRef, 1);
}

VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
	ULONG_PTR before = atomic_load(count_of(RunRef)), taken = 2 * (ULONG_PTR)Count;
	struct vmm_nt *nt = vmm_nt_current();

	nt_limit(nt, "ExReleaseRundownProtection", DISPATCH_LEVEL);
	do {
		if (before < taken) {
			nt_violation(nt, "NT-15", "ExReleaseRundownProtection",
				     "released %u times, acquired %llu times", Count,
				     (unsigned long long)(before / 2));
			return;
		}
	} while (!atomic_compare_exchange_weak(count_of(RunRef), &before, before - taken));
	if (before - taken == 1)
		vmm_os_wake(nt->os, (_Atomic uint32_t *)&RunRef->Count, UINT32_MAX);
}

VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef)
{
	ExReleaseRundownProtectionEx(RunRef, 1);
}

VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	ULONG_PTR now;

	nt_limit(nt, "ExWaitForRundownProtectionRelease", APC_LEVEL);
	atomic_fetch_or(count_of(RunRef), 1);
	while ((now = atomic_load(count_of(RunRef))) != 1) {
		vmm_status status;

		/* The lower half of the count is the word; it is little-endian. */
		slots[VMM_NT_SLOT_WAIT] = (uintptr_t) "ExWaitForRundownProtectionRelease";
		status = vmm_os_wait(nt->os, (_Atomic uint32_t *)&RunRef->Count, (uint32_t)now,
				     VMM_OS_FOREVER, "rundown", now / 2);
		slots[VMM_NT_SLOT_WAIT] = 0;
		if (status == VMM_UNSUCCESSFUL)
			return; /* dead world */
	}
}
