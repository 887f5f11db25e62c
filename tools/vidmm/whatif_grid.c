/* SPDX-License-Identifier: MIT */
/* All replays of `vidmm what-if`, and their order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "whatif.h"

static const struct memory_size all_memory = {.percent = 100};

static void add_cell(struct whatif_grid *grid, struct whatif_cell cell,
		     const struct whatif_reading *reading)
{
	struct whatif_outcome *outcome = &grid->outcomes[grid->total];
	struct whatif_cell *added = &grid->cells[grid->total++];

	*added = cell;
	added->reading = reading;
	added->outcome = outcome;
	added->vram_bytes = memory_size_bytes(cell.size, &reading->measure);
	added->measured = reading->status == REPLAY_CLEAN;
	/* Until the replay says something else. */
	outcome->status = REPLAY_ENVIRONMENT;
	if (!added->measured) {
		whatif_cell_end(added, reading->status, NULL);
		memcpy(outcome->message, reading->message, sizeof(outcome->message));
	}
}

unsigned whatif_grid_series(const struct whatif_grid *grid)
{
	return grid->options->policy_count * grid->options->link_count * grid->options->model_count;
}

static void add_recording(struct whatif_grid *grid, unsigned recording,
			  const struct whatif_reading *reading)
{
	const struct whatif_options *options = grid->options;
	unsigned series = whatif_grid_series(grid);

	for (unsigned i = 0; i < options->sizes.count * series; i++) {
		unsigned model = i % options->model_count;
		unsigned link = i / options->model_count % options->link_count;
		unsigned policy = i % series / (options->model_count * options->link_count);

		add_cell(grid,
			 (struct whatif_cell){.recording = options->recordings[recording],
					      .size = &options->sizes.sizes[i / series],
					      .policy = options->policies[policy],
					      .link = &options->links[link],
					      .wddm2 = options->wddm2[model]},
			 reading);
	}
}

/* Returns the cell of first uses for CELL among those that exist; NULL: none. */
static const struct whatif_cell *find_first(const struct whatif_grid *grid,
					    const struct whatif_cell *cell, uint64_t vram_bytes)
{
	for (unsigned i = 0; i < grid->total; i++) {
		const struct whatif_cell *other = &grid->cells[i];

		if (other->recording == cell->recording && other->link == cell->link &&
		    other->wddm2 == cell->wddm2 && other->vram_bytes == vram_bytes &&
		    other->policy == (enum replay_policy)(REPLAY_POLICY_FIRST + VIDMM_EVICTION_LRU))
			return other;
	}
	return NULL;
}

/* Points the cells of a recording, which are those from BEGIN, at their first uses. */
static void add_firsts(struct whatif_grid *grid, unsigned begin,
		       const struct whatif_reading *reading)
{
	uint64_t vram_bytes = memory_size_bytes(&all_memory, &reading->measure);
	unsigned series = grid->options->sizes.count * whatif_grid_series(grid);

	for (unsigned i = begin; i < begin + series; i++) {
		struct whatif_cell *cell = &grid->cells[i];

		cell->first = find_first(grid, cell, vram_bytes);
		if (cell->first)
			continue;
		cell->first = &grid->cells[grid->total];
		add_cell(grid,
			 (struct whatif_cell){.recording = cell->recording,
					      .size = &all_memory,
					      .policy = REPLAY_POLICY_FIRST + VIDMM_EVICTION_LRU,
					      .link = cell->link,
					      .wddm2 = cell->wddm2,
					      .first = cell->first},
			 reading);
	}
}

/* Cells that share a first one with others are counted, too: the arrays may be too long. */
static bool allocate(struct whatif_grid *grid)
{
	const struct whatif_options *options = grid->options;
	size_t firsts =
		(size_t)options->recording_count * options->link_count * options->model_count;
	size_t most =
		(size_t)options->recording_count * options->sizes.count * whatif_grid_series(grid) +
		firsts;
	void *shared = mmap(NULL, most * sizeof(struct whatif_outcome), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	grid->capacity = most;
	grid->outcomes = shared == MAP_FAILED ? NULL : shared;
	grid->cells = calloc(most, sizeof(*grid->cells));
	return grid->outcomes && grid->cells;
}

bool whatif_grid_make(struct whatif_grid *grid, const struct whatif_options *options,
		      struct whatif_reading *readings)
{
	unsigned each = options->sizes.count, i;

	*grid = (struct whatif_grid){.options = options, .readings = readings};
	each *= whatif_grid_series(grid);
	if (!readings || !allocate(grid))
		return false;
	for (i = 0; i < options->recording_count; i++)
		add_recording(grid, i, &readings[i]);
	grid->count = grid->total;
	for (i = 0; i < options->recording_count; i++)
		add_firsts(grid, i * each, &readings[i]);
	return true;
}

void whatif_grid_finish(struct whatif_grid *grid)
{
	if (grid->outcomes)
		munmap(grid->outcomes, grid->capacity * sizeof(struct whatif_outcome));
	free(grid->cells);
	free(grid->readings);
}

enum replay_status whatif_grid_status(const struct whatif_grid *grid)
{
	enum replay_status worst = REPLAY_CLEAN;

	for (unsigned i = 0; i < grid->total; i++)
		if (grid->cells[i].end > worst)
			worst = grid->cells[i].end;
	return worst;
}

const struct whatif_cell *whatif_grid_knee(const struct whatif_grid *grid, unsigned recording,
					   unsigned index)
{
	unsigned series = whatif_grid_series(grid), sizes = grid->options->sizes.count;
	const struct whatif_cell *least = NULL;

	for (unsigned i = 0; i < sizes; i++) {
		const struct whatif_cell *cell =
			&grid->cells[(recording * sizes + i) * series + index];

		if (whatif_cell_in_time(cell) && (!least || cell->vram_bytes < least->vram_bytes))
			least = cell;
	}
	return least;
}
