/* SPDX-License-Identifier: MIT */
/* Which cells of a sweep one of several machines replays. */
#include <stdlib.h>
#include <string.h>

#include "whatif.h"

/*
 * Returns how many bytes a recording has, from the text by which its content is known. Replays take
 * about as long as their recordings are large.
 */
static uint64_t recording_bytes(const struct whatif_cell *cell)
{
	const char *dash = strchr(cell->reading->content, '-');

	return dash ? strtoull(dash + 1, NULL, 10) : 0;
}

/* Orders by the expected time: large recordings first, and of those little memory. */
static int by_cost(const void *left, const void *right)
{
	const struct whatif_cell *a = *(struct whatif_cell *const *)left;
	const struct whatif_cell *b = *(struct whatif_cell *const *)right;
	uint64_t a_bytes = recording_bytes(a), b_bytes = recording_bytes(b);

	if (a_bytes != b_bytes)
		return a_bytes > b_bytes ? -1 : 1;
	if (a->vram_bytes != b->vram_bytes)
		return a->vram_bytes < b->vram_bytes ? -1 : 1;
	return a < b ? -1 : a > b;
}

/*
 * Cells are dealt from the most expensive to the cheapest one, in turns that go forth and back: the
 * shard that had the most expensive cell of a turn has the cheapest one of the next.
 */
bool whatif_shard_choose(struct whatif_grid *grid)
{
	unsigned shards = grid->options->shards, own = grid->options->shard - 1;
	struct whatif_cell **order = calloc(grid->total, sizeof(struct whatif_cell *));

	if (!order)
		return false;
	for (unsigned i = 0; i < grid->total; i++)
		order[i] = &grid->cells[i];
	qsort(order, grid->total, sizeof(struct whatif_cell *), by_cost);
	for (unsigned i = 0; i < grid->total; i++) {
		unsigned place = i % shards;
		bool back = i / shards % 2 == 1;

		order[i]->elsewhere = (back ? shards - 1 - place : place) != own;
	}
	free(order);
	return true;
}
