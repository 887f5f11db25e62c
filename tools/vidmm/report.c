/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "record_status.h"

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	char *output;
	int help;
};

/* ---- runs ---- */

/* Reads the events. A recording that ends in the middle of a chunk is drawn as far as it goes. */
static enum replay_status read_events(struct record_reader *reader, struct report_run *run)
{
	struct vidmm_event event;
	const char *text;
	enum record_result result;

	while ((result = record_next(reader, &event, &text)) == RECORD_EVENT) {
		timeline_add(&run->timeline, &event, text);
		report_stalls_add(&run->stalls, &run->timeline, &event, text);
	}
	run->cut = result == RECORD_CUT;
	enum replay_status status = record_end(reader, result);
	bool good = report_stalls_end(&run->stalls);
	if (status != REPLAY_CLEAN || (timeline_end(&run->timeline) && good))
		return status;
	fprintf(stderr, "vidmm report: out of memory\n");
	return REPLAY_ENVIRONMENT;
}

static enum replay_status read_run(const char *path, struct record_reader **reader,
				   struct report_run *run)
{
	enum replay_status status = record_open_or_say(path, reader);

	run->path = path;
	if (status != REPLAY_CLEAN)
		return status;
	run->about = record_about(*reader);
	return read_events(*reader, run);
}

/* ---- the page ---- */

static enum replay_status write_page(const char *path, const struct report_run *runs,
				     unsigned count)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdout : fopen(path, "w");
	enum replay_status status = REPLAY_CLEAN;

	if (!file) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	if (!report_page(file, runs, count)) {
		fprintf(stderr, "vidmm report: out of memory\n");
		status = REPLAY_ENVIRONMENT;
	} else if (fflush(file) != 0 || ferror(file)) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		status = REPLAY_ENVIRONMENT;
	}
	if (!standard && fclose(file) != 0 && status == REPLAY_CLEAN) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		status = REPLAY_ENVIRONMENT;
	}
	return status;
}

static enum replay_status make_report(const char **paths, unsigned count, const char *output)
{
	static struct report_run runs[REPORT_RUNS_MAX];
	struct record_reader *readers[REPORT_RUNS_MAX] = {NULL};
	enum replay_status status = REPLAY_CLEAN;

	for (unsigned i = 0; i < count && status == REPLAY_CLEAN; i++)
		status = read_run(paths[i], &readers[i], &runs[i]);
	if (status == REPLAY_CLEAN)
		status = write_page(output, runs, count);
	for (unsigned i = 0; i < count; i++) {
		timeline_finish(&runs[i].timeline);
		report_stalls_finish(&runs[i].stalls);
		record_close(readers[i]);
	}
	return status;
}

/* ---- the command line ---- */

static bool usage(const char *message)
{
	fprintf(stderr, "vidmm report: %s\ntry: vidmm report --help\n", message);
	return false;
}

static bool check(const struct raw *raw, unsigned count)
{
	if (!count)
		return usage("no recording of events: vidmm replay --record makes one");
	if (count > REPORT_RUNS_MAX)
		return usage("too many recordings: a page compares two at most");
	if (!raw->output || !raw->output[0])
		return usage("no page: expected --output FILE (-: standard output)");
	return true;
}

int report_main(int argc, const char **argv)
{
	struct raw raw = {0};
	struct poptOption table[] = {
		{"output", 'o', POPT_ARG_STRING, &raw.output, 0,
		 "file of the page (-: standard output)", "FILE"},
		{"help", 'h', POPT_ARG_NONE, &raw.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	int exit_code = REPLAY_USAGE;

	argv[0] = "vidmm report"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] RECORDING [RECORDING]");
	if (options_read(context, "report", &raw.help, &exit_code)) {
		const char **paths = poptGetArgs(context);
		unsigned count = 0;

		while (paths && paths[count])
			count++;
		if (check(&raw, count))
			exit_code = (int)make_report(paths, count, raw.output);
	}
	free(raw.output);
	poptFreeContext(context);
	return exit_code;
}
