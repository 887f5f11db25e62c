/* SPDX-License-Identifier: MIT */
/*
 * `vidmm export`: a recording of events for other programs: a trace for Perfetto, tables as CSV
 * files or as an SQLite database (docs/export.md).
 */
#ifndef VIDMM_TOOLS_EXPORT_H
#define VIDMM_TOOLS_EXPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "timeline.h"

/* What is exported: a timeline, and the names in it. */
struct export_run {
	const char *path; /* of the recording */
	const json_t *about;
	struct timeline timeline;
};

/* Returns the name of a reason of an event type, as "pressure"; "" if it has none. */
const char *export_reason(const struct export_run *run, uint16_t type, uint16_t reason);
/* Returns the name of an event type, as "residency". */
const char *export_type(const struct export_run *run, uint16_t type);

/* ---- export_perfetto.c ---- */
/* Writes the trace. Returns false when out of memory; errors of FILE are the caller's. */
bool export_perfetto(FILE *file, const struct export_run *run);

/* ---- export_tables.c: the tables of CSV and SQLite ---- */
enum export_kind { EXPORT_NONE, EXPORT_NUMBER, EXPORT_TEXT };

struct export_value {
	enum export_kind kind; /* NONE: no value */
	uint64_t number;
	const char *text;
};

/* Where rows go. The functions return false after a message. */
struct export_sink {
	/* COLUMNS: names and their SQL types, as "time_ns INTEGER", up to NULL. */
	bool (*table)(struct export_sink *sink, const char *name, const char *const *columns);
	bool (*row)(struct export_sink *sink, const struct export_value *values);
};
#define EXPORT_COLUMNS_MAX 16u
bool export_tables(struct export_sink *sink, const struct export_run *run);
/* Adds the table of all events: begins it, and adds one. */
bool export_events_table(struct export_sink *sink);
bool export_event(struct export_sink *sink, const struct export_run *run,
		  const struct vidmm_event *event, const char *text);

/* ---- export_csv.c ---- */
/* Opens a folder for a file of each table, and makes the folder. Returns NULL after a message. */
struct export_sink *export_csv_open(const char *folder);
/* Returns false after a message if a file could not be written. NULL: nothing. */
bool export_csv_close(struct export_sink *sink);

/* ---- export_sqlite.c ---- */
/* Creates a database, which replaces a file of that name. Returns NULL after a message. */
struct export_sink *export_sqlite_open(const char *path);
bool export_sqlite_close(struct export_sink *sink);

int export_main(int argc, const char **argv);

#endif
