/* SPDX-License-Identifier: MIT */
/*
 * top_view: what `vidmm top` shows of a state, as a grid of lines. It only depends on its
 * arguments, so that a terminal and --batch show the same.
 */
#ifndef VIDMM_TOOLS_TOP_VIEW_H
#define VIDMM_TOOLS_TOP_VIEW_H

#include <stdbool.h>

#include "top_grid.h"
#include "top_state.h"

enum top_status {
	TOP_LIVE,    /* a program writes the recording */
	TOP_ENDED,   /* the recording is complete */
	TOP_CUT,     /* it ends in the middle of a chunk, and no program writes it */
	TOP_DAMAGED, /* it cannot be read beyond some byte */
	TOP_FAILED,  /* an error of the file system, or out of memory */
	TOP_WAITING  /* another recording replaces it, and has not begun */
};

/* Columns of the table of processes, in their order. */
enum top_column {
	TOP_ID,
	TOP_NAME,
	TOP_RESIDENT,
	TOP_PEAK,
	TOP_IN,
	TOP_OUT,
	TOP_EVICTED,
	TOP_LOCK,
	TOP_QUEUED,
	TOP_APERTURE,
	TOP_EVICT_RATE,
	TOP_IN_ALL,
	TOP_OUT_ALL,
	TOP_SUBMITTED,
	TOP_WAITED,
	TOP_ALLOCATIONS,
	TOP_COLUMNS
};

struct top_view {
	const struct top_state *state;
	const char *path;
	enum top_status status;
	uint64_t quiet_s; /* seconds since the last event came; 0: not to be shown */
	bool reading;     /* the end of the file has not been reached */
	enum top_column sort;
	bool reverse, closed; /* show closed processes, too */
	const char *filter;   /* part of the names of processes, "": all */
	uint32_t scroll;      /* processes that are left out at the top */
	bool help;
	const char *footer; /* the last line; NULL: none */
};

/* Draws the view into an empty grid. Returns the largest scroll that shows more processes. */
uint32_t top_view_draw(const struct top_view *view, struct top_grid *grid);
/* Are rates those of the whole recording, and not those of the window? */
bool top_view_all(const struct top_view *view);
/* Returns the name of a process, or a text that stands for it. */
const char *top_view_name(const struct top_state *state, uint32_t number, char *text, size_t size);
/* Writes MiB with a decimal, as "12.3". */
const char *top_view_mib(double bytes, char *text, size_t size);

/* ---- top_table.c ---- */
/* The table of processes from a row on, with its heading. ROWS: of processes; 0: all. */
uint32_t top_table_draw(const struct top_view *view, struct top_grid *grid, uint32_t row,
			uint32_t rows);
/* Returns how many processes the table has. */
uint32_t top_table_count(const struct top_view *view);
/* Returns whether a grid of that width shows the column. */
bool top_table_shows(enum top_column column, uint32_t width);
const char *top_table_title(enum top_column column);

#endif
