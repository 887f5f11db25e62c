/* SPDX-License-Identifier: MIT */
/*
 * Finds few steps that still fail: it leaves out half of the steps, a quarter, and so on down to
 * single ones, and keeps each list that breaks the same rule.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct search {
	struct sim_plan plan;
	const struct sim_result *failure;
	struct sim_result *trial; /* of the last run */
	struct sim_step *steps, *fewer;
	uint64_t count, runs;
};

static bool fails_alike(struct search *s, uint64_t count)
{
	s->plan.steps = s->fewer;
	s->plan.count = count;
	s->runs++;
	return sim_run(&s->plan, s->trial) && s->trial->failed &&
	       strcmp(s->trial->rule, s->failure->rule) == 0;
}

/* Steps behind the one that failed are of no use. */
static void keep(struct search *s, uint64_t count)
{
	s->count = s->trial->step + 1 < count ? s->trial->step + 1 : count;
	memcpy(s->steps, s->fewer, s->count * sizeof(s->steps[0]));
}

/* Tries to leave out each part of that many steps. Returns whether any could be left out. */
static bool leave_out(struct search *s, uint64_t part)
{
	uint64_t at = 0;
	bool any = false;

	while (at < s->count && s->count > 1) {
		uint64_t end = at + part < s->count ? at + part : s->count,
			 left = s->count - (end - at);

		memcpy(s->fewer, s->steps, at * sizeof(s->steps[0]));
		memcpy(s->fewer + at, s->steps + end, (s->count - end) * sizeof(s->steps[0]));
		if (left && fails_alike(s, left)) {
			keep(s, left);
			any = true;
		} else {
			at = end;
		}
	}
	return any;
}

bool sim_minimise(const struct sim_plan *plan, const struct sim_result *failure,
		  struct sim_step *steps, uint64_t *count, uint64_t *runs)
{
	struct search s = {.plan = *plan,
			   .failure = failure,
			   .trial = sim_result_create(),
			   .steps = steps,
			   .fewer = calloc(*count, sizeof(*steps)),
			   .count = *count};
	bool good = s.trial && s.fewer;

	s.plan.quiet = true;
	s.plan.record = NULL;
	if (good && failure->step + 1 < s.count)
		s.count = failure->step + 1;
	for (uint64_t part = s.count / 2 ? s.count / 2 : 1; good; part /= 2) {
		bool any = leave_out(&s, part);

		if (part == 1 && !any)
			break;
		if (part == 1)
			part = 2; /* once more: a step may have become superfluous */
	}
	*count = s.count;
	*runs = s.runs;
	sim_result_destroy(s.trial);
	free(s.fewer);
	return good;
}
