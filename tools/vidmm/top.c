/* SPDX-License-Identifier: MIT */
#include "top.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "record_status.h"
#include "wrap.h"

#define BATCH_EVENTS 1000000u /* of one read; all are read before a table is printed */

/* Values of the options as popt stores them. */
struct raw {
	int batch, count, help;
	double delay_s;
};

/* ---- the end ---- */

/* Says what is wrong with the recording. One that ends early is shown as far as it goes. */
static enum replay_status end_status(const struct top_feed *feed)
{
	if (feed->status != TOP_CUT && feed->status != TOP_DAMAGED && feed->status != TOP_FAILED)
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm: %s\n", top_feed_error(feed));
	if (feed->status == TOP_CUT)
		return REPLAY_CLEAN;
	return feed->status == TOP_DAMAGED ? REPLAY_BAD_INPUT : REPLAY_ENVIRONMENT;
}

/* ---- batch ---- */

/* Returns false if the tables could not be printed; main.c reports errors of standard output. */
static bool print_tables(const struct top_feed *feed)
{
	struct top_view view = {.state = &feed->state,
				.path = feed->path,
				.status = feed->status,
				.sort = TOP_RESIDENT,
				.filter = ""};
	struct top_grid grid = {.width = (uint32_t)wrap_width(STDOUT_FILENO)};
	bool failed;

	view.closed = top_view_all(&view);
	top_view_draw(&view, &grid);
	top_grid_print(stdout, &grid);
	failed = grid.failed;
	top_grid_finish(&grid);
	if (failed)
		fprintf(stderr, "vidmm top: out of memory\n");
	return !failed && !ferror(stdout);
}

static void wait_for(uint32_t delay_ms)
{
	struct timespec left = {.tv_sec = delay_ms / 1000,
				.tv_nsec = (long)(delay_ms % 1000) * 1000000};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* COUNT 0: until no program writes the recording any more. */
static enum replay_status batch(struct top_feed *feed, uint32_t delay_ms, int count)
{
	for (int i = 1;; i++) {
		while (top_feed_read(feed, BATCH_EVENTS))
			;
		if (!print_tables(feed))
			return REPLAY_ENVIRONMENT;
		if (i == count || feed->status == TOP_DAMAGED || feed->status == TOP_FAILED ||
		    (!count && feed->status != TOP_LIVE && feed->status != TOP_WAITING))
			break;
		fputc('\n', stdout);
		if (fflush(stdout) != 0)
			return REPLAY_ENVIRONMENT;
		wait_for(delay_ms);
	}
	return end_status(feed);
}

/* ---- the command line ---- */

static bool usage(const char *message)
{
	fprintf(stderr, "vidmm top: %s\ntry: vidmm top --help\n", message);
	return false;
}

static bool check(const struct raw *raw, const char **paths)
{
	if (!paths || !paths[0])
		return usage("no recording of events: vidmm replay --record makes one");
	if (paths[1])
		return usage("several recordings: expected one");
	if (!isfinite(raw->delay_s) || raw->delay_s < 0.01 || raw->delay_s > 3600)
		return usage("--delay is out of range: expected 0.01 to 3600 seconds");
	if (raw->count < 0)
		return usage("--count is negative");
	if (!raw->batch && raw->count != 1)
		return usage("--count is for --batch");
	if (!raw->batch && !isatty(STDOUT_FILENO))
		return usage("standard output is not a terminal: expected --batch");
	if (!raw->batch && !isatty(STDIN_FILENO))
		return usage("standard input is not a terminal: expected --batch");
	return true;
}

static enum replay_status run(const struct raw *raw, const char *path)
{
	static struct top_feed feed;
	enum record_result result = top_feed_open(&feed, path);
	enum replay_status status = record_open_status(result);
	uint32_t delay_ms = (uint32_t)(raw->delay_s * 1000);

	if (result != RECORD_EVENT) {
		fprintf(stderr, "vidmm: %s\n", top_feed_error(&feed));
	} else if (raw->batch) {
		status = batch(&feed, delay_ms, raw->count);
	} else {
		status = top_screen(&feed, delay_ms);
		if (status == REPLAY_CLEAN)
			status = end_status(&feed);
	}
	top_feed_close(&feed);
	return status;
}

int top_main(int argc, const char **argv)
{
	struct raw raw = {.count = 1, .delay_s = 1};
	struct poptOption table[] = {
		{"batch", 'b', POPT_ARG_NONE, &raw.batch, 0, "print the tables as text", NULL},
		{"count", 'n', POPT_ARG_INT, &raw.count, 0,
		 "with --batch: how often (default 1; 0: until the recording has ended)", "COUNT"},
		{"delay", 'd', POPT_ARG_DOUBLE, &raw.delay_s, 0,
		 "time between two looks at the recording (default 1)", "SECONDS"},
		{"help", 'h', POPT_ARG_NONE, &raw.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	int exit_code = REPLAY_USAGE;

	setlocale(LC_CTYPE, ""); /* which characters the terminal has */
	argv[0] = "vidmm top";   /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] RECORDING");
	if (options_read(context, "top", &raw.help, &exit_code)) {
		const char **paths = poptGetArgs(context);

		if (check(&raw, paths))
			exit_code = (int)run(&raw, paths[0]);
	}
	poptFreeContext(context);
	return exit_code;
}
