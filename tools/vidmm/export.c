/* SPDX-License-Identifier: MIT */
#include "export.h"

#include <errno.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "record_status.h"

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	char *perfetto, *csv, *sqlite;
	int help;
};

struct sinks {
	struct export_sink *csv, *sqlite; /* NULL: none */
};

/* ---- names ---- */

const char *export_type(const struct export_run *run, uint16_t type)
{
	const json_t *event = json_array_get(json_object_get(run->about, "events"), type);
	const char *name = json_string_value(json_object_get(event, "name"));

	return name ? name : "";
}

const char *export_reason(const struct export_run *run, uint16_t type, uint16_t reason)
{
	const json_t *event = json_array_get(json_object_get(run->about, "events"), type);
	char number[8];
	const char *name;

	snprintf(number, sizeof(number), "%u", reason);
	name = json_string_value(json_object_get(json_object_get(event, "reasons"), number));
	return name ? name : "";
}

/* ---- the recording ---- */

static bool open_sinks(const struct raw *raw, struct sinks *sinks)
{
	if (raw->csv && !(sinks->csv = export_csv_open(raw->csv)))
		return false;
	if (raw->sqlite && !(sinks->sqlite = export_sqlite_open(raw->sqlite)))
		return false;
	return (!sinks->csv || export_events_table(sinks->csv)) &&
	       (!sinks->sqlite || export_events_table(sinks->sqlite));
}

static bool close_sinks(struct sinks *sinks)
{
	bool csv = export_csv_close(sinks->csv);

	return export_sqlite_close(sinks->sqlite) && csv;
}

static bool add_event(const struct sinks *sinks, struct export_run *run,
		      const struct vidmm_event *event, const char *text)
{
	timeline_add(&run->timeline, event, text);
	return (!sinks->csv || export_event(sinks->csv, run, event, text)) &&
	       (!sinks->sqlite || export_event(sinks->sqlite, run, event, text));
}

/* A recording that ends in the middle of a chunk is exported as far as it goes. */
static enum replay_status read_events(struct record_reader *reader, const struct sinks *sinks,
				      struct export_run *run)
{
	struct vidmm_event event;
	const char *text;
	enum record_result result;

	while ((result = record_next(reader, &event, &text)) == RECORD_EVENT)
		if (!add_event(sinks, run, &event, text))
			return REPLAY_ENVIRONMENT;
	enum replay_status status = record_end(reader, result);
	if (status != REPLAY_CLEAN || timeline_end(&run->timeline))
		return status;
	fprintf(stderr, "vidmm export: out of memory\n");
	return REPLAY_ENVIRONMENT;
}

static enum replay_status write_perfetto(const char *path, const struct export_run *run)
{
	FILE *file = fopen(path, "w");
	bool memory, good;

	if (!file) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	memory = export_perfetto(file, run);
	good = fflush(file) == 0 && !ferror(file);
	if (!memory)
		fprintf(stderr, "vidmm export: out of memory\n");
	else if (!good)
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
	fclose(file);
	return memory && good ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;
}

static enum replay_status export_all(struct record_reader *reader, const struct raw *raw,
				     struct export_run *run)
{
	struct sinks sinks = {NULL, NULL};
	enum replay_status status =
		open_sinks(raw, &sinks) ? read_events(reader, &sinks, run) : REPLAY_ENVIRONMENT;

	if (status == REPLAY_CLEAN && ((sinks.csv && !export_tables(sinks.csv, run)) ||
				       (sinks.sqlite && !export_tables(sinks.sqlite, run))))
		status = REPLAY_ENVIRONMENT;
	if (!close_sinks(&sinks))
		status = REPLAY_ENVIRONMENT;
	if (status == REPLAY_CLEAN && raw->perfetto)
		status = write_perfetto(raw->perfetto, run);
	return status;
}

static enum replay_status export_recording(const char *path, const struct raw *raw)
{
	static struct export_run run;
	struct record_reader *reader;
	enum replay_status status = record_open_or_say(path, &reader);

	if (status == REPLAY_CLEAN) {
		run.path = path;
		run.about = record_about(reader);
		status = export_all(reader, raw, &run);
	}
	timeline_finish(&run.timeline);
	record_close(reader);
	return status;
}

/* ---- the command line ---- */

static bool usage(const char *message)
{
	fprintf(stderr, "vidmm export: %s\ntry: vidmm export --help\n", message);
	return false;
}

static bool check(const struct raw *raw, const char **paths)
{
	if (!paths || !paths[0])
		return usage("no recording of events: vidmm replay --record makes one");
	if (paths[1])
		return usage("several recordings: expected one");
	if ((raw->perfetto && !raw->perfetto[0]) || (raw->csv && !raw->csv[0]) ||
	    (raw->sqlite && !raw->sqlite[0]))
		return usage("an option has no value: expected a file or a folder");
	if (!raw->perfetto && !raw->csv && !raw->sqlite)
		return usage("nothing to write: expected --perfetto, --csv or --sqlite");
	return true;
}

int export_main(int argc, const char **argv)
{
	struct raw raw = {0};
	struct poptOption table[] = {
		{"perfetto", 0, POPT_ARG_STRING, &raw.perfetto, 0,
		 "trace for Perfetto: engines, waits, calls, allocations, counters", "FILE"},
		{"csv", 0, POPT_ARG_STRING, &raw.csv, 0, "folder for a CSV file of each table",
		 "FOLDER"},
		{"sqlite", 0, POPT_ARG_STRING, &raw.sqlite, 0, "SQLite database of the tables",
		 "FILE"},
		{"help", 'h', POPT_ARG_NONE, &raw.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	int exit_code = REPLAY_USAGE;

	argv[0] = "vidmm export"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] RECORDING");
	if (options_read(context, "export", &raw.help, &exit_code)) {
		const char **paths = poptGetArgs(context);

		if (check(&raw, paths))
			exit_code = (int)export_recording(paths[0], &raw);
	}
	free(raw.perfetto);
	free(raw.csv);
	free(raw.sqlite);
	poptFreeContext(context);
	return exit_code;
}
