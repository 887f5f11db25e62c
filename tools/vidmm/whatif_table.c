/* SPDX-License-Identifier: MIT */
/* The result of `vidmm what-if` as a table for people. */
#include <stdio.h>

#include "policy.h"
#include "units.h"
#include "whatif.h"

#define LINE "  %-18s  %-9s  %-8s  %-5s  %14s  %16s  %11s  %13s  %9s\n"

static const char *memory_of(const struct whatif_cell *cell, char *text, size_t size)
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

static void print_cell(FILE *file, const struct whatif_cell *cell)
{
	const struct whatif_outcome *outcome = cell->outcome;
	char memory[64], again[32] = "-", late[64], p99[32], stall[32], slower[32];
	uint64_t bytes;

	memory_of(cell, memory, sizeof(memory));
	if (cell->end != REPLAY_CLEAN) {
		fprintf(file, "  %-18s  %-9s  %-8s  %-5s  failed: %s\n",
			cell->measured ? memory : "-", policy_name(cell->policy), cell->link->name,
			whatif_model_name(cell), cell->status_text);
		return;
	}
	if (whatif_cell_again(cell, &bytes))
		units_bytes(bytes, again, sizeof(again));
	late_text(outcome, late, sizeof(late));
	snprintf(slower, sizeof(slower), "%.2f", (double)outcome->slowdown_permille / 1000);
	fprintf(file, LINE, memory, policy_name(cell->policy), cell->link->name,
		whatif_model_name(cell), again, late, units_time(outcome->p99_ns, p99, sizeof(p99)),
		units_time(outcome->stall_ns, stall, sizeof(stall)), slower);
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
		knee ? memory_of(knee, memory, sizeof(memory)) : "none of these sizes");
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
