/* SPDX-License-Identifier: MIT */
/*
 * Spin locks. The low half of KSPIN_LOCK is a three-state futex (free, held, held with waiters),
 * the high half the owner. Unlike in a kernel, a holder can be preempted here, so a contender
 * sleeps after a short spin. On sim a lock is contended only if its holder yielded while holding
 * it.
 */
#include "nt/nt_internal.h"

#define SPINS 128

static _Atomic uint32_t *state_of(PKSPIN_LOCK lock)
{
	return (_Atomic uint32_t *)lock;
}

static _Atomic uint32_t *owner_of(PKSPIN_LOCK lock)
{
	return (_Atomic uint32_t *)lock + 1;
}

static bool try_acquire(_Atomic uint32_t *state)
{
	uint32_t free = 0;

	return atomic_load_explicit(state, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong_explicit(state, &free, 1, memory_order_acquire,
						       memory_order_relaxed);
}

static void acquire_contended(struct vmm_nt *nt, PKSPIN_LOCK lock)
{
	_Atomic uint32_t *state = state_of(lock);

	for (int i = 0; i < SPINS && vmm_os_kind(nt->os) == VMM_OS_LINUX; i++) {
		if (try_acquire(state))
			return;
	}
	while (atomic_exchange_explicit(state, 2, memory_order_acquire) != 0) {
		uint32_t owner = atomic_load_explicit(owner_of(lock), memory_order_relaxed);

		if (vmm_os_wait(nt->os, state, 2, VMM_OS_FOREVER, "spin lock held by thread",
				owner) == VMM_UNSUCCESSFUL)
			return; /* dead world: the holder never runs again */
	}
}

/* `slots` here and below: those of the calling thread. */
static void acquire(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock)
{
	uint32_t self = nt_identity(nt, slots);

	if (vmm_unlikely(atomic_load_explicit(owner_of(lock), memory_order_relaxed) == self)) {
		nt_violation(nt, "NT-04", service, "thread %u holds this spin lock already", self);
		return;
	}
	if (!try_acquire(state_of(lock)))
		acquire_contended(nt, lock);
	atomic_store_explicit(owner_of(lock), self, memory_order_relaxed);
}

static bool release(struct vmm_nt *nt, uint64_t *slots, const char *service, PKSPIN_LOCK lock)
{
	uint32_t self = nt_identity(nt, slots);
	uint32_t owner = atomic_load_explicit(owner_of(lock), memory_order_relaxed);

	if (vmm_unlikely(owner != self)) {
		nt_violation(nt, "NT-04", service,
			     "thread %u releases a spin lock held by %u (0: no thread)", self,
			     owner);
		return false;
	}
	atomic_store_explicit(owner_of(lock), 0, memory_order_relaxed);
	if (atomic_exchange_explicit(state_of(lock), 0, memory_order_release) == 2)
		vmm_os_wake(nt->os, state_of(lock), 1);
	return true;
}

static void need_dispatch(struct vmm_nt *nt, const uint64_t *slots, const char *service)
{
	uint32_t irql = (uint32_t)slots[SLOT_IRQL];

	if (vmm_unlikely(irql != DISPATCH_LEVEL))
		nt_violation(nt, "NT-04", service, "%s called at IRQL %u, not at DISPATCH_LEVEL",
			     service, irql);
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t *slots = vmm_os_own_slots(nt->os);
	uint64_t before = slots[SLOT_IRQL];

	if (vmm_unlikely(before > DISPATCH_LEVEL))
		nt_above_limit(nt, "KeAcquireSpinLock", DISPATCH_LEVEL);
	else
		slots[SLOT_IRQL] = DISPATCH_LEVEL;
	acquire(nt, slots, "KeAcquireSpinLock", SpinLock);
	return (KIRQL)before;
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t *slots = vmm_os_own_slots(nt->os);

	need_dispatch(nt, slots, "KeReleaseSpinLock");
	if (release(nt, slots, "KeReleaseSpinLock", SpinLock) && NewIrql != slots[SLOT_IRQL])
		vmm_nt_lower(nt, NewIrql);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t *slots = vmm_os_own_slots(nt->os);

	need_dispatch(nt, slots, "KeAcquireSpinLockAtDpcLevel");
	acquire(nt, slots, "KeAcquireSpinLockAtDpcLevel", SpinLock);
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
	struct vmm_nt *nt = vmm_nt_current();
	uint64_t *slots = vmm_os_own_slots(nt->os);

	need_dispatch(nt, slots, "KeReleaseSpinLockFromDpcLevel");
	release(nt, slots, "KeReleaseSpinLockFromDpcLevel", SpinLock);
}

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
	nt_polled(vmm_nt_current());
	return (BOOLEAN)(atomic_load_explicit(state_of(SpinLock), memory_order_acquire) == 0);
}

VOID YieldProcessor(VOID)
{
	struct vmm_nt *nt = vmm_nt_current();

	vmm_os_yield(nt->os);
	nt_polled(nt);
}
