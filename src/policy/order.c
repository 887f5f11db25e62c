/* SPDX-License-Identifier: MIT */
/* Implements order.h: the table of policies, and the prediction of the next use. */
#include "policy/order.h"

#include <string.h>

static const struct vmm_policy_order orders[] = {
	[VMM_POLICY_LRU] = {"lru", VMM_POLICY_LEAST_RECENT, false, false, false},
	[VMM_POLICY_CLOCK] = {"clock", VMM_POLICY_SECOND_CHANCE, false, false, false},
	[VMM_POLICY_MRU] = {"mru", VMM_POLICY_MOST_RECENT, false, false, false},
	[VMM_POLICY_PREDICTED] = {"predicted", VMM_POLICY_FARTHEST, true, true, true},
	[VMM_POLICY_RANKED] = {"ranked", VMM_POLICY_FARTHEST, true, true, false},
	/* Whether they scatter is in their description. */
	[VMM_POLICY_VALUED] = {"valued", VMM_POLICY_LEAST_VALUE, true, false, false},
	[VMM_POLICY_FALLING] = {"falling", VMM_POLICY_FARTHEST, true, false, false},
};

/* `expected` of a candidate that has been idle for its longest interval, or longer. */
#define OVERDUE UINT32_MAX

const struct vmm_policy_order *vmm_policy_order(enum vmm_policy_name name)
{
	vmm_assert(name < VMM_ARRAY_LENGTH(orders));
	return &orders[name];
}

static void set_last(struct vmm_policy_uses *uses, uint64_t submission)
{
	uses->last = submission;
	uses->expected = uses->valid_to = 0; /* idle is above 0 when they are read */
}

void vmm_policy_use(struct vmm_policy_uses *uses, uint64_t submission)
{
	uint64_t interval = submission - uses->last;

	if (submission <= uses->last)
		return;
	if (uses->last) {
		memmove(&uses->interval[1], &uses->interval[0],
			sizeof(uses->interval) - sizeof(uses->interval[0]));
		uses->interval[0] = (uint16_t)vmm_min_u64(interval, VMM_POLICY_INTERVAL_MAX);
		uses->count = (uint8_t)vmm_min_u32(uses->count + 1u, VMM_POLICY_INTERVALS);
	}
	set_last(uses, submission);
}

void vmm_policy_missed(struct vmm_policy_uses *uses, uint64_t submission)
{
	if (submission > uses->last)
		set_last(uses, submission);
}

/* Whether the shorter one is at least half as long as the other. */
static bool are_alike(uint32_t one, uint32_t other)
{
	return 2 * one >= other && 2 * other >= one;
}

/* Whether the CONTEXT intervals before interval I are like the last ones. */
static bool has_context(const struct vmm_policy_uses *uses, uint32_t i, uint32_t context)
{
	for (uint32_t k = 0; k < context; k++)
		if (i + 1 + k >= uses->count ||
		    !are_alike(uses->interval[i + 1 + k], uses->interval[k]))
			return false;
	return true;
}

/*
 * Returns the number of intervals that are longer than IDLE and have the context; SORTED gets them.
 * Intervals as long as the idle time are over: the candidate would be used by this submission, and
 * what that uses is no candidate. An insertion sort of at most 16 numbers: the intervals of a
 * periodic candidate are few different numbers, so most are in place.
 */
static uint32_t collect(const struct vmm_policy_uses *uses, uint64_t idle, uint32_t context,
			uint16_t sorted[VMM_POLICY_INTERVALS])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < uses->count; i++) {
		uint16_t interval = uses->interval[i];
		uint32_t at = count;

		if (interval <= idle || !has_context(uses, i, context))
			continue;
		for (; at && sorted[at - 1] > interval; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = interval;
		count++;
	}
	return count;
}

static uint32_t longest_interval(const struct vmm_policy_uses *uses)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < uses->count; i++)
		if (uses->interval[i] > longest)
			longest = uses->interval[i];
	return longest;
}

/*
 * Sets expected and valid_to by partial matching, with the longest context for which there are
 * intervals. Of an even number of intervals the lower of the two middle ones counts. Until the idle
 * time reaches the shortest of these intervals, the context and the median stay the same.
 */
static void predict(struct vmm_policy_uses *uses, uint64_t idle)
{
	uint16_t sorted[VMM_POLICY_INTERVALS];
	uint32_t count = 0, context = VMM_POLICY_CONTEXT + 1;

	while (!count && context)
		count = collect(uses, idle, --context, sorted);
	uses->expected = count ? sorted[(count - 1) / 2] : OVERDUE;
	uses->valid_to = count ? sorted[0] : 2 * longest_interval(uses);
}

uint64_t vmm_policy_distance(struct vmm_policy_uses *uses, uint64_t now)
{
	uint64_t idle = now > uses->last ? now - uses->last : 0;

	if (!uses->count)
		return idle;
	if (!uses->expected || (uses->expected != OVERDUE && idle >= uses->valid_to))
		predict(uses, idle);
	if (uses->expected != OVERDUE)
		return uses->expected - idle;
	return idle < uses->valid_to ? 1 : VMM_POLICY_DEAD;
}
