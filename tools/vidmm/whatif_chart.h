/* SPDX-License-Identifier: MIT */
/*
 * whatif_chart: the result of `vidmm what-if` as figures. A figure has a panel for each metric,
 * with a line for each policy, link and model.
 */
#ifndef VIDMM_TOOLS_WHATIF_CHART_H
#define VIDMM_TOOLS_WHATIF_CHART_H

#include "chart_axis.h"
#include "markup.h"
#include "whatif.h"

/* Links and models of one figure at most: with 5 policies these are 10 lines. */
#define WHATIF_CHART_VARIANTS_MAX 2u

#define WHATIF_CHART_WIDTH 1160

/*
 * A variant is a link and a model, in the order of the grid. A figure shows all variants of a
 * recording, or with more than WHATIF_CHART_VARIANTS_MAX one of them.
 */
struct whatif_figure {
	const struct whatif_grid *grid;
	unsigned recording, variant, variants;
	/* The sizes that are known, in ascending order, as indices of the size list. */
	unsigned order[SIZE_LIST_MAX], sizes;
	struct chart_axis x;
	bool knees, failures; /* some are shown */
	bool titled;          /* the caller may set it: the name of the recording is above */
};

unsigned whatif_figure_count(const struct whatif_grid *grid);
void whatif_figure_make(struct whatif_figure *figure, const struct whatif_grid *grid,
			unsigned index);
/* Returns the first cell of the figure, which names the recording. */
const struct whatif_cell *whatif_figure_first(const struct whatif_figure *figure);
double whatif_figure_height(const struct whatif_figure *figure);
/* Writes the figure as an element svg, the upper edge at Y of the element around it. */
void whatif_figure_write(FILE *file, const struct whatif_figure *figure, double y);
/* Writes the rules of the style sheet that the figures need. */
void whatif_chart_style(FILE *file);

/* ---- for the files of the figure ---- */
const struct whatif_cell *whatif_figure_cell(const struct whatif_figure *figure, unsigned size,
					     unsigned policy, unsigned variant);
/* Returns the name of a line: the policy, and of link and model what differs inside the figure. */
const char *whatif_figure_name(const struct whatif_figure *figure, const struct whatif_cell *cell,
			       char *text, size_t size);
/* Draws the line and the markers of the legend; with FILE NULL nothing. Returns the height. */
double whatif_legend(FILE *file, const struct whatif_figure *figure, double y);
/* Draws panel INDEX of WHATIF_PANELS. */
#define WHATIF_PANELS 4u
void whatif_panel(FILE *file, const struct whatif_figure *figure, unsigned index,
		  struct markup_point corner);
/* How a line is drawn. */
struct whatif_line {
	const char *class_name, *marker_class, *dashes; /* dashes NULL: solid */
	enum markup_shape shape;
};
struct whatif_line whatif_line_of(enum replay_policy policy, unsigned variant);

#endif
