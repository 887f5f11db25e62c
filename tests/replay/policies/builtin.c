/* SPDX-License-Identifier: MIT */
/*
 * The policies of vidmm as shared objects. POLICY: LRU, CLOCK, MRU or PREDICTED. Each must
 * choose the victims that vidmm's policy of this name does.
 */
#include <vidmm/policy.h>

#define LRU       0
#define CLOCK     1
#define MRU       2
#define PREDICTED 3

#if POLICY == CLOCK
/* turn: order of arrival, or of the last time it was spared. */
struct state {
	uint64_t turn;
};
#define NAME  "own-clock"
#define BYTES sizeof(struct state)
#define FLAGS 0
static uint64_t value(void *state, const struct vidmm_policy_candidate *c)
{
	struct state *s = state;

	if (s->turn < c->arrived)
		s->turn = c->arrived;
	if (c->leaving && c->used > s->turn)
		s->turn = c->now;
	return s->turn;
}
#elif POLICY == PREDICTED
#define NAME  "own-predicted"
#define BYTES 0
#define FLAGS (VIDMM_POLICY_VALUES_FALL | VIDMM_POLICY_SCATTERS)
/* As Q-301 says it, without remembering the prediction. */
static uint64_t distance(const struct vidmm_policy_candidate *c)
{
	uint64_t idle = c->submission - c->last_submission, longest = 0, median = 0;
	uint32_t longer = 0;

	for (uint32_t i = 0; i < c->interval_count; i++) {
		longest = c->intervals[i] > longest ? c->intervals[i] : longest;
		longer += c->intervals[i] > idle;
	}
	if (!c->interval_count)
		return idle;
	if (!longer)
		return idle < 2 * longest ? 1 : UINT64_MAX;
	for (uint32_t i = 0; i < c->interval_count && !median; i++) {
		uint32_t below = 0, upto = 0, wanted = (longer - 1) / 2;

		for (uint32_t k = 0; k < c->interval_count; k++) {
			below += c->intervals[k] > idle && c->intervals[k] < c->intervals[i];
			upto += c->intervals[k] > idle && c->intervals[k] <= c->intervals[i];
		}
		if (c->intervals[i] > idle && below <= wanted && wanted < upto)
			median = c->intervals[i];
	}
	return median - idle;
}
static uint64_t value(void *state, const struct vidmm_policy_candidate *c)
{
	(void)state;
	return ~distance(c);
}
#else
#define NAME  POLICY == LRU ? "own-lru" : "own-mru"
#define BYTES 0
#define FLAGS 0
static uint64_t value(void *state, const struct vidmm_policy_candidate *c)
{
	(void)state;
	return POLICY == LRU ? c->used : ~c->used;
}
#endif

const struct vidmm_policy_description *vidmm_policy_describe(void)
{
	static const struct vidmm_policy_description d = {
		.struct_size = sizeof(d),
		.version = VIDMM_POLICY_VERSION,
		.name = NAME,
		.state_bytes = BYTES,
		.flags = FLAGS,
	};

	return &d;
}

void vidmm_policy_used(void *state, const struct vidmm_policy_use *use)
{
	(void)state;
	(void)use;
}

uint64_t vidmm_policy_value(void *state, const struct vidmm_policy_candidate *candidate)
{
	return value(state, candidate);
}
