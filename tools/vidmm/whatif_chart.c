/* SPDX-License-Identifier: MIT */
/* The figures of `vidmm what-if`: which there are, what each shows, and the file of --svg. */
#include <stdio.h>
#include <string.h>

#include "policy.h"
#include "units.h"
#include "whatif_chart.h"

#define MARGIN       16
#define TITLE_HEIGHT 24
#define TOP_HEIGHT   22
#define NOTE_HEIGHT  17
#define PANELS_LEFT  8
#define PANEL_WIDTH  572
#define PANEL_HEIGHT 300

/* Colors are those of Okabe and Ito, which people with color vision deficiencies tell apart. */
static const char style[] =
	".chart text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}\n"
	".chart .title{font-size:16px;font-weight:600}\n"
	".chart .head{font-size:13px;font-weight:600}\n"
	".chart .muted{fill:#57606a}\n"
	".chart .ground{fill:#fff}\n"
	".chart .grid{stroke:#d8dee4}\n"
	".chart .axis{stroke:#57606a;fill:none}\n"
	".chart .bound{stroke:#57606a;stroke-width:1.5;stroke-dasharray:1.5 4}\n"
	".chart .line{fill:none;stroke-width:2}\n"
	".chart .mark{stroke-width:1.5}\n"
	".chart .hollow{fill:#fff;stroke-width:1.5}\n"
	".chart .stroke{fill:none;stroke-width:2}\n"
	".chart .knee{fill:none;stroke-width:1.5}\n"
	".chart .plain{stroke:#57606a;fill:#57606a}\n"
	".chart .lru{stroke:#0072b2;fill:#0072b2}\n"
	".chart .clock{stroke:#e69f00;fill:#e69f00}\n"
	".chart .mru{stroke:#009e73;fill:#009e73}\n"
	".chart .predicted{stroke:#cc79a7;fill:#cc79a7}\n"
	".chart .reference{stroke:#000;fill:#000}\n"
	".chart .file0{stroke:#d55e00;fill:#d55e00}\n"
	".chart .file1{stroke:#8250df;fill:#8250df}\n"
	".chart .file2{stroke:#a0522d;fill:#a0522d}\n"
	".chart .file3{stroke:#6b7d00;fill:#6b7d00}\n"
	".chart .file4{stroke:#cf222e;fill:#cf222e}\n"
	".chart .file5{stroke:#1b7c83;fill:#1b7c83}\n"
	".chart .file6{stroke:#7d4e00;fill:#7d4e00}\n"
	".chart .file7{stroke:#737a82;fill:#737a82}\n"
	"@media (prefers-color-scheme:dark){\n"
	".chart text{fill:#e6edf3}\n"
	".chart .muted{fill:#9da7b1}\n"
	".chart .ground,.chart .hollow{fill:#15191f}\n"
	".chart .grid{stroke:#2d333b}\n"
	".chart .axis,.chart .bound{stroke:#9da7b1}\n"
	".chart .plain{stroke:#9da7b1;fill:#9da7b1}\n"
	".chart .lru{stroke:#56b4e9;fill:#56b4e9}\n"
	".chart .reference{stroke:#fff;fill:#fff}\n"
	"}\n";

void whatif_chart_style(FILE *file)
{
	fputs(style, file);
}

static unsigned variant_count(const struct whatif_grid *grid)
{
	return grid->options->link_count * grid->options->model_count;
}

static unsigned figures_per_recording(const struct whatif_grid *grid)
{
	unsigned variants = variant_count(grid);

	return variants > WHATIF_CHART_VARIANTS_MAX ? variants : 1;
}

unsigned whatif_figure_count(const struct whatif_grid *grid)
{
	return grid->options->recording_count * figures_per_recording(grid);
}

const struct whatif_cell *whatif_figure_cell(const struct whatif_figure *figure, unsigned size,
					     unsigned policy, unsigned variant)
{
	const struct whatif_grid *grid = figure->grid;
	unsigned row = figure->recording * grid->options->sizes.count + size;

	return &grid->cells[row * whatif_grid_series(grid) + policy * variant_count(grid) +
			    figure->variant + variant];
}

const struct whatif_cell *whatif_figure_first(const struct whatif_figure *figure)
{
	return whatif_figure_cell(figure, 0, 0, 0);
}

/* Inserts a size into the ascending order; equal amounts stay in the order of the list. */
static void add_size(struct whatif_figure *figure, unsigned size)
{
	uint64_t bytes = whatif_figure_cell(figure, size, 0, 0)->vram_bytes;
	unsigned at = figure->sizes++;

	for (; at > 0; at--) {
		unsigned before = figure->order[at - 1];

		if (whatif_figure_cell(figure, before, 0, 0)->vram_bytes <= bytes)
			break;
		figure->order[at] = before;
	}
	figure->order[at] = size;
}

static void note_marks(struct whatif_figure *figure)
{
	const struct whatif_options *options = figure->grid->options;

	for (unsigned policy = 0; policy < options->policy_count; policy++)
		for (unsigned variant = 0; variant < figure->variants; variant++)
			for (unsigned i = 0; i < figure->sizes; i++) {
				const struct whatif_cell *cell = whatif_figure_cell(
					figure, figure->order[i], policy, variant);

				figure->failures |= cell->end != REPLAY_CLEAN;
				figure->knees |= whatif_cell_in_time(cell);
			}
}

void whatif_figure_make(struct whatif_figure *figure, const struct whatif_grid *grid,
			unsigned index)
{
	unsigned each = figures_per_recording(grid);
	uint64_t bytes[SIZE_LIST_MAX];

	*figure = (struct whatif_figure){.grid = grid,
					 .recording = index / each,
					 .variant = index % each,
					 .variants = each > 1 ? 1 : variant_count(grid)};
	if (!whatif_figure_first(figure)->measured)
		return;
	for (unsigned i = 0; i < grid->options->sizes.count; i++)
		add_size(figure, i);
	for (unsigned i = 0; i < figure->sizes; i++)
		bytes[i] = whatif_figure_cell(figure, figure->order[i], 0, 0)->vram_bytes;
	figure->x = chart_axis_of_sizes(bytes, figure->sizes);
	note_marks(figure);
}

const char *whatif_figure_name(const struct whatif_figure *figure, const struct whatif_cell *cell,
			       char *text, size_t size)
{
	const struct whatif_options *options = figure->grid->options;
	bool many = figure->variants > 1;
	bool links = many && options->link_count > 1, models = many && options->model_count > 1;

	snprintf(text, size, "%s%s%s%s%s", policy_name(cell->policy), links ? ", " : "",
		 links ? cell->link->name : "", models ? ", " : "",
		 models ? whatif_model_name(cell) : "");
	return text;
}

/* Text of the first uses of all variants, which are equal or a range. */
static void first_uses(const struct whatif_figure *figure, char *text, size_t size)
{
	uint64_t least = UINT64_MAX, most = 0;
	char low[32], high[32];

	for (unsigned i = 0; i < figure->variants; i++) {
		const struct whatif_cell *first = whatif_figure_cell(figure, 0, 0, i)->first;

		if (first->end != REPLAY_CLEAN)
			continue;
		if (first->outcome->bytes_paged_in < least)
			least = first->outcome->bytes_paged_in;
		if (first->outcome->bytes_paged_in > most)
			most = first->outcome->bytes_paged_in;
	}
	units_bytes(least, low, sizeof(low));
	units_bytes(most, high, sizeof(high));
	if (least > most)
		snprintf(text, size, "unknown");
	else if (strcmp(low, high) == 0)
		snprintf(text, size, "%s", low);
	else
		snprintf(text, size, "%s to %s", low, high);
}

static bool has_reference(const struct whatif_options *options)
{
	for (unsigned i = 0; i < options->policy_count; i++)
		if (options->policies[i] == REPLAY_POLICY_REFERENCE)
			return true;
	return false;
}

static unsigned note_count(const struct whatif_figure *figure)
{
	return 2 + has_reference(figure->grid->options);
}

static void write_notes(FILE *file, const struct whatif_figure *figure, double y)
{
	char uses[96], text[256];
	const char *const notes[] = {
		text,
		"It bounds buffers that are used in video memory. With little memory some are "
		"used in the aperture, over the link: they are not paged in, and slow the GPU "
		"down instead.",
		"reference reads the recording ahead. It is a yardstick, not a bound: it orders by "
		"the next use, and which hole a buffer fits into counts, too.",
	};

	first_uses(figure, uses, sizeof(uses));
	snprintf(text, sizeof(text),
		 "Lower bound of paging (0 in the first panel): first uses, %s, which is what "
		 "100 %% of the memory (the peak of live buffers) pages in with lru.",
		 uses);
	for (unsigned i = 0; i < note_count(figure); i++)
		markup_label(file, "muted", (struct markup_point){MARGIN, y + NOTE_HEIGHT * i},
			     MARKUP_START, notes[i]);
}

/* A long name keeps its end, from a byte that begins a character. */
static const char *end_of_name(const char *name, char *text, size_t size)
{
	size_t length = strlen(name);
	const char *from = name;

	if (length > 100) {
		from = name + length - 100;
		while ((*from & 0xc0) == 0x80)
			from++;
	}
	snprintf(text, size, "%s%s", from > name ? "\u2026" : "", from);
	return text;
}

static double legend_top(const struct whatif_figure *figure)
{
	return (figure->titled ? TITLE_HEIGHT : 0) + TOP_HEIGHT;
}

static double panels_top(const struct whatif_figure *figure)
{
	return legend_top(figure) + whatif_legend(NULL, figure, 0);
}

double whatif_figure_height(const struct whatif_figure *figure)
{
	if (figure->sizes == 0)
		return legend_top(figure) + MARGIN;
	return panels_top(figure) + 2 * PANEL_HEIGHT + NOTE_HEIGHT * note_count(figure) + MARGIN;
}

static void write_title(FILE *file, const struct whatif_figure *figure)
{
	const struct whatif_options *options = figure->grid->options;
	const struct whatif_cell *cell = whatif_figure_first(figure);
	char text[160];

	end_of_name(cell->recording, text, sizeof(text));
	if (figure->titled)
		markup_label(file, "title", (struct markup_point){MARGIN, 24}, MARKUP_START, text);
	if (figure->sizes == 0)
		snprintf(text, sizeof(text), "no figures: %s", cell->status_text);
	else
		snprintf(text, sizeof(text), "%s%s%s",
			 figure->variants == 1 || options->link_count == 1 ? cell->link->name : "",
			 figure->variants == 1 ? ", " : "",
			 figure->variants == 1 || options->model_count == 1
				 ? whatif_model_name(cell)
				 : "");
	markup_label(file, "muted", (struct markup_point){MARGIN, legend_top(figure) - 4},
		     MARKUP_START, text);
}

void whatif_figure_write(FILE *file, const struct whatif_figure *figure, double y)
{
	double height = whatif_figure_height(figure), top;

	fprintf(file,
		"<svg class=\"chart\" role=\"img\" y=\"%.0f\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\">\n<title>",
		y, WHATIF_CHART_WIDTH, height, WHATIF_CHART_WIDTH, height);
	markup_text(file, whatif_figure_first(figure)->recording);
	fputs("</title>\n", file);
	markup_rectangle(file, "ground", (struct markup_point){0, 0},
			 (struct markup_point){WHATIF_CHART_WIDTH, height});
	write_title(file, figure);
	if (figure->sizes > 0) {
		top = panels_top(figure);
		whatif_legend(file, figure, legend_top(figure));
		for (unsigned i = 0; i < WHATIF_PANELS; i++) {
			unsigned column = i % 2, row = i / 2;

			whatif_panel(file, figure, i,
				     (struct markup_point){PANELS_LEFT + column * PANEL_WIDTH,
							   top + row * PANEL_HEIGHT});
		}
		write_notes(file, figure, top + 2 * PANEL_HEIGHT + MARGIN);
	}
	fputs("</svg>\n", file);
}

void whatif_svg(FILE *file, const struct whatif_grid *grid)
{
	unsigned count = whatif_figure_count(grid);
	struct whatif_figure figure;
	double height = 0;

	for (unsigned i = 0; i < count; i++) {
		whatif_figure_make(&figure, grid, i);
		figure.titled = true;
		height += whatif_figure_height(&figure);
	}
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\">\n<style>\n:root{color-scheme:light dark}\n",
		WHATIF_CHART_WIDTH, height, WHATIF_CHART_WIDTH, height);
	whatif_chart_style(file);
	fputs("</style>\n", file);
	height = 0;
	for (unsigned i = 0; i < count; i++) {
		whatif_figure_make(&figure, grid, i);
		figure.titled = true;
		whatif_figure_write(file, &figure, height);
		height += whatif_figure_height(&figure);
	}
	fputs("</svg>\n", file);
}
