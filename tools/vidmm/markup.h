/* SPDX-License-Identifier: MIT */
/*
 * markup: SVG elements and escaped text, for files that a browser shows. Coordinates are written
 * with one digit behind the point. Colors, widths and fonts are those of the classes, which are
 * attributes `class` for a style sheet.
 */
#ifndef VIDMM_TOOLS_MARKUP_H
#define VIDMM_TOOLS_MARKUP_H

#include <stdio.h>

struct markup_point {
	double x, y;
};

enum markup_anchor { MARKUP_START, MARKUP_MIDDLE, MARKUP_END };

enum markup_shape {
	MARKUP_CIRCLE,
	MARKUP_SQUARE,
	MARKUP_TRIANGLE,
	MARKUP_DIAMOND,
	MARKUP_PLUS,
	MARKUP_CROSS
};

/*
 * Writes text that may stand in an element or between the quotes of an attribute, in XML and HTML.
 * Each byte that is no valid UTF-8, and each character that XML forbids, becomes U+FFFD.
 */
void markup_text(FILE *file, const char *text);
/* Begins a group; a browser shows TOOLTIP (NULL: none) where the pointer is on the group. */
void markup_group(FILE *file, const char *class_name, const char *tooltip);
void markup_group_end(FILE *file);
void markup_rectangle(FILE *file, const char *class_name, struct markup_point corner,
		      struct markup_point size);
void markup_line(FILE *file, const char *class_name, struct markup_point from,
		 struct markup_point to);
void markup_label(FILE *file, const char *class_name, struct markup_point at,
		  enum markup_anchor anchor, const char *text);
/* A line through COUNT points. DASHES: lengths of dashes and gaps; NULL: solid. */
void markup_path(FILE *file, const char *dashes, const struct markup_point *points, unsigned count);
void markup_shape(FILE *file, const char *class_name, enum markup_shape shape,
		  struct markup_point at);

#endif
