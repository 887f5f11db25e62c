/* SPDX-License-Identifier: MIT */
/* The processes of `vidmm what-if`, their progress and their ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool.h"
#include "progress.h"
#include "whatif.h"
#include "whatif_store.h"

/* The grid while its processes run. */
struct run_state {
	struct whatif_grid *grid;
	unsigned *index; /* of the cells that run */
	unsigned count;
	struct progress progress;
	struct whatif_store *store; /* NULL: none */
};

static void run_cell(void *context, unsigned index)
{
	const struct run_state *state = context;

	whatif_cell_run(&state->grid->cells[state->index[index]]);
}

static void cell_ended(void *context, unsigned index, const struct pool_end *end)
{
	struct run_state *state = context;
	struct whatif_cell *cell = &state->grid->cells[state->index[index]];
	char status_text[sizeof(cell->status_text)] = "";

	atomic_store(&cell->outcome->permille, 1000);
	if (end->signal)
		snprintf(status_text, sizeof(status_text), "signal %d", end->signal);
	else if (end->error)
		snprintf(status_text, sizeof(status_text), "fork: %s", strerror(end->error));
	else if (end->exit_code)
		snprintf(status_text, sizeof(status_text), "exit code %d", end->exit_code);
	if (status_text[0])
		whatif_cell_end(cell, REPLAY_ENVIRONMENT, status_text);
	else
		whatif_cell_end(cell, cell->outcome->status, NULL);
	if (state->store)
		whatif_store_add(state->store, cell);
}

static void show_progress(void *context)
{
	struct run_state *state = context;
	uint64_t sum = 0;

	for (unsigned i = 0; i < state->count; i++)
		sum += atomic_load(&state->grid->cells[state->index[i]].outcome->permille);
	progress_update(&state->progress, (double)sum / 1000 / state->count);
}

void whatif_grid_failures(const struct whatif_grid *grid)
{
	for (unsigned i = 0; i < grid->total; i++) {
		const struct whatif_cell *cell = &grid->cells[i];

		if (!cell->measured || cell->end == REPLAY_CLEAN)
			continue;
		fprintf(stderr, "vidmm %s: ", grid->options->verb);
		whatif_cell_print(stderr, cell);
		fprintf(stderr, ": %s%s%s\n", cell->status_text,
			cell->outcome->message[0] ? ": " : "", cell->outcome->message);
	}
}

bool whatif_grid_run(struct whatif_grid *grid, struct whatif_store *store)
{
	struct run_state state = {.grid = grid,
				  .store = store,
				  .index = calloc(grid->total, sizeof(*state.index)),
				  .progress = {.what = "replaying", .estimate = true}};
	struct pool pool = {.jobs = grid->options->jobs,
			    .work = run_cell,
			    .ended = cell_ended,
			    .tick = isatty(STDERR_FILENO) ? show_progress : NULL,
			    .context = &state};

	if (!state.index)
		return false;
	for (unsigned i = 0; i < grid->total; i++)
		if (grid->cells[i].measured && !grid->cells[i].finished &&
		    !grid->cells[i].elsewhere)
			state.index[state.count++] = i;
	pool.count = state.count;
	if (pool.count)
		pool_run(&pool);
	progress_clear(&state.progress);
	free(state.index);
	return true;
}
