/* SPDX-License-Identifier: MIT */
/*
 * column: a sequence of numbers as a page carries it: variable-length integers of 7 bits for each
 * byte (LEB128), deflated, in base64. Small numbers need one byte, and repeated ones almost none.
 */
#ifndef VIDMM_TOOLS_COLUMN_H
#define VIDMM_TOOLS_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* All zero: empty. */
struct column {
	unsigned char *bytes;
	size_t count, capacity; /* bytes */
	uint32_t rows;
	bool failed; /* out of memory: numbers are missing */
};

void column_put(struct column *column, uint64_t value);
/* Puts a number that may be negative: 0, -1, 1, -2 and so on become 0, 1, 2, 3 (zigzag). */
void column_put_signed(struct column *column, int64_t value);
/* Writes the column. Returns false when out of memory, now or before. */
bool column_print(FILE *file, const struct column *column);
void column_finish(struct column *column);

#endif
