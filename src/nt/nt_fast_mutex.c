/* SPDX-License-Identifier: MIT */
/*
 * Fast and guarded mutexes, push locks and shared spin locks: services around the lock word. A
 * thread that would deadlock with itself is reported, and goes on without the lock.
 */
#include "nt/nt_lock.h"

static nt_lock_word *word_of(void *lock)
{
	return lock;
}

/* Reports NT-14 if the caller holds the lock exclusively already. */
static bool is_recursive(struct vmm_nt *nt, const char *service, void *lock, uint32_t self)
{
	if (vmm_likely(nt_lock_owner(word_of(lock)) != self))
		return false;
	nt_violation(nt, "NT-14", service, "thread %u holds this lock already", self);
	return true;
}

static void not_held(struct vmm_nt *nt, const char *service, void *lock, uint32_t self)
{
	nt_violation(nt, "NT-14", service,
		     "thread %u releases a lock that it does not hold; the owner is %u (0: none)",
		     self, nt_lock_owner(word_of(lock)));
}

void nt_require_apcs_disabled(struct vmm_nt *nt, const char *service)
{
	if (vmm_unlikely(!KeAreApcsDisabled()))
		nt_violation(nt, "NT-14", service,
			     "the caller is neither at APC_LEVEL nor in a critical region");
}

/* ---- fast mutexes ---- */

VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex)
{
	*FastMutex = (FAST_MUTEX){0};
}

VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots), before = vmm_nt_irql_of(slots);

	nt_limit(nt, "ExAcquireFastMutex", APC_LEVEL);
	if (is_recursive(nt, "ExAcquireFastMutex", &FastMutex->Word, self))
		return;
	if (before < APC_LEVEL)
		vmm_nt_raise_of(nt, slots, "ExAcquireFastMutex", APC_LEVEL);
	nt_lock_exclusive(nt, "ExAcquireFastMutex", word_of(&FastMutex->Word), self);
	FastMutex->OldIrql = before;
}

BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots), before = vmm_nt_irql_of(slots);

	nt_limit(nt, "ExTryToAcquireFastMutex", APC_LEVEL);
	if (!nt_lock_try_exclusive(word_of(&FastMutex->Word), self)) {
		nt_polled(nt);
		return FALSE;
	}
	if (before < APC_LEVEL)
		vmm_nt_raise_of(nt, slots, "ExTryToAcquireFastMutex", APC_LEVEL);
	FastMutex->OldIrql = before;
	return TRUE;
}

VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots), old = FastMutex->OldIrql;

	if (vmm_nt_irql_of(slots) != APC_LEVEL)
		nt_violation(nt, "NT-14", "ExReleaseFastMutex",
			     "called at IRQL %u, the mutex was acquired at APC_LEVEL",
			     vmm_nt_irql_of(slots));
	if (!nt_unlock_exclusive(nt, word_of(&FastMutex->Word), self))
		not_held(nt, "ExReleaseFastMutex", &FastMutex->Word, self);
	else if (old < vmm_nt_irql_of(slots))
		vmm_nt_lower_of(nt, slots, "ExReleaseFastMutex", old);
}

/* Returns false if the caller holds the lock already. */
static bool acquire_unsafe(struct vmm_nt *nt, uint64_t *slots, const char *service, void *lock)
{
	uint32_t self = nt_identity(nt, slots);

	nt_limit(nt, service, APC_LEVEL);
	if (is_recursive(nt, service, lock, self))
		return false;
	nt_lock_exclusive(nt, service, word_of(lock), self);
	return true;
}

static bool release_unsafe(struct vmm_nt *nt, uint64_t *slots, const char *service, void *lock)
{
	uint32_t self = nt_identity(nt, slots);

	nt_limit(nt, service, APC_LEVEL);
	if (nt_unlock_exclusive(nt, word_of(lock), self))
		return true;
	not_held(nt, service, lock, self);
	return false;
}

VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_require_apcs_disabled(nt, "ExAcquireFastMutexUnsafe");
	acquire_unsafe(nt, slots, "ExAcquireFastMutexUnsafe", &FastMutex->Word);
}

VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	release_unsafe(nt, slots, "ExReleaseFastMutexUnsafe", &FastMutex->Word);
}

/* ---- guarded mutexes ---- */

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX Mutex)
{
	ExInitializeFastMutex(Mutex);
}

VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX Mutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	KeEnterGuardedRegion();
	if (!acquire_unsafe(nt, slots, "KeAcquireGuardedMutex", &Mutex->Word))
		KeLeaveGuardedRegion();
}

BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX Mutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_limit(nt, "KeTryToAcquireGuardedMutex", APC_LEVEL);
	if (!nt_lock_try_exclusive(word_of(&Mutex->Word), nt_identity(nt, slots))) {
		nt_polled(nt);
		return FALSE;
	}
	KeEnterGuardedRegion();
	return TRUE;
}

VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX Mutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (release_unsafe(nt, slots, "KeReleaseGuardedMutex", &Mutex->Word))
		KeLeaveGuardedRegion();
}

VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_require_apcs_disabled(nt, "KeAcquireGuardedMutexUnsafe");
	acquire_unsafe(nt, slots, "KeAcquireGuardedMutexUnsafe", &Mutex->Word);
}

VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	release_unsafe(nt, slots, "KeReleaseGuardedMutexUnsafe", &Mutex->Word);
}

/* ---- push locks ---- */

VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock)
{
	*PushLock = 0;
}

VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	(void)Flags;
	nt_require_apcs_disabled(nt, "ExAcquirePushLockExclusive");
	acquire_unsafe(nt, slots, "ExAcquirePushLockExclusive", PushLock);
}

VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	(void)Flags;
	release_unsafe(nt, slots, "ExReleasePushLockExclusive", PushLock);
}

VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	(void)Flags;
	nt_require_apcs_disabled(nt, "ExAcquirePushLockShared");
	nt_limit(nt, "ExAcquirePushLockShared", APC_LEVEL);
	if (!is_recursive(nt, "ExAcquirePushLockShared", PushLock, nt_identity(nt, slots)))
		nt_lock_shared(nt, "ExAcquirePushLockShared", word_of(PushLock));
}

VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	(void)Flags;
	nt_limit(nt, "ExReleasePushLockShared", APC_LEVEL);
	if (!nt_unlock_shared(nt, word_of(PushLock)))
		not_held(nt, "ExReleasePushLockShared", PushLock, nt_identity(nt, slots));
}

/* ---- shared spin locks ---- */

static void spin_exclusive(const char *service, PEX_SPIN_LOCK lock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots);

	if (!is_recursive(nt, service, (void *)(uintptr_t)lock, self))
		nt_lock_exclusive(nt, service, word_of((void *)(uintptr_t)lock), self);
}

static void spin_shared(const char *service, PEX_SPIN_LOCK lock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (!is_recursive(nt, service, (void *)(uintptr_t)lock, nt_identity(nt, slots)))
		nt_lock_shared(nt, service, word_of((void *)(uintptr_t)lock));
}

static bool spin_release(const char *service, PEX_SPIN_LOCK lock, bool shared)
{
	nt_lock_word *word = word_of((void *)(uintptr_t)lock);
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);
	uint32_t self = nt_identity(nt, slots);

	if (shared ? nt_unlock_shared(nt, word) : nt_unlock_exclusive(nt, word, self))
		return true;
	not_held(nt, service, word, self);
	return false;
}

/* Raises to DISPATCH_LEVEL; returns the level before. */
static KIRQL raise(const char *service)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_limit(nt, service, DISPATCH_LEVEL);
	if (vmm_nt_irql_of(slots) >= DISPATCH_LEVEL)
		return (KIRQL)vmm_nt_irql_of(slots);
	return (KIRQL)vmm_nt_raise_of(nt, slots, service, DISPATCH_LEVEL);
}

static void require_dispatch(const char *service)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	if (vmm_unlikely(vmm_nt_irql_of(slots) < DISPATCH_LEVEL))
		nt_violation(nt, "NT-04", service, "%s called at IRQL %u, below DISPATCH_LEVEL",
			     service, vmm_nt_irql_of(slots));
}

KIRQL ExAcquireSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
	KIRQL before = raise("ExAcquireSpinLockExclusive");

	spin_exclusive("ExAcquireSpinLockExclusive", SpinLock);
	return before;
}

VOID ExReleaseSpinLockExclusive(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
	if (spin_release("ExReleaseSpinLockExclusive", SpinLock, false))
		KeLowerIrql(OldIrql);
}

VOID ExAcquireSpinLockExclusiveAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
	require_dispatch("ExAcquireSpinLockExclusiveAtDpcLevel");
	spin_exclusive("ExAcquireSpinLockExclusiveAtDpcLevel", SpinLock);
}

VOID ExReleaseSpinLockExclusiveFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
	require_dispatch("ExReleaseSpinLockExclusiveFromDpcLevel");
	spin_release("ExReleaseSpinLockExclusiveFromDpcLevel", SpinLock, false);
}

KIRQL ExAcquireSpinLockShared(PEX_SPIN_LOCK SpinLock)
{
	KIRQL before = raise("ExAcquireSpinLockShared");

	spin_shared("ExAcquireSpinLockShared", SpinLock);
	return before;
}

VOID ExReleaseSpinLockShared(PEX_SPIN_LOCK SpinLock, KIRQL OldIrql)
{
	if (spin_release("ExReleaseSpinLockShared", SpinLock, true))
		KeLowerIrql(OldIrql);
}

VOID ExAcquireSpinLockSharedAtDpcLevel(PEX_SPIN_LOCK SpinLock)
{
	require_dispatch("ExAcquireSpinLockSharedAtDpcLevel");
	spin_shared("ExAcquireSpinLockSharedAtDpcLevel", SpinLock);
}

VOID ExReleaseSpinLockSharedFromDpcLevel(PEX_SPIN_LOCK SpinLock)
{
	require_dispatch("ExReleaseSpinLockSharedFromDpcLevel");
	spin_release("ExReleaseSpinLockSharedFromDpcLevel", SpinLock, true);
}

LONG ExTryConvertSharedSpinLockExclusive(PEX_SPIN_LOCK SpinLock)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	return nt_lock_upgrade(word_of((void *)(uintptr_t)SpinLock), nt_identity(nt, slots));
}
