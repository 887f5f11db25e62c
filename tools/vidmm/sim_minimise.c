/* SPDX-License-Identifier: MIT */
/*
 * Finds few steps that still fail (sim_search.h). Most steps of a long run do not matter, so the
 * first candidates are its last steps, and the steps without those that were skipped. Then parts of
 * the steps are left out, from halves down to single steps.
 */
#include <stdlib.h>
#include <string.h>

#include "sim_search.h"

/* The runs of one process have candidates of one kind. */
struct series {
	struct sim_search *search;
	sim_candidate_fn *candidate;
};

static enum sim_next make(struct sim_search *s, sim_candidate_fn *candidate, uint64_t index)
{
	memcpy(s->fewer, s->steps, s->count * sizeof(s->steps[0]));
	s->fewer_count = s->count;
	s->setup = s->plan.setup;
	enum sim_next which = candidate(s, index);
	return which == SIM_RUN && !s->fewer_count ? SIM_NO_RUN : which;
}

static enum sim_next next(void *context, uint64_t index, struct sim_plan *plan)
{
	const struct series *series = context;
	struct sim_search *s = series->search;
	enum sim_next which = make(s, series->candidate, index);

	*plan = s->plan;
	plan->setup = s->setup;
	plan->steps = s->fewer;
	plan->count = s->fewer_count;
	return which;
}

static bool fails_alike(const struct sim_search *s)
{
	return s->trial->failed && strcmp(s->trial->rule, s->rule) == 0;
}

/* Returns false if there is no candidate *index. */
static bool try_alone(struct sim_search *s, struct series *series, uint64_t index)
{
	struct sim_plan plan;
	enum sim_next which = next(series, index, &plan);

	s->trial->failed = false;
	s->trial->run = index;
	if (which == SIM_RUN) {
		s->lacking |= !sim_run(&plan, s->trial);
		s->trial->run = index;
		s->runs++;
	}
	return which != SIM_LAST && !s->lacking;
}

/* Returns false if none of the candidates from `index` on fails. */
static bool try_series(struct sim_search *s, struct series *series, uint64_t index)
{
	s->lacking |= !sim_run_series(next, series, index, s->trial);
	s->runs += s->trial->runs;
	return s->trial->failed && !s->lacking;
}

/*
 * Tries the candidates from *index on, until one fails in the same way; *index becomes its number.
 * Returns false if there is none.
 */
static bool find(struct sim_search *s, sim_candidate_fn *candidate, uint64_t *index)
{
	struct series series = {.search = s, .candidate = candidate};

	while (s->alone ? try_alone(s, &series, *index) : try_series(s, &series, *index)) {
		*index = s->trial->run;
		if (fails_alike(s))
			return true;
		++*index;
	}
	return false;
}

/* The candidate becomes the best. Steps behind the one that failed are of no use. */
static void keep(struct sim_search *s)
{
	uint64_t needed = s->trial->step + 1;

	s->count = needed < s->fewer_count ? needed : s->fewer_count;
	memcpy(s->steps, s->fewer, s->count * sizeof(s->steps[0]));
	s->plan.setup = s->setup;
}

/* Returns whether any candidate was kept. The same number is another candidate then. */
static bool improve(struct sim_search *s, sim_candidate_fn *candidate)
{
	uint64_t index = 0;
	bool any = false;

	while (find(s, candidate, &index)) {
		(void)make(s, candidate, index);
		keep(s);
		any = true;
	}
	return any;
}

/* ---- the search ---- */

/* Runs the best one as it is. */
static bool repeat(struct sim_search *s, struct sim_step *picked)
{
	struct sim_plan plan = s->plan;

	plan.steps = s->steps;
	plan.count = s->count;
	plan.picked = picked;
	s->lacking |= !sim_run(&plan, s->trial);
	s->runs++;
	return !s->lacking && fails_alike(s);
}

/* A step that names what it means depends less on the steps before it. */
static void name_objects(struct sim_search *s)
{
	uint64_t index = 0;

	if (!repeat(s, s->picked) || !find(s, sim_picked_steps, &index))
		return;
	(void)make(s, sim_picked_steps, index);
	keep(s);
}

/* As long as that leaves out much: names and groups are few, and single steps are many. */
static void leave_out_groups(struct sim_search *s)
{
	uint64_t before;

	do {
		before = s->count;
		(void)improve(s, sim_group_left_out);
		name_objects(s);
	} while (s->count < before - before / 8);
}

static void leave_out_parts(struct sim_search *s)
{
	for (s->part = s->count / 2; s->part > 1; s->part /= 2) {
		if (improve(s, sim_part_left_out))
			leave_out_groups(s);
		if (s->part > s->count)
			s->part = s->count;
	}
}

/* Until no single step can be left out, and nothing else becomes simpler. */
static void leave_out_steps(struct sim_search *s)
{
	bool more = true;

	while (more) {
		s->part = 1;
		more = improve(s, sim_part_left_out);
		more = improve(s, sim_setting_simpler) || more;
		more = improve(s, sim_step_simpler) || more;
		more = more || improve(s, sim_pair_left_out);
	}
}

static void search(struct sim_search *s)
{
	(void)improve(s, sim_last_steps);
	name_objects(s);
	(void)improve(s, sim_setting_simpler);
	(void)improve(s, sim_last_steps);
	leave_out_groups(s);
	leave_out_parts(s);
	leave_out_steps(s);
}

static bool create(struct sim_search *s, const struct sim_plan *plan, uint64_t count)
{
	s->plan = *plan;
	s->plan.quiet = true;
	s->plan.record = NULL;
	s->trial = sim_share(sizeof(*s->trial));
	s->picked = sim_share(count * sizeof(*s->picked));
	s->fewer = calloc(count, sizeof(*s->fewer));
	return s->trial && s->picked && s->fewer;
}

static void destroy(struct sim_search *s, uint64_t count)
{
	sim_unshare(s->trial, sizeof(*s->trial));
	sim_unshare(s->picked, count * sizeof(*s->picked));
	free(s->fewer);
}

/*
 * A driver may have state that is left from one run to the next. Then the steps that were found do
 * not repeat the failure, and the search begins again with a process for each run.
 */
static void search_again(struct sim_search *s, const struct sim_plan *plan,
			 const struct sim_step *steps, uint64_t count)
{
	memcpy(s->steps, steps, count * sizeof(*steps));
	s->count = count;
	s->plan.setup = plan->setup;
	s->alone = true;
	search(s);
}

bool sim_minimise(const struct sim_plan *plan, const struct sim_result *failure,
		  struct sim_setup *setup, struct sim_step *steps, uint64_t *count, uint64_t *runs)
{
	uint64_t all = failure->step + 1 < *count ? failure->step + 1 : *count;
	struct sim_search s = {.steps = steps, .count = all, .rule = failure->rule};
	struct sim_step *before = calloc(all, sizeof(*before));
	bool good = create(&s, plan, all) && before;

	if (good) {
		memcpy(before, steps, all * sizeof(*before));
		search(&s);
		if (!s.lacking && !repeat(&s, NULL))
			search_again(&s, plan, before, all);
	}
	good = good && !s.lacking;
	if (!good)
		fputs("vidmm sim: no memory or no process for a run\n", stderr);
	*setup = s.plan.setup;
	*count = s.count;
	*runs = s.runs;
	destroy(&s, all);
	free(before);
	return good;
}
