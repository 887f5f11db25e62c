/* SPDX-License-Identifier: MIT */
/* The candidates of the search for few steps (sim_search.h), from large parts to single numbers. */
#include <string.h>
#include <vidmm/softgpu.h>

#include "sim_search.h"

#define LAST_STEPS  64u
#define PAIRS_STEPS 40u

static enum sim_next run_if(bool changed)
{
	return changed ? SIM_RUN : SIM_NO_RUN;
}

/* ---- steps that are left out ---- */

enum sim_next sim_last_steps(struct sim_search *s, uint64_t index)
{
	uint64_t count = (uint64_t)LAST_STEPS << index;

	if (count >= s->count)
		return SIM_LAST;
	memmove(s->fewer, s->fewer + (s->count - count), count * sizeof(s->fewer[0]));
	s->fewer_count = count;
	return SIM_RUN;
}

static void leave_out(struct sim_search *s, uint64_t at, uint64_t count)
{
	memmove(s->fewer + at, s->fewer + at + count,
		(s->fewer_count - at - count) * sizeof(s->fewer[0]));
	s->fewer_count -= count;
}

enum sim_next sim_part_left_out(struct sim_search *s, uint64_t index)
{
	if (index * s->part >= s->count)
		return SIM_LAST;
	uint64_t end = s->count - index * s->part, part = end < s->part ? end : s->part;

	leave_out(s, end - part, part);
	return SIM_RUN;
}

enum sim_next sim_pair_left_out(struct sim_search *s, uint64_t index)
{
	uint64_t first = index / s->count, second = index % s->count;

	if (s->count > PAIRS_STEPS || first >= s->count)
		return SIM_LAST;
	if (second <= first)
		return SIM_NO_RUN;
	leave_out(s, second, 1);
	leave_out(s, first, 1);
	return SIM_RUN;
}

enum sim_next sim_picked_steps(struct sim_search *s, uint64_t index)
{
	s->fewer_count = 0;
	for (uint64_t i = 0; i < s->count; i++)
		if (s->picked[i].op != SIM_OPS)
			s->fewer[s->fewer_count++] = s->picked[i];
	return index ? SIM_LAST : SIM_RUN;
}

static bool is_in_group(const struct sim_step *step, uint64_t group)
{
	if (!group)
		return step->op >= SIM_FIRST_FAULT;
	group--;
	if (group < MODEL_PROCESSES)
		return step->process == group;
	group -= MODEL_PROCESSES;
	if (group < SIM_OPS)
		return step->op == group;
	group -= SIM_OPS;
	return step->process == group / MODEL_ALLOCATIONS &&
	       (step->a == group % MODEL_ALLOCATIONS ||
		(step->op == SIM_COPY && step->b == group % MODEL_ALLOCATIONS));
}

enum sim_next sim_group_left_out(struct sim_search *s, uint64_t index)
{
	if (index > MODEL_PROCESSES + SIM_OPS + MODEL_PROCESSES * MODEL_ALLOCATIONS)
		return SIM_LAST;
	s->fewer_count = 0;
	for (uint64_t i = 0; i < s->count; i++)
		if (!is_in_group(&s->steps[i], index))
			s->fewer[s->fewer_count++] = s->steps[i];
	return run_if(s->fewer_count != s->count);
}

/* ---- simpler settings and numbers ---- */

static uint32_t processes_of(const struct sim_search *s)
{
	uint32_t most = 0;

	for (uint64_t i = 0; i < s->count; i++)
		most = s->steps[i].process > most ? s->steps[i].process : most;
	return most + 1;
}

enum sim_next sim_setting_simpler(struct sim_search *s, uint64_t index)
{
	struct sim_setup *setup = &s->setup;
	/* With little memory, content moves often. */
	struct {
		uint64_t *wide; /* either this or `narrow` */
		uint32_t *narrow;
		uint64_t value;
	} simpler[] = {
		{NULL, &setup->switch_per_1024, 0},
		{&setup->vram_bytes, NULL, 131072},
		{&setup->vram_bytes, NULL, 262144},
		{&setup->aperture_bytes, NULL, 524288},
		{NULL, &setup->processes, processes_of(s)},
		{NULL, &setup->dma_bytes, 16384},
		{NULL, &setup->paging_bytes, 16384},
		{NULL, &setup->first_fence, 1},
		{NULL, &setup->preempts, 0},
		{NULL, &setup->engine_reset, 1},
	};

	if (index >= sizeof(simpler) / sizeof(simpler[0]))
		return SIM_LAST;
	uint64_t value = simpler[index].value,
		 now = simpler[index].wide ? *simpler[index].wide : *simpler[index].narrow;

	if (simpler[index].wide)
		*simpler[index].wide = value;
	else
		*simpler[index].narrow = (uint32_t)value;
	return run_if(simpler[index].wide ? value < now : value != now);
}

/* The steps of a process become those of an earlier one. */
static enum sim_next move_process(struct sim_search *s, uint64_t index)
{
	uint32_t from = (uint32_t)(index / MODEL_PROCESSES), to = index % MODEL_PROCESSES;
	bool changed = false;

	for (uint64_t i = 0; i < s->count && to < from; i++) {
		if (s->fewer[i].process != from)
			continue;
		s->fewer[i].process = to;
		changed = true;
	}
	return run_if(changed);
}

#define MOVES      ((uint64_t)MODEL_PROCESSES * MODEL_PROCESSES)
#define VARIATIONS 6u

enum sim_next sim_step_simpler(struct sim_search *s, uint64_t index)
{
	if (index < MOVES)
		return move_process(s, index);
	index -= MOVES;
	if (index >= s->count * VARIATIONS)
		return SIM_LAST;
	struct sim_step *step = &s->fewer[index / VARIATIONS];
	const struct sim_step before = *step;
	/* An allocation has as many pages as fit, so that few of them fill the memory. */
	uint32_t size = step->op == SIM_CREATE ? 7 : 0;

	switch (index % VARIATIONS) {
	case 0:
		step->b = step->op == SIM_COPY ? step->b : 0;
		step->c = 0;
		step->d = size;
		break;
	case 1:
		step->c = 0;
		break;
	case 2:
		step->d = size;
		break;
	case 3:
		step->b = step->op == SIM_COPY ? step->b : 0;
		break;
	case 4:
		step->c %= 256;
		break;
	default:
		step->d %= 256;
		break;
	}
	return run_if(memcmp(step, &before, sizeof(before)) != 0);
}
