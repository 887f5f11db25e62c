/* SPDX-License-Identifier: MIT */
/* One replay of `vidmm what-if`: what it is called, and what it found. */
#include <stdio.h>
#include <string.h>

#include "policy.h"
#include "units.h"
#include "whatif.h"

static void keep_message(void *context, const char *text)
{
	struct whatif_outcome *outcome = context;

	if (!outcome->message[0])
		snprintf(outcome->message, sizeof(outcome->message), "%s", text);
}

static void keep_progress(void *context, double fraction)
{
	struct whatif_outcome *outcome = context;

	atomic_store(&outcome->permille, (unsigned)(fraction * 1000));
}

static void keep_figures(struct whatif_outcome *outcome, const struct replay_result *result)
{
	outcome->bytes_paged_in = result->bytes_paged_in;
	outcome->frames = result->times.frames.count;
	outcome->late_frames = result->times.frames.late;
	outcome->p99_ns = result->times.latency.p99_ns;
	outcome->stall_ns = result->times.frames.stall_ns;
	outcome->slowdown_permille = result->times.waits.slowdown_permille;
}

/* All options that are not in the cell are the defaults of `vidmm replay`. */
void whatif_cell_run(const struct whatif_cell *cell)
{
	struct whatif_outcome *outcome = cell->outcome;
	const struct replay_input input = {.path = cell->recording};
	const struct replay_options options = {
		.inputs = &input,
		.input_count = 1,
		.vram_bytes = cell->vram_bytes,
		.aperture_bytes = REPLAY_APERTURE_BYTES,
		.verify = REPLAY_VERIFY_NONE,
		.host_kind = VIDMM_HOST_SIM,
		.gpu_time = true,
		.recorded_pace = true,
		.link = cell->link->model,
		.costs = cell->link->costs,
		.no_content = !cell->wddm2, /* the driver of WDDM 2.x needs the content */
		.wddm2 = cell->wddm2,
		.policy = cell->policy,
		.policy_functions = policy_functions(cell->policy),
		.message = keep_message,
		.message_context = outcome,
		.progress = keep_progress,
		.progress_context = outcome,
	};
	struct replay_result result;

	outcome->status = replay_run(&options, &result);
	keep_figures(outcome, &result);
	replay_result_finish(&result);
}

bool whatif_cell_again(const struct whatif_cell *cell, uint64_t *bytes)
{
	uint64_t paged, first;

	if (cell->end != REPLAY_CLEAN || cell->first->end != REPLAY_CLEAN)
		return false;
	paged = cell->outcome->bytes_paged_in;
	first = cell->first->outcome->bytes_paged_in;
	/* With little memory, buffers are used in the aperture and never paged in. */
	*bytes = paged > first ? paged - first : 0;
	return true;
}

bool whatif_cell_in_time(const struct whatif_cell *cell)
{
	return cell->end == REPLAY_CLEAN &&
	       cell->outcome->late_frames * 100 < cell->outcome->frames;
}

const char *whatif_model_name(const struct whatif_cell *cell)
{
	return replay_models[cell->wddm2];
}

void whatif_cell_print(FILE *file, const struct whatif_cell *cell)
{
	char memory[32];

	fprintf(file, "%s, %s, %s, %s, %s", cell->recording,
		units_bytes(cell->vram_bytes, memory, sizeof(memory)), policy_name(cell->policy),
		cell->link->name, whatif_model_name(cell));
}

void whatif_cell_end(struct whatif_cell *cell, enum replay_status status, const char *text)
{
	cell->end = status;
	snprintf(cell->status_text, sizeof(cell->status_text), "%s",
		 text ? text : replay_status_names[status]);
}
