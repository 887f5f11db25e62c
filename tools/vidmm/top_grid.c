/* SPDX-License-Identifier: MIT */
#include "top_grid.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static bool add_row(struct top_grid *grid)
{
	uint32_t rows = grid->capacity ? grid->capacity * 2 : 32;
	struct top_cell *cells = grid->cells;

	if (grid->height == grid->capacity) {
		cells = realloc(cells, (size_t)rows * grid->width * sizeof(*cells));
		grid->failed = grid->failed || !cells;
		if (!cells)
			return false;
		grid->cells = cells;
		grid->capacity = rows;
	}
	cells += (size_t)grid->height++ * grid->width;
	for (uint32_t i = 0; i < grid->width; i++)
		cells[i] = (struct top_cell){L' ', TOP_PLAIN};
	return true;
}

/* Returns the cells of a row, which is added; NULL: outside the grid, or out of memory. */
static struct top_cell *row_of(struct top_grid *grid, uint32_t row)
{
	if (!grid->width || (grid->height_most && row >= grid->height_most))
		return NULL;
	while (grid->height <= row)
		if (!add_row(grid))
			return NULL;
	return grid->cells + (size_t)row * grid->width;
}

/* Returns the column behind a field. */
static uint32_t end_of(const struct top_grid *grid, struct top_field field)
{
	uint32_t space = field.column < grid->width ? grid->width - field.column : 0;

	return field.column + (field.width && field.width < space ? field.width : space);
}

/* ---- text ---- */

/* Takes a code point. Returns U+FFFD for a byte that begins no valid sequence. */
static uint32_t take_code(const unsigned char **at)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	const unsigned char *p = *at;
	unsigned more = p[0] < 0x80 ? 0 : p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
	uint32_t code = more ? p[0] & (0x3fu >> more) : p[0];

	*at = p + 1;
	if (p[0] >= 0xf8 || (p[0] >= 0x80 && p[0] < 0xc0))
		return 0xfffd;
	for (unsigned i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		code = code << 6 | (p[i] & 0x3fu);
	}
	if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0xfffd;
	*at = p + 1 + more;
	return code;
}

/* Takes a printable character, and stores how many cells it needs. */
static wchar_t take_character(const unsigned char **at, uint32_t *cells)
{
	wchar_t character = (wchar_t)take_code(at);
	/* -1: a control character, or none of the locale; 0: it changes other characters */
	int width = character == 0xfffd ? -1 : wcwidth(character);

	*cells = width > 0 ? (uint32_t)width : 1;
	return width > 0 ? character : L'?';
}

/* Shows by a "+" in the last cell that text is missing. */
static void mark_cut(struct top_cell *first, struct top_cell *behind)
{
	if (behind == first)
		return;
	if (!behind[-1].character) /* the second cell of a wide one, which goes */
		behind[-2].character = L' ';
	behind[-1].character = L'+';
}

uint32_t top_grid_text(struct top_grid *grid, struct top_field field, enum top_look look,
		       const char *text)
{
	struct top_cell *cells = row_of(grid, field.row);
	const unsigned char *at = (const unsigned char *)text;
	uint32_t column = field.column, end = end_of(grid, field);

	while (cells && *at) {
		uint32_t width;
		wchar_t character = take_character(&at, &width);

		if (column + width > end) {
			mark_cut(cells + field.column, cells + column);
			break;
		}
		cells[column] = (struct top_cell){character, (uint8_t)look};
		for (uint32_t i = 1; i < width; i++)
			cells[column + i] = (struct top_cell){0, (uint8_t)look};
		column += width;
	}
	return column - field.column;
}

void top_grid_right(struct top_grid *grid, struct top_field field, enum top_look look,
		    const char *text)
{
	uint32_t length = (uint32_t)strlen(text), width = end_of(grid, field) - field.column;

	if (length <= width) {
		field.column += width - length;
		top_grid_text(grid, field, look, text);
		return;
	}
	for (uint32_t i = 0; i < width; i++)
		top_grid_text(grid, (struct top_field){field.row, field.column + i, 1}, look, "#");
}

void top_grid_paint(struct top_grid *grid, uint32_t row, enum top_look look)
{
	struct top_cell *cells = row_of(grid, row);

	for (uint32_t i = 0; cells && i < grid->width; i++)
		cells[i].look = (uint8_t)look;
}

/* ---- output ---- */

const struct top_cell *top_grid_row(const struct top_grid *grid, uint32_t row)
{
	return grid->cells + (size_t)row * grid->width;
}

static void print_character(FILE *file, wchar_t character)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t count = wcrtomb(bytes, character, &state);

	if (count == (size_t)-1)
		fputc('?', file);
	else
		fwrite(bytes, 1, count, file);
}

void top_grid_print(FILE *file, const struct top_grid *grid)
{
	for (uint32_t row = 0; row < grid->height; row++) {
		const struct top_cell *cells = top_grid_row(grid, row);
		uint32_t end = grid->width;

		while (end && cells[end - 1].character == L' ')
			end--;
		for (uint32_t i = 0; i < end; i++)
			if (cells[i].character)
				print_character(file, cells[i].character);
		fputc('\n', file);
	}
}

void top_grid_clear(struct top_grid *grid)
{
	grid->height = 0;
}

void top_grid_finish(struct top_grid *grid)
{
	free(grid->cells);
	*grid = (struct top_grid){0};
}
