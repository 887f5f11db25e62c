/* SPDX-License-Identifier: MIT */
/* The figures of a cell as people read them, in the table, the chart and the page. */
#include <stdio.h>

#include "units.h"
#include "whatif.h"

const char *whatif_text_memory(const struct whatif_cell *cell, char *text, size_t size)
{
	char bytes[32];

	units_bytes(cell->vram_bytes, bytes, sizeof(bytes));
	if (cell->size->bytes)
		snprintf(text, size, "%s", bytes);
	else
		snprintf(text, size, "%s (%.4g %%%s)", bytes, cell->size->percent,
			 cell->size->largest ? "l" : "");
	return text;
}

static void late_text(const struct whatif_outcome *outcome, char *text, size_t size)
{
	char count[32];

	units_count(outcome->late_frames, count, sizeof(count));
	if (outcome->frames)
		snprintf(text, size, "%s (%.2f %%)", count,
			 (double)outcome->late_frames * 100 / (double)outcome->frames);
	else
		snprintf(text, size, "no frames");
}

void whatif_text_figures(const struct whatif_cell *cell, struct whatif_text *text)
{
	const struct whatif_outcome *outcome = cell->outcome;
	uint64_t again;

	snprintf(text->again, sizeof(text->again), "-");
	if (whatif_cell_again(cell, &again))
		units_bytes(again, text->again, sizeof(text->again));
	late_text(outcome, text->late, sizeof(text->late));
	units_time(outcome->p99_ns, text->p99, sizeof(text->p99));
	units_time(outcome->stall_ns, text->stall, sizeof(text->stall));
	snprintf(text->slower, sizeof(text->slower), "%.2f",
		 (double)outcome->slowdown_permille / 1000);
}
