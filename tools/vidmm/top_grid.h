/* SPDX-License-Identifier: MIT */
/*
 * top_grid: lines of character cells with attributes, as a terminal shows them. Text that does not
 * fit into its field is cut, so that no line is longer than the grid is wide. Cells have printable
 * characters only, whatever the text.
 */
#ifndef VIDMM_TOOLS_TOP_GRID_H
#define VIDMM_TOOLS_TOP_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

/* What a cell says; the screen chooses colors. None says what the text does not say, too. */
enum top_look { TOP_PLAIN, TOP_STRONG, TOP_FAINT, TOP_HEADING, TOP_BAR, TOP_ALARM };

struct top_cell {
	wchar_t character; /* 0: the second cell of a wide character */
	uint8_t look;      /* enum top_look */
};

/* All zero, but with a width: an empty grid. */
struct top_grid {
	uint32_t width, height_most; /* height_most 0: unlimited */
	uint32_t height, capacity;   /* rows with text, of memory */
	struct top_cell *cells;
	bool failed; /* out of memory: text is missing */
};

/* A part of a row. WIDTH 0: up to the end of the row. */
struct top_field {
	uint32_t row, column, width;
};

/*
 * Writes UTF-8. What is not printable in the locale becomes "?"; a "+" at the end shows
 * that text is missing. Returns the width used.
 */
uint32_t top_grid_text(struct top_grid *grid, struct top_field field, enum top_look look,
		       const char *text);
/* Aligns text, of ASCII only, to the right of its field. Text that is too long becomes "#". */
void top_grid_right(struct top_grid *grid, struct top_field field, enum top_look look,
		    const char *text);
/* Gives all of a row a look. */
void top_grid_paint(struct top_grid *grid, uint32_t row, enum top_look look);
const struct top_cell *top_grid_row(const struct top_grid *grid, uint32_t row);
/* Prints the rows without spaces at their ends. Errors of FILE are the caller's. */
void top_grid_print(FILE *file, const struct top_grid *grid);
/* Removes all text. The memory is kept. */
void top_grid_clear(struct top_grid *grid);
void top_grid_finish(struct top_grid *grid);

#endif
