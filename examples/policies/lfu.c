/* SPDX-License-Identifier: MIT */
/*
 * An eviction policy of one's own: least frequently used, with aging. The allocation whose count of
 * uses is lowest is evicted, of equal ones the least recently used. When an allocation is used, its
 * count is first halved for each 256 submissions since its last use.
 *
 * Build and use (docs/policies.md):
 *
 *	cc -shared -fPIC -O2 $(pkg-config --cflags vidmm) -o lfu.so lfu.c
 *	vidmm replay --policy ./lfu.so --vram 50% RECORDING
 */
#include <vidmm/policy.h>

#define USE       256u /* what a use adds, so that an aged count has a fraction */
#define HALF_LIFE 256u /* submissions */

/* All 0 at first. */
struct state {
	uint64_t last; /* submission of the last use */
	uint64_t count;
};

const struct vidmm_policy_description *vidmm_policy_describe(void)
{
	static const struct vidmm_policy_description description = {
		.struct_size = sizeof(description),
		.version = VIDMM_POLICY_VERSION,
		.name = "lfu",
		.state_bytes = sizeof(struct state),
	};

	return &description;
}

void vidmm_policy_used(void *state, const struct vidmm_policy_use *use)
{
	struct state *s = state;
	uint64_t halvings = (use->submission - s->last) / HALF_LIFE;

	s->count = halvings < 64 ? s->count >> halvings : 0;
	s->count += USE;
	s->last = use->submission;
}

/* The count changes only with a use, so the order is kept: no VIDMM_POLICY_VALUES_FALL. */
uint64_t vidmm_policy_value(void *state, const struct vidmm_policy_candidate *candidate)
{
	const struct state *s = state;

	(void)candidate;
	return s->count;
}
