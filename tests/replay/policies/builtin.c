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
/* Whether interval I is longer than IDLE and followed LENGTH intervals like the last ones. */
static bool counts(const struct vidmm_policy_candidate *c, uint32_t i, uint64_t idle,
		   uint32_t length)
{
	if (c->intervals[i] <= idle || i + length >= c->interval_count)
		return false;
	for (uint32_t k = 0; k < length; k++) {
		uint32_t one = c->intervals[i + 1 + k], other = c->intervals[k];

		if (2 * one < other || 2 * other < one)
			return false;
	}
	return true;
}

/* The lower median of the intervals that count; 0: none does. */
static uint64_t median(const struct vidmm_policy_candidate *c, uint64_t idle, uint32_t length)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < c->interval_count; i++)
		found += counts(c, i, idle, length);
	for (uint32_t i = 0; i < c->interval_count && found; i++) {
		uint32_t below = 0, upto = 0, wanted = (found - 1) / 2;

		for (uint32_t k = 0; k < c->interval_count; k++) {
			below += counts(c, k, idle, length) && c->intervals[k] < c->intervals[i];
			upto += counts(c, k, idle, length) && c->intervals[k] <= c->intervals[i];
		}
		if (counts(c, i, idle, length) && below <= wanted && wanted < upto)
			return c->intervals[i];
	}
	return 0;
}

/* As Q-301 says it, without remembering the prediction. */
static uint64_t distance(const struct vidmm_policy_candidate *c)
{
	uint64_t idle = c->submission - c->last_submission, longest = 0;

	if (!c->interval_count)
		return idle;
	for (uint32_t length = 3; length--;) {
		uint64_t expected = median(c, idle, length);

		if (expected)
			return expected - idle;
	}
	for (uint32_t i = 0; i < c->interval_count; i++)
		longest = c->intervals[i] > longest ? c->intervals[i] : longest;
	return idle < 2 * longest ? 1 : UINT64_MAX;
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
