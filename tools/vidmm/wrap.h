/* SPDX-License-Identifier: MIT */
/* Word wrapping for the width of a terminal. */
#ifndef VIDMM_TOOLS_WRAP_H
#define VIDMM_TOOLS_WRAP_H

#include <stdio.h>

#define WRAP_WIDTH_DEFAULT 96

/*
 * Returns the number of columns: the environment variable COLUMNS, or the width of the terminal FD,
 * or WRAP_WIDTH_DEFAULT if there is neither; at least 40.
 */
int wrap_width(int fd);
/*
 * Prints the words of TEXT with the cursor at COLUMN. A word that would pass WIDTH begins a new
 * line at column INDENT. Ends the last line.
 */
void wrap_print(FILE *file, const char *text, int column, int indent, int width);

#endif
