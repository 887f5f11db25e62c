/* SPDX-License-Identifier: MIT */
/*
 * The page: a head, an element with the figures of each run as JSON and one with each column of its
 * timeline, then the drawing library and the script, which fill the body.
 */
#include "markup.h"
#include "json_text.h"
#include "report.h"
#include "report_assets.h"
#include "report_columns.h"

/* ---- figures of a run ---- */

static json_t *segments_of(const struct timeline *t)
{
	json_t *segments = json_array();

	for (unsigned i = 0; i < TIMELINE_SEGMENTS_MAX; i++)
		if (t->segment[i].known)
			json_array_append_new(segments,
					      json_pack("{s:i,s:I,s:i}", "id", i, "bytes",
							(json_int_t)t->segment[i].bytes, "flags",
							(int)t->segment[i].flags));
	return segments;
}

static json_t *processes_of(const struct timeline *t)
{
	json_t *processes = json_array();

	for (uint32_t i = 0; i < t->processes.count; i++) {
		const struct timeline_process *p = &t->processes.row[i];

		json_array_append_new(processes,
				      json_pack("{s:I,s:o}", "number", (json_int_t)p->number,
						"name", json_text(p->name ? p->name : "")));
	}
	return processes;
}

static json_t *messages_of(const struct timeline *t)
{
	json_t *messages = json_array();

	for (uint32_t i = 0; i < t->messages.count; i++) {
		const struct timeline_message *m = &t->messages.row[i];

		json_array_append_new(messages, json_pack("{s:i,s:o,s:I,s:I}", "type", (int)m->type,
							  "text", json_text(m->text), "first",
							  (json_int_t)m->first_ns, "count",
							  (json_int_t)m->count));
	}
	return messages;
}

static json_t *rows_of(const struct report_columns *columns)
{
	json_t *rows = json_object();

#define COLUMN(name) json_object_set_new(rows, #name, json_integer(columns->name.rows));
	REPORT_COLUMNS(COLUMN)
#undef COLUMN
	return rows;
}

static json_t *figures_of(const struct report_run *run, const struct report_columns *columns)
{
	const struct timeline *t = &run->timeline;

	return json_pack("{s:o,s:O,s:b,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "path",
			 json_text(run->path), "about", run->about, "cut", run->cut, "events",
			 (json_int_t)t->events, "begin", (json_int_t)t->begin_ns, "end",
			 (json_int_t)t->end_ns, "messages_left_out",
			 (json_int_t)t->messages_left_out, "segments", segments_of(t), "processes",
			 processes_of(t), "stalls", report_stalls_json(&run->stalls, t), "messages",
			 messages_of(t), "rows", rows_of(columns));
}

/* ---- the page ---- */

static bool print_column(FILE *file, unsigned run, const char *name, const struct column *column)
{
	fprintf(file, "<script type=\"text/plain\" id=\"run%u-%s\">", run, name);
	bool good = column_print(file, column);

	fputs("</script>\n", file);
	return good;
}

static bool print_columns(FILE *file, unsigned run, const struct report_columns *columns)
{
	bool good = true;

#define COLUMN(name) good = good && print_column(file, run, #name, &columns->name);
	REPORT_COLUMNS(COLUMN)
#undef COLUMN
	return good;
}

static bool print_run(FILE *file, const struct report_run *run, unsigned index)
{
	struct report_columns columns = {0};
	json_t *figures;
	bool good;

	report_columns_fill(&columns, &run->timeline);
	figures = figures_of(run, &columns);
	good = figures != NULL;
	if (good) {
		fprintf(file, "<script type=\"application/json\" id=\"run%u\">", index);
		/* An escaped slash cannot end the element. */
		good = json_dumpf(figures, file, JSON_COMPACT | JSON_ESCAPE_SLASH) == 0 ||
		       ferror(file);
		fputs("</script>\n", file);
	}
	json_decref(figures);
	good = good && print_columns(file, index, &columns);
	report_columns_finish(&columns);
	return good;
}

static void print_script(FILE *file, const char *script)
{
	fputs("<script>", file);
	fputs(script, file);
	fputs("</script>\n", file);
}

bool report_page(FILE *file, const struct report_run *runs, unsigned count)
{
	bool good = true;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      file);
	markup_text(file, runs[0].path);
	fputs(" - vidmm report</title>\n<style>", file);
	fputs(report_style, file);
	fputs("</style>\n</head>\n<body>\n<header id=\"head\"><h1>vidmm report</h1></header>\n"
	      "<main id=\"main\"><p id=\"loading\">The page reads its data.</p>\n"
	      "<noscript><p>This page draws with JavaScript.</p></noscript></main>\n",
	      file);
	for (unsigned i = 0; i < count && good; i++)
		good = print_run(file, &runs[i], i);
	print_script(file, report_library);
	print_script(file, report_script);
	fputs("</body>\n</html>\n", file);
	return good;
}
