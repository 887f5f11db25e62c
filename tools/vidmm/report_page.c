/* SPDX-License-Identifier: MIT */
/*
 * The page: a head, an element with the figures of each run as JSON and one with each column of its
 * timeline, then the drawing library and the script, which fill the body.
 */
#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "report.h"
#include "report_assets.h"

/* The names of columns in the page; see enum timeline_column. */
static const char *const column_names[TIMELINE_COLUMNS] = {
	[TIMELINE_PROCESS_NUMBER] = "process_number",
	[TIMELINE_ALLOCATION_PROCESS] = "allocation_process",
	[TIMELINE_ALLOCATION_HANDLE] = "allocation_handle",
	[TIMELINE_ALLOCATION_BYTES] = "allocation_bytes",
	[TIMELINE_ALLOCATION_FLAGS] = "allocation_flags",
	[TIMELINE_ALLOCATION_CREATED] = "allocation_created",
	[TIMELINE_ALLOCATION_LIFE] = "allocation_life",
	[TIMELINE_ALLOCATION_IN] = "allocation_in",
	[TIMELINE_ALLOCATION_OUT] = "allocation_out",
	[TIMELINE_ALLOCATION_EVICTIONS] = "allocation_evictions",
	[TIMELINE_MOVE_TIME] = "move_time",
	[TIMELINE_MOVE_ALLOCATION] = "move_allocation",
	[TIMELINE_MOVE_REASON] = "move_reason",
	[TIMELINE_MOVE_SEGMENT] = "move_segment",
	[TIMELINE_MOVE_OFFSET] = "move_offset",
	[TIMELINE_MOVE_PIECES] = "move_pieces",
	[TIMELINE_PIECE_BYTES] = "piece_bytes",
	[TIMELINE_PIECE_OFFSET] = "piece_offset",
	[TIMELINE_PACKET_TIME] = "packet_time",
	[TIMELINE_PACKET_NS] = "packet_ns",
	[TIMELINE_PACKET_NODE] = "packet_node",
	[TIMELINE_PACKET_PROCESS] = "packet_process",
	[TIMELINE_WAIT_TIME] = "wait_time",
	[TIMELINE_WAIT_NS] = "wait_ns",
	[TIMELINE_WAIT_PROCESS] = "wait_process",
	[TIMELINE_WAIT_REASON] = "wait_reason",
	[TIMELINE_WAIT_ALLOCATION] = "wait_allocation",
	[TIMELINE_MARK_TIME] = "mark_time",
	[TIMELINE_MARK_TYPE] = "mark_type",
	[TIMELINE_MARK_ALLOCATION] = "mark_allocation",
};

/* Returns a JSON string of a text from a client or a miniport, which may be no UTF-8. */
static json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	char *ascii = string ? NULL : strdup(text);

	for (char *c = ascii; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	if (ascii)
		string = json_string(ascii);
	free(ascii);
	return string;
}

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

	for (uint32_t i = 0; i < t->process_count; i++) {
		const struct timeline_process *p = &t->processes[i];

		json_array_append_new(processes,
				      json_pack("{s:I,s:o}", "number", (json_int_t)p->number,
						"name", json_text(p->name ? p->name : "")));
	}
	return processes;
}

static json_t *stalls_of(const struct timeline *t)
{
	json_t *stalls = json_array();

	for (uint32_t i = 0; i < t->stall_count; i++) {
		const struct timeline_stall *s = &t->stall[i];

		json_array_append_new(stalls,
				      json_pack("{s:I,s:I,s:I,s:I,s:i,s:I}", "end",
						(json_int_t)s->time_ns, "ns", (json_int_t)s->ns,
						"process", (json_int_t)s->process, "object",
						(json_int_t)s->object, "door", (int)s->door,
						"status", (json_int_t)s->status));
	}
	return stalls;
}

static json_t *messages_of(const struct timeline *t)
{
	json_t *messages = json_array();

	for (uint32_t i = 0; i < t->message_count; i++) {
		const struct timeline_message *m = &t->messages[i];

		json_array_append_new(messages, json_pack("{s:i,s:o,s:I,s:I}", "type", (int)m->type,
							  "text", json_text(m->text), "first",
							  (json_int_t)m->first_ns, "count",
							  (json_int_t)m->count));
	}
	return messages;
}

static json_t *rows_of(const struct timeline *t)
{
	json_t *rows = json_object();

	for (unsigned i = 0; i < TIMELINE_COLUMNS; i++)
		json_object_set_new(rows, column_names[i], json_integer((json_int_t)t->rows[i]));
	return rows;
}

static json_t *figures_of(const struct report_run *run)
{
	const struct timeline *t = &run->timeline;

	return json_pack("{s:o,s:O,s:b,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o}", "path",
			 json_text(run->path), "about", run->about, "cut", run->cut, "events",
			 (json_int_t)t->events, "begin", (json_int_t)t->begin_ns, "end",
			 (json_int_t)t->end_ns, "messages_left_out",
			 (json_int_t)t->messages_left_out, "segments", segments_of(t), "processes",
			 processes_of(t), "stalls", stalls_of(t), "messages", messages_of(t),
			 "rows", rows_of(t));
}

/* ---- the page ---- */

static bool print_run(FILE *file, const struct report_run *run, unsigned index)
{
	json_t *figures = figures_of(run);
	bool good = figures != NULL;

	if (!good)
		return false;
	fprintf(file, "<script type=\"application/json\" id=\"run%u\">", index);
	/* An escaped slash cannot end the element. */
	good = json_dumpf(figures, file, JSON_COMPACT | JSON_ESCAPE_SLASH) == 0 || ferror(file);
	json_decref(figures);
	fputs("</script>\n", file);
	for (unsigned i = 0; i < TIMELINE_COLUMNS && good; i++) {
		fprintf(file, "<script type=\"text/plain\" id=\"run%u-%s\">", index,
			column_names[i]);
		good = column_print(file, &run->timeline.column[i]);
		fputs("</script>\n", file);
	}
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
