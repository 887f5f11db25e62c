/* SPDX-License-Identifier: MIT */
/* The result of `vidmm what-if` as one HTML page: figures, then tables of their values. */
#include <stdio.h>

#include "policy.h"
#include "whatif_chart.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta name=\"color-scheme\" content=\"light dark\">\n"
	"<title>vidmm what-if</title>\n<style>\n"
	"body{font:14px/1.45 system-ui,'Segoe UI','DejaVu Sans',sans-serif;max-width:1160px;"
	"margin:24px auto;padding:0 16px;color:#24292f;background:#fff}\n"
	"h1{font-size:20px}\nh2{font-size:16px;margin-top:32px;overflow-wrap:anywhere}\n"
	"svg.chart{max-width:100%;min-width:800px;height:auto}\n"
	".wide{overflow-x:auto}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:3px 12px;text-align:right;border-bottom:1px solid #d8dee4;"
	"white-space:nowrap}\n"
	"th.name,td.name{text-align:left}\ntr.knee td{font-weight:600}\n"
	"p.muted{color:#57606a}\n"
	"@media (prefers-color-scheme:dark){\nbody{color:#e6edf3;background:#15191f}\n"
	"th,td{border-color:#2d333b}\np.muted{color:#9da7b1}\n}\n";

static void table_cell(FILE *file, bool name, const char *text)
{
	fprintf(file, "<td%s>", name ? " class=\"name\"" : "");
	markup_text(file, text);
	fputs("</td>", file);
}

static void table_figures(FILE *file, const struct whatif_cell *cell)
{
	struct whatif_text text;

	if (cell->end != REPLAY_CLEAN) {
		fputs("<td class=\"name\" colspan=\"5\">failed: ", file);
		markup_text(file, cell->status_text);
		fputs("</td>", file);
		return;
	}
	whatif_text_figures(cell, &text);
	table_cell(file, false, text.again);
	table_cell(file, false, text.late);
	table_cell(file, false, text.p99);
	table_cell(file, false, text.stall);
	table_cell(file, false, text.slower);
}

static void table_row(FILE *file, const struct whatif_cell *cell, bool knee)
{
	char memory[64] = "-";

	if (cell->measured)
		whatif_text_memory(cell, memory, sizeof(memory));
	fputs(knee ? "<tr class=\"knee\">" : "<tr>", file);
	table_cell(file, false, memory);
	table_cell(file, true, policy_name(cell->policy));
	table_cell(file, true, cell->link->name);
	table_cell(file, true, whatif_model_name(cell));
	table_figures(file, cell);
	fputs("</tr>\n", file);
}

static void table(FILE *file, const struct whatif_grid *grid, unsigned recording)
{
	unsigned series = whatif_grid_series(grid);
	unsigned count = grid->options->sizes.count * series;

	fputs("<div class=\"wide\"><table>\n"
	      "<thead><tr><th>memory</th><th class=\"name\">policy</th>"
	      "<th class=\"name\">link</th><th class=\"name\">model</th><th>paged in again</th>"
	      "<th>late frames</th><th>p99 latency</th><th>longest stall</th><th>slow-down</th>"
	      "</tr></thead>\n<tbody>\n",
	      file);
	for (unsigned i = 0; i < count; i++) {
		const struct whatif_cell *cell = &grid->cells[recording * count + i];

		table_row(file, cell, cell == whatif_grid_knee(grid, recording, i % series));
	}
	fputs("</tbody>\n</table></div>\n", file);
}

static void section(FILE *file, const struct whatif_grid *grid, unsigned recording)
{
	unsigned each = whatif_figure_count(grid) / grid->options->recording_count;
	struct whatif_figure figure;

	fputs("<section>\n<h2>", file);
	markup_text(file, grid->options->recordings[recording]);
	fputs("</h2>\n", file);
	for (unsigned i = 0; i < each; i++) {
		whatif_figure_make(&figure, grid, recording * each + i);
		fputs("<div class=\"wide\">\n", file);
		whatif_figure_write(file, &figure, 0);
		fputs("</div>\n", file);
	}
	table(file, grid, recording);
	fputs("</section>\n", file);
}

void whatif_html(FILE *file, const struct whatif_grid *grid)
{
	fputs(head, file);
	whatif_chart_style(file);
	fprintf(file, "</style>\n</head>\n<body>\n<h1>vidmm what-if</h1>\n<p class=\"muted\">");
	fprintf(file, "Each recording was replayed alone, by vidmm %s. ", vidmm_version());
	fputs("A pointer on a marker shows its values. Bold rows: the knee, which is the least "
	      "memory of these with less than 1 % of late frames.</p>\n",
	      file);
	for (unsigned i = 0; i < grid->options->recording_count; i++)
		section(file, grid, i);
	fputs("</body>\n</html>\n", file);
}
