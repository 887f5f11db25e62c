/* SPDX-License-Identifier: MIT */
/* The result of `vidmm what-if` as a table for people. */
#include <stdio.h>

#include "policy.h"
#include "whatif.h"

#define LINE "  %-18s  %-9s  %-8s  %-5s  %14s  %16s  %11s  %13s  %9s\n"

static void print_cell(FILE *file, const struct whatif_cell *cell)
{
	struct whatif_text text;
	char memory[64];

	whatif_text_memory(cell, memory, sizeof(memory));
	if (cell->end != REPLAY_CLEAN) {
		fprintf(file, "  %-18s  %-9s  %-8s  %-5s  failed: %s\n",
			cell->measured ? memory : "-", policy_name(cell->policy), cell->link->name,
			whatif_model_name(cell), cell->status_text);
		return;
	}
	whatif_text_figures(cell, &text);
	fprintf(file, LINE, memory, policy_name(cell->policy), cell->link->name,
		whatif_model_name(cell), text.again, text.late, text.p99, text.stall, text.slower);
}

static void print_knee(FILE *file, const struct whatif_grid *grid, unsigned recording,
		       unsigned index)
{
	const struct whatif_cell *knee = whatif_grid_knee(grid, recording, index);
	unsigned first = recording * grid->options->sizes.count * whatif_grid_series(grid);
	const struct whatif_cell *cell = &grid->cells[first + index];
	char memory[64];

	fprintf(file, "  knee %s, %s, %s: %s\n", policy_name(cell->policy), cell->link->name,
		whatif_model_name(cell),
		knee ? whatif_text_memory(knee, memory, sizeof(memory)) : "none of these sizes");
}

static void print_recording(FILE *file, const struct whatif_grid *grid, unsigned recording)
{
	unsigned series = whatif_grid_series(grid);
	unsigned count = grid->options->sizes.count * series;

	fprintf(file, "%s\n", grid->options->recordings[recording]);
	fprintf(file, LINE, "memory", "policy", "link", "model", "paged in again", "late frames",
		"p99 latency", "longest stall", "slow-down");
	for (unsigned i = 0; i < count; i++)
		print_cell(file, &grid->cells[recording * count + i]);
	for (unsigned i = 0; i < series; i++)
		print_knee(file, grid, recording, i);
	fputc('\n', file);
}

void whatif_table(FILE *file, const struct whatif_grid *grid)
{
	for (unsigned i = 0; i < grid->options->recording_count; i++)
		print_recording(file, grid, i);
	fputs("paged in again: beyond first uses, which are what 100 % of the memory pages in "
	      "(lru)\n"
	      "knee: the least memory of these with less than 1 % of late frames\n",
	      file);
	if (grid->options->recording_count > 1)
		fputs("each recording was replayed alone\n", file);
}
