/* SPDX-License-Identifier: MIT */
/*
 * Which allocations a step means: those that it names, or the next ones in whose state the
 * operation makes sense. So few steps are skipped, and a step has a meaning whatever came before.
 */
#include "sim.h"

typedef bool is_fit_fn(const struct sim *sim, const struct sim_step *step, uint32_t allocation);

static const struct model_allocation *model_of(const struct sim *sim, const struct sim_step *step,
					       uint32_t allocation)
{
	return &sim->model.process[step->process].allocation[allocation];
}

static bool is_missing(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return !model_of(sim, step, allocation)->exists;
}

static bool exists(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return model_of(sim, step, allocation)->exists;
}

static bool is_free(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return sim_is_free(sim, step->process, allocation);
}

static bool may_hold(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return sim_may_hold(sim, step->process, allocation);
}

static bool is_held(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	const struct model_allocation *a = model_of(sim, step, allocation);

	return a->held && !a->pending;
}

static bool is_offered(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return model_of(sim, step, allocation)->offered;
}

static bool may_end(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	const struct model_allocation *a = model_of(sim, step, allocation);

	return a->exists && !a->pending;
}

static bool may_list(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	const struct model_allocation *a = model_of(sim, step, allocation);

	return a->exists && !a->offered && (!a->listed || step->d % 4 == 0);
}

static bool is_listed(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return model_of(sim, step, allocation)->listed && may_end(sim, step, allocation);
}

static bool is_usable(const struct sim *sim, const struct sim_step *step, uint32_t allocation)
{
	return sim_may_use(sim, step->process, sim_context_of(step), allocation);
}

static is_fit_fn *const fits[SIM_OPS] = {
	[SIM_CREATE] = is_missing, [SIM_DESTROY] = may_end,    [SIM_READ] = is_free,
	[SIM_WRITE] = is_free,     [SIM_HOLD] = may_hold,      [SIM_RELEASE] = is_held,
	[SIM_DISCARD] = is_free,   [SIM_FILL] = is_usable,     [SIM_COPY] = is_usable,
	[SIM_OFFER] = is_free,     [SIM_RECLAIM] = is_offered, [SIM_PRIORITY] = exists,
	[SIM_QUERY] = exists,      [SIM_LIST] = may_list,      [SIM_UNLIST] = is_listed,
	[SIM_REPEAT] = is_usable,  [SIM_LOSE] = is_usable,     [SIM_LOSE_ALL] = is_usable,
	[SIM_ANSWER] = is_usable,
};

/* Returns `first` if none fits. */
static uint32_t next(const struct sim *sim, const struct sim_step *step, is_fit_fn *fit,
		     uint32_t first, uint32_t but)
{
	for (uint32_t i = 0; i < MODEL_ALLOCATIONS; i++) {
		uint32_t allocation = (first + i) % MODEL_ALLOCATIONS;

		if (allocation != but && fit(sim, step, allocation))
			return allocation;
	}
	return first;
}

void sim_pick(const struct sim *sim, struct sim_step *step)
{
	is_fit_fn *fit = fits[step->op];

	if (!fit)
		return;
	step->a = next(sim, step, fit, step->a, MODEL_NONE);
	if (step->op == SIM_COPY)
		step->b = next(sim, step, fit, step->b, step->a);
}
