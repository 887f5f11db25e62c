/* SPDX-License-Identifier: MIT */
/* Text for a terminal of some width. */
#ifndef VIDMM_TOOLS_WRAP_H
#define VIDMM_TOOLS_WRAP_H

#include <stdio.h>

#define WRAP_WIDTH_DEFAULT 96

/* Columns of the terminal behind `fd`, or what COLUMNS says; WRAP_WIDTH_DEFAULT where there is none. */
int wrap_width(int fd);
/*
 * Words, with the cursor at `column`: what would pass `width` goes to the next line, which begins at `indent`. Ends the
 * last line.
 */
void wrap_print(FILE *file, const char *text, int column, int indent, int width);

#endif
