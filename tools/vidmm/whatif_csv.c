/* SPDX-License-Identifier: MIT */
/* The result of `vidmm what-if` as comma-separated values (RFC 4180, with LF). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy.h"
#include "whatif.h"

static void print_text(FILE *file, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, file);
		return;
	}
	fputc('"', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputc('"', file);
}

/* A percentage and what it is of are empty for a size. */
static void print_memory(FILE *file, const struct whatif_cell *cell)
{
	if (cell->measured)
		fprintf(file, "%" PRIu64, cell->vram_bytes);
	if (cell->size->bytes)
		fputs(",,", file);
	else
		fprintf(file, ",%.17g,%s", cell->size->percent, memory_size_percent_of(cell->size));
}

static void print_figures(FILE *file, const struct whatif_cell *cell)
{
	const struct whatif_outcome *outcome = cell->outcome;
	uint64_t again;

	if (cell->end != REPLAY_CLEAN) {
		fputs(",,,,,,", file);
		return;
	}
	fprintf(file, "%" PRIu64 ",", outcome->bytes_paged_in);
	if (whatif_cell_again(cell, &again))
		fprintf(file, "%" PRIu64, again);
	fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, outcome->frames,
		outcome->late_frames, outcome->p99_ns, outcome->stall_ns,
		outcome->slowdown_permille);
}

void whatif_csv(FILE *file, const struct whatif_grid *grid)
{
	fputs("recording,vram_bytes,vram_percent,vram_percent_of,policy,link,model,status,"
	      "bytes_paged_in,bytes_paged_in_again,frames,late_frames,latency_p99_ns,"
	      "longest_stall_ns,slowdown_permille,message\n",
	      file);
	for (unsigned i = 0; i < grid->count; i++) {
		const struct whatif_cell *cell = &grid->cells[i];

		print_text(file, cell->recording);
		fputc(',', file);
		print_memory(file, cell);
		fprintf(file, ",%s,%s,%s,", policy_name(cell->policy), cell->link->name,
			whatif_model_name(cell));
		print_text(file, cell->status_text);
		fputc(',', file);
		print_figures(file, cell);
		fputc(',', file);
		print_text(file, cell->outcome->message);
		fputc('\n', file);
	}
}
