/* SPDX-License-Identifier: MIT */
/*
 * Critical and guarded regions: counts in the upper half of the thread's identity slot. There are
 * no APCs that they would hold off; services that require a region check the counts.
 */
#include "nt/nt_internal.h"

#define CRITICAL_SHIFT 32u
#define GUARDED_SHIFT  48u

static uint32_t count_of(const uint64_t *slots, unsigned shift)
{
	return (uint32_t)(slots[SLOT_IDENTITY] >> shift) & 0xFFFF;
}

static void enter(const char *service, unsigned shift)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_limit(nt, service, APC_LEVEL);
	nt_identity(nt, slots);
	if (count_of(slots, shift) < 0xFFFF)
		slots[SLOT_IDENTITY] += (uint64_t)1 << shift;
}

static void leave(const char *service, unsigned shift)
{
	uint64_t *slots;
	struct vmm_nt *nt = nt_caller(&slots);

	nt_limit(nt, service, APC_LEVEL);
	if (count_of(slots, shift))
		slots[SLOT_IDENTITY] -= (uint64_t)1 << shift;
	else
		nt_violation(nt, "NT-14", service, "the thread is in no such region");
}

VOID KeEnterCriticalRegion(VOID)
{
	enter("KeEnterCriticalRegion", CRITICAL_SHIFT);
}

VOID KeLeaveCriticalRegion(VOID)
{
	leave("KeLeaveCriticalRegion", CRITICAL_SHIFT);
}

VOID KeEnterGuardedRegion(VOID)
{
	enter("KeEnterGuardedRegion", GUARDED_SHIFT);
}

VOID KeLeaveGuardedRegion(VOID)
{
	leave("KeLeaveGuardedRegion", GUARDED_SHIFT);
}

BOOLEAN KeAreAllApcsDisabled(VOID)
{
	uint64_t *slots;

	nt_caller(&slots);
	return (BOOLEAN)(vmm_nt_irql_of(slots) >= APC_LEVEL || count_of(slots, GUARDED_SHIFT));
}

BOOLEAN KeAreApcsDisabled(VOID)
{
	uint64_t *slots;

	nt_caller(&slots);
	return (BOOLEAN)(KeAreAllApcsDisabled() || count_of(slots, CRITICAL_SHIFT));
}
