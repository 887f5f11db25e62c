/* SPDX-License-Identifier: MIT */
/*
 * Implements the decisions of policy.h:
 * - the eviction class of an allocation, from its offer and its priority (PRI-01, OFR-04);
 * - whether a candidate may be evicted (PAG-02);
 * - whether a discard lock may make another instance (REN-02, REN-07, REN-08).
 */
#include "policy/policy.h"

/* D3DDDI_OFFER_PRIORITY */
enum { OFFER_NONE = 0, OFFER_LOW = 1, OFFER_NORMAL = 2, OFFER_HIGH = 3, OFFER_AUTO = 4 };

/*
 * PRI-01 names five priorities and allows any value between. A value between two belongs to the
 * lower one: it was not raised to the upper, and 0x78000001 must not be treated as high.
 */
static enum vmm_policy_class priority_band(uint32_t priority)
{
	if (priority >= 0xC8000000)
		return VMM_POLICY_PRIORITY_MAXIMUM;
	if (priority >= 0xA0000000)
		return VMM_POLICY_PRIORITY_HIGH;
	if (priority >= 0x78000000)
		return VMM_POLICY_PRIORITY_NORMAL;
	if (priority >= 0x50000000)
		return VMM_POLICY_PRIORITY_LOW;
	return VMM_POLICY_PRIORITY_MINIMUM;
}

enum vmm_policy_class vmm_policy_class(uint32_t offer, uint32_t priority)
{
	enum vmm_policy_class band = priority_band(priority);

	switch (offer) {
	case OFFER_NONE:
		return band;
	case OFFER_LOW:
		return VMM_POLICY_OFFERED_LOW;
	case OFFER_NORMAL:
		return VMM_POLICY_OFFERED_NORMAL;
	case OFFER_HIGH:
		return VMM_POLICY_OFFERED_HIGH;
	default:
		vmm_assert(offer == OFFER_AUTO); /* doors refuse all other values (OFR-03) */
	}
	/* OFR-04: AUTO ranks among the offered by the priority that the allocation has anyway. */
	if (band < VMM_POLICY_PRIORITY_NORMAL)
		return VMM_POLICY_OFFERED_LOW;
	return band == VMM_POLICY_PRIORITY_NORMAL ? VMM_POLICY_OFFERED_NORMAL
						  : VMM_POLICY_OFFERED_HIGH;
}

/*
 * Candidates come in order of class and LRU, so each one that may be evicted is. A candidate
 * smaller than the request is evicted as well: it may join a hole beside it, and least recent use
 * is a better criterion than size.
 */
bool vmm_policy_take(const struct vmm_policy_victim *victim, const struct vmm_policy_need *need)
{
	if (victim->busy || victim->pinned || victim->required || !victim->size_bytes)
		return false;
	return !victim->locked || need->locked_allowed;
}

/*
 * Small buffers (constants, vertices of one draw) are discarded many times a frame; a few of them
 * cost less than one stall, even when memory is short. A rule of thumb: docs/policies.md has what
 * it decides.
 */
#define RENAME_SMALL_BYTES ((uint64_t)256 << 10)
/*
 * The current instance is never handed out again (REN-02), so there must be a second one to wait
 * for.
 */
#define RENAME_WAITABLE    2u

bool vmm_policy_rename_grow(uint32_t instances, uint32_t limit, uint64_t instance_bytes,
			    bool pressure)
{
	uint64_t total_bytes;

	if (limit && instances >= limit) /* REN-07; 0 is no limit (REN-08) */
		return false;
	if (!pressure || instances < RENAME_WAITABLE)
		return true;
	return !vmm_mul_overflows(instance_bytes, (uint64_t)instances + 1, &total_bytes) &&
	       total_bytes <= RENAME_SMALL_BYTES;
}
