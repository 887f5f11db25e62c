/* SPDX-License-Identifier: MIT */
/* The panels of a figure, one for each metric, and its legend. */
#include <stdio.h>
#include <string.h>

#include "policy.h"
#include "whatif_chart.h"

/* Inside a panel: where its plot is. */
#define LEFT   72
#define RIGHT  560
#define TOP    52
#define BOTTOM 250
#define INSET  14 /* of the outermost sizes, so that markers lie inside the plot */

#define CHARACTER_WIDTH 7.4 /* of a wide font, on average */
#define LEGEND_LEFT     16
#define LEGEND_ROW      22

struct metric {
	const char *title, *explanation;
	enum chart_quantity quantity;
	double base, bound; /* where the axis begins; where a dotted line is, if above 0 */
	/* Stores the value of a cell that has figures. Returns false if it is unknown. */
	bool (*value)(const struct whatif_cell *cell, double *value);
};

static bool again(const struct whatif_cell *cell, double *value)
{
	uint64_t bytes;
	bool known = whatif_cell_again(cell, &bytes);

	*value = known ? (double)bytes : 0;
	return known;
}

static bool late(const struct whatif_cell *cell, double *value)
{
	const struct whatif_outcome *outcome = cell->outcome;

	if (outcome->frames == 0)
		return false;
	*value = (double)outcome->late_frames * 100 / (double)outcome->frames;
	return true;
}

static bool p99(const struct whatif_cell *cell, double *value)
{
	*value = (double)cell->outcome->p99_ns;
	return true;
}

static bool slower(const struct whatif_cell *cell, double *value)
{
	*value = (double)cell->outcome->slowdown_permille / 1000;
	return true;
}

static const struct metric metrics[WHATIF_PANELS] = {
	{"Bytes paged in beyond first uses", "0: first uses only (lower bound, see below)",
	 CHART_BYTES, 0, 0, again},
	{"Late frames", "part of all frames; dotted: 1 %, the limit of the knee", CHART_PERCENT, 0,
	 1, late},
	{"p99 latency",
	 "from the submission of a command buffer to the interrupt of its completion", CHART_TIME,
	 0, 0, p99},
	{"Slow-down",
	 "time of the GPU, paging included, divided by the recording's; 1: as recorded",
	 CHART_FACTOR, 1, 1, slower},
};

struct whatif_line whatif_line_of(enum replay_policy policy, unsigned variant)
{
	/* `reference` is the only one with long dashes, whatever the variant. */
	static const char *const dashes[WHATIF_CHART_VARIANTS_MAX] = {NULL, "2 3"};
	static const char *const reference[WHATIF_CHART_VARIANTS_MAX] = {"9 5", "9 4 2 4"};
	static const enum markup_shape shapes[] = {MARKUP_CIRCLE, MARKUP_SQUARE, MARKUP_TRIANGLE,
						   MARKUP_DIAMOND, MARKUP_PLUS};
	static const char *const files[] = {"file0", "file1", "file2", "file3",
					    "file4", "file5", "file6", "file7"};
	static const char *const file_dashes[WHATIF_CHART_VARIANTS_MAX] = {"6 2", "6 2 2 2"};
	unsigned index = (unsigned)policy - REPLAY_POLICY_FIRST;
	bool last = policy == REPLAY_POLICY_REFERENCE;

	if (policy >= REPLAY_POLICY_FILE)
		return (struct whatif_line){
			.class_name = files[policy - REPLAY_POLICY_FILE],
			.marker_class = variant % 2 ? "hollow" : "mark",
			.dashes = file_dashes[variant],
			.shape = shapes[(policy - REPLAY_POLICY_FILE) % 5],
		};
	return (struct whatif_line){
		.class_name = policy_name(policy),
		.marker_class = last          ? "stroke"
				: variant % 2 ? "hollow"
					      : "mark",
		.dashes = last ? reference[variant] : dashes[variant],
		.shape = shapes[index],
	};
}

/* ---- axes ---- */

struct panel {
	FILE *file;
	const struct whatif_figure *figure;
	const struct metric *metric;
	struct chart_axis x, y;
};

static void draw_x_axis(const struct panel *panel)
{
	const struct whatif_figure *figure = panel->figure;
	double free_from = 0;

	for (unsigned i = 0; i < figure->sizes; i++) {
		uint64_t bytes = whatif_figure_cell(figure, figure->order[i], 0, 0)->vram_bytes;
		double x = chart_axis_at(&panel->x, (double)bytes), half;
		char text[32];

		markup_line(panel->file, "axis", (struct markup_point){x, BOTTOM},
			    (struct markup_point){x, BOTTOM + 5});
		chart_axis_label(CHART_BYTES, (double)bytes, text, sizeof(text));
		half = CHARACTER_WIDTH * (double)strlen(text) / 2;
		if (x - half < free_from)
			continue;
		markup_label(panel->file, "muted", (struct markup_point){x, BOTTOM + 21},
			     MARKUP_MIDDLE, text);
		free_from = x + half + 4;
	}
	markup_label(panel->file, "muted", (struct markup_point){(LEFT + RIGHT) / 2.0, BOTTOM + 39},
		     MARKUP_MIDDLE,
		     panel->x.logarithmic ? "video memory (logarithmic)" : "video memory");
}

static void draw_y_axis(const struct panel *panel)
{
	const struct chart_axis *y = &panel->y;
	char text[32];

	for (unsigned i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
		double value = y->low + i * y->step, at = chart_axis_at(y, value);

		markup_line(panel->file, "grid", (struct markup_point){LEFT, at},
			    (struct markup_point){RIGHT, at});
		chart_axis_label(panel->metric->quantity, value, text, sizeof(text));
		markup_label(panel->file, "muted", (struct markup_point){LEFT - 7, at + 4},
			     MARKUP_END, text);
	}
	markup_line(panel->file, "axis", (struct markup_point){LEFT, BOTTOM},
		    (struct markup_point){RIGHT, BOTTOM});
}

/* ---- lines ---- */

static bool value_of(const struct panel *panel, const struct whatif_cell *cell, double *value)
{
	return cell->end == REPLAY_CLEAN && panel->metric->value(cell, value);
}

static void make_y_axis(struct panel *panel)
{
	const struct whatif_figure *figure = panel->figure;
	unsigned policies = figure->grid->options->policy_count;
	double low = panel->metric->base, high = panel->metric->bound, value;

	for (unsigned i = 0; i < figure->sizes * policies * figure->variants; i++) {
		unsigned size = figure->order[i / policies / figure->variants];
		const struct whatif_cell *cell = whatif_figure_cell(
			figure, size, i / figure->variants % policies, i % figure->variants);

		if (!value_of(panel, cell, &value))
			continue;
		if (value > high)
			high = value;
		/* Faster than recorded: the axis begins at 0. */
		if (value < low)
			low = 0;
	}
	panel->y = chart_axis_of_values(panel->metric->quantity, low, high);
	panel->y.from = BOTTOM;
	panel->y.to = TOP;
}

static void tooltip_of(const struct panel *panel, const struct whatif_cell *cell, char *text,
		       size_t size)
{
	char name[64], memory[64];
	struct whatif_text figures;

	whatif_figure_name(panel->figure, cell, name, sizeof(name));
	whatif_text_memory(cell, memory, sizeof(memory));
	if (cell->end != REPLAY_CLEAN) {
		snprintf(text, size, "%s, %s\nno figures: %s", name, memory, cell->status_text);
		return;
	}
	whatif_text_figures(cell, &figures);
	snprintf(text, size,
		 "%s, %s\npaged in beyond first uses: %s\nlate frames: %s\np99 latency: %s\n"
		 "longest stall: %s\nslow-down: %s",
		 name, memory, figures.again, figures.late, figures.p99, figures.stall,
		 figures.slower);
}

/* A point, a ring around the one of the knee; a cross on the axis where there are no figures. */
static void draw_point(const struct panel *panel, const struct whatif_cell *cell,
		       const struct whatif_line *line, bool knee)
{
	struct markup_point at = {chart_axis_at(&panel->x, (double)cell->vram_bytes), BOTTOM};
	bool failed = cell->end != REPLAY_CLEAN;
	char tooltip[512];
	double value;

	if (!failed && !value_of(panel, cell, &value))
		return;
	tooltip_of(panel, cell, tooltip, sizeof(tooltip));
	markup_group(panel->file, line->class_name, tooltip);
	if (failed) {
		markup_shape(panel->file, "stroke", MARKUP_CROSS, at);
	} else {
		at.y = chart_axis_at(&panel->y, value);
		markup_shape(panel->file, line->marker_class, line->shape, at);
		if (knee)
			fprintf(panel->file,
				"<circle class=\"knee\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\"/>\n", at.x,
				at.y);
	}
	markup_group_end(panel->file);
}

/* The line has a gap where there is no value. */
static void draw_line(const struct panel *panel, unsigned policy, unsigned variant)
{
	const struct whatif_figure *figure = panel->figure;
	const struct whatif_options *options = figure->grid->options;
	struct whatif_line line = whatif_line_of(options->policies[policy], variant);
	struct markup_point points[SIZE_LIST_MAX];
	unsigned count = 0;
	double value;

	markup_group(panel->file, line.class_name, NULL);
	for (unsigned i = 0; i <= figure->sizes; i++) {
		const struct whatif_cell *cell =
			i < figure->sizes
				? whatif_figure_cell(figure, figure->order[i], policy, variant)
				: NULL;

		if (cell && value_of(panel, cell, &value)) {
			points[count].x = chart_axis_at(&panel->x, (double)cell->vram_bytes);
			points[count++].y = chart_axis_at(&panel->y, value);
			continue;
		}
		if (count > 1)
			markup_path(panel->file, line.dashes, points, count);
		count = 0;
	}
	markup_group_end(panel->file);
}

static void draw_points(const struct panel *panel, unsigned policy, unsigned variant)
{
	const struct whatif_figure *figure = panel->figure;
	const struct whatif_options *options = figure->grid->options;
	struct whatif_line line = whatif_line_of(options->policies[policy], variant);
	unsigned variants = options->link_count * options->model_count;
	const struct whatif_cell *knee = whatif_grid_knee(
		figure->grid, figure->recording, policy * variants + figure->variant + variant);

	for (unsigned i = 0; i < figure->sizes; i++) {
		const struct whatif_cell *cell =
			whatif_figure_cell(figure, figure->order[i], policy, variant);

		draw_point(panel, cell, &line, cell == knee);
	}
}

/*
 * Markers lie on all lines, and those of the first policies on the others, but the thin ones of
 * `reference` on all.
 */
static void draw_series(const struct panel *panel)
{
	const struct whatif_options *options = panel->figure->grid->options;
	unsigned variants = panel->figure->variants, count = options->policy_count * variants;

	for (unsigned i = 0; i < count; i++)
		draw_line(panel, i / variants, i % variants);
	for (unsigned i = count; i-- > 0;)
		if (options->policies[i / variants] != REPLAY_POLICY_REFERENCE)
			draw_points(panel, i / variants, i % variants);
	for (unsigned i = count; i-- > 0;)
		if (options->policies[i / variants] == REPLAY_POLICY_REFERENCE)
			draw_points(panel, i / variants, i % variants);
}

void whatif_panel(FILE *file, const struct whatif_figure *figure, unsigned index,
		  struct markup_point corner)
{
	struct panel panel = {
		.file = file, .figure = figure, .metric = &metrics[index], .x = figure->x};

	panel.x.from = LEFT + INSET;
	panel.x.to = RIGHT - INSET;
	make_y_axis(&panel);
	fprintf(file, "<g transform=\"translate(%.0f %.0f)\">\n", corner.x, corner.y);
	markup_label(file, "head", (struct markup_point){8, 20}, MARKUP_START, panel.metric->title);
	markup_label(file, "muted", (struct markup_point){8, 37}, MARKUP_START,
		     panel.metric->explanation);
	draw_y_axis(&panel);
	draw_x_axis(&panel);
	if (panel.metric->bound > panel.y.low && panel.metric->bound <= panel.y.high) {
		double at = chart_axis_at(&panel.y, panel.metric->bound);

		markup_line(file, "bound", (struct markup_point){LEFT, at},
			    (struct markup_point){RIGHT, at});
	}
	draw_series(&panel);
	fputs("</g>\n", file);
}

/* ---- legend ---- */

struct legend {
	FILE *file; /* NULL: the entries are only counted */
	struct markup_point at;
};

/* Returns where the next entry's sample begins, and moves on behind its text. */
static struct markup_point place(struct legend *legend, const char *text)
{
	double width = 34 + CHARACTER_WIDTH * (double)strlen(text) + 18;
	struct markup_point at;

	if (legend->at.x > LEGEND_LEFT && legend->at.x + width > WHATIF_CHART_WIDTH - LEGEND_LEFT) {
		legend->at.x = LEGEND_LEFT;
		legend->at.y += LEGEND_ROW;
	}
	at = legend->at;
	legend->at.x += width;
	if (legend->file)
		markup_label(legend->file, "", (struct markup_point){at.x + 38, at.y + 4},
			     MARKUP_START, text);
	return at;
}

static void add_line(struct legend *legend, const struct whatif_line *line, const char *name)
{
	struct markup_point at = place(legend, name);
	const struct markup_point ends[] = {at, {at.x + 32, at.y}};

	if (!legend->file)
		return;
	markup_group(legend->file, line->class_name, NULL);
	markup_path(legend->file, line->dashes, ends, 2);
	markup_shape(legend->file, line->marker_class, line->shape,
		     (struct markup_point){at.x + 16, at.y});
	markup_group_end(legend->file);
}

static void add_marks(struct legend *legend, const struct whatif_figure *figure)
{
	struct markup_point at;

	if (figure->knees) {
		at = place(legend, "knee: the least of these sizes with under 1 % of late frames");
		if (legend->file)
			fprintf(legend->file,
				"<g class=\"plain\"><circle class=\"knee\" cx=\"%.1f\" cy=\"%.1f\" "
				"r=\"9\"/></g>\n",
				at.x + 22, at.y);
	}
	if (figure->failures) {
		at = place(legend, "no figures: the replay failed");
		if (legend->file) {
			markup_group(legend->file, "plain", NULL);
			markup_shape(legend->file, "stroke", MARKUP_CROSS,
				     (struct markup_point){at.x + 22, at.y});
			markup_group_end(legend->file);
		}
	}
}

double whatif_legend(FILE *file, const struct whatif_figure *figure, double y)
{
	const struct whatif_options *options = figure->grid->options;
	struct legend legend = {file, {LEGEND_LEFT, y + LEGEND_ROW / 2.0}};
	char name[64];

	for (unsigned i = 0; i < options->policy_count * figure->variants; i++) {
		unsigned policy = i / figure->variants, variant = i % figure->variants;
		struct whatif_line line = whatif_line_of(options->policies[policy], variant);

		whatif_figure_name(figure, whatif_figure_cell(figure, 0, policy, variant), name,
				   sizeof(name));
		add_line(&legend, &line, name);
	}
	add_marks(&legend, figure);
	return legend.at.y + LEGEND_ROW / 2.0 - y;
}
