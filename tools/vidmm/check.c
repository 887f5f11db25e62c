/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <inttypes.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "check_stream.h"
#include "grow.h"
#include "json_text.h"
#include "options.h"
#include "output.h"
#include "record_status.h"

static const char *const formats[] = {"text", "json", "sarif", "junit", NULL};
static bool (*const writers[])(FILE *file, const struct check_result *result) = {
	check_text, check_json, check_sarif, check_junit};

/* Values of the options as popt stores them. NULL: the option was not given. */
struct raw {
	char *format, *suppress;
	int help;
};

const struct suppression *check_suppression(const struct check_result *result,
					    const struct check_broken *broken)
{
	return broken->suppression ? &result->suppressions.all[broken->suppression - 1] : NULL;
}

uint64_t check_findings(const struct check_run *run, bool suppressed)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < run->count; i++)
		if ((run->broken[i].suppression != 0) == suppressed)
			count += run->broken[i].count;
	return count;
}

/* ---- findings ---- */

/* A finding's text is "RULE-nn: what was seen". */
static const char *split_text(const char *text, char rule[CHECK_RULE_MAX])
{
	size_t length = strcspn(text, ":");

	if (!text[length] || length >= CHECK_RULE_MAX)
		length = 0;
	memcpy(rule, text, length);
	rule[length] = '\0';
	return length ? text + length + 1 + (text[length + 1] == ' ') : text;
}

static struct check_broken *find_broken(struct check_run *run, const char *rule,
					uint32_t suppression)
{
	for (uint32_t i = 0; i < run->count; i++)
		if (run->broken[i].suppression == suppression &&
		    strcmp(run->broken[i].rule, rule) == 0)
			return &run->broken[i];
	return NULL;
}

static bool add_broken(struct check_run *run, const struct check_broken *first, const char *text)
{
	struct check_broken *broken;
	json_t *valid = json_text(text);

	if (!valid ||
	    !grow_array((void **)&run->broken, &run->capacity, run->count, sizeof(*broken))) {
		json_decref(valid);
		return false;
	}
	broken = &run->broken[run->count++];
	*broken = *first;
	broken->text = strdup(json_string_value(valid));
	json_decref(valid);
	return broken->text != NULL;
}

/* Counts a finding of the rule in FIRST, which is the first one unless another is known. */
static bool count_finding(struct check_result *result, struct check_run *run,
			  struct check_broken *first, const char *text)
{
	struct check_broken *known;

	first->suppression = suppressions_find(&result->suppressions, first->rule, text);
	if (first->suppression)
		result->suppressions.all[first->suppression - 1].count++;
	known = find_broken(run, first->rule, first->suppression);
	if (!known)
		return add_broken(run, first, text);
	known->count++;
	return true;
}

/* Takes what the checks over the stream of events have seen. */
static bool add_seen(struct check_result *result, struct check_run *run,
		     const struct vidmm_event *event, const struct check_seen *seen)
{
	struct check_broken first = {.count = 1,
				     .time_ns = event->time_ns,
				     .sequence = event->sequence,
				     .process = event->process,
				     .object = seen->object};

	if (!seen->rule)
		return true;
	snprintf(first.rule, sizeof(first.rule), "%s", seen->rule);
	return count_finding(result, run, &first, seen->text);
}

static bool add_finding(struct check_result *result, struct check_run *run,
			const struct vidmm_event *event, const char *text)
{
	struct check_broken first = {.count = 1,
				     .time_ns = event->time_ns,
				     .sequence = event->sequence,
				     .process = event->process,
				     .object = event->object};
	char bug_check[128];

	if (event->type == VIDMM_EVENT_FATAL) {
		snprintf(bug_check, sizeof(bug_check),
			 CHECK_BUG_CHECK ": 0x%" PRIx64 " (0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
					 "): Windows would have stopped",
			 event->arg[0], event->arg[1], event->arg[2], event->arg[3]);
		text = bug_check;
	}
	text = split_text(text ? text : "", first.rule);
	return count_finding(result, run, &first, text);
}

/* ---- recordings ---- */

static bool take_event(struct check_result *result, struct check_run *run,
		       struct check_stream *stream, const struct vidmm_event *event,
		       const char *text)
{
	struct check_seen seen;

	run->events++;
	if ((event->type == VIDMM_EVENT_FINDING || event->type == VIDMM_EVENT_FATAL) &&
	    !add_finding(result, run, event, text))
		return false;
	return check_stream_event(stream, event, text, &seen) &&
	       add_seen(result, run, event, &seen);
}

static enum replay_status read_events(struct record_reader *reader, struct check_result *result,
				      struct check_run *run)
{
	struct check_stream stream = {0};
	struct vidmm_event event;
	const char *text;
	enum record_result got;
	bool good = true;

	while (good && (got = record_next(reader, &event, &text)) == RECORD_EVENT)
		good = take_event(result, run, &stream, &event, text);
	check_stream_finish(&stream);
	if (!good) {
		fputs("vidmm check: out of memory\n", stderr);
		return REPLAY_ENVIRONMENT;
	}
	run->cut = got == RECORD_CUT;
	return record_end(reader, got);
}

static enum replay_status check_recording(struct check_result *result, struct check_run *run)
{
	struct record_reader *reader;
	enum replay_status status = record_open_or_say(run->path, &reader);

	if (status == REPLAY_CLEAN)
		status = read_events(reader, result, run);
	record_close(reader);
	return status;
}

static enum replay_status check_all(const char **paths, struct check_result *result)
{
	enum replay_status status = REPLAY_CLEAN;
	uint32_t count = 0;

	while (paths[count])
		count++;
	result->runs = calloc(count, sizeof(*result->runs));
	if (!result->runs) {
		fputs("vidmm check: out of memory\n", stderr);
		return REPLAY_ENVIRONMENT;
	}
	result->run_count = count;
	for (uint32_t i = 0; i < count && status == REPLAY_CLEAN; i++) {
		result->runs[i].path = paths[i];
		status = check_recording(result, &result->runs[i]);
	}
	return status;
}

static void finish(struct check_result *result)
{
	for (uint32_t i = 0; i < result->run_count; i++) {
		for (uint32_t k = 0; k < result->runs[i].count; k++)
			free(result->runs[i].broken[k].text);
		free(result->runs[i].broken);
	}
	free(result->runs);
	suppressions_finish(&result->suppressions);
}

static enum replay_status judge(const struct check_result *result)
{
	for (uint32_t i = 0; i < result->run_count; i++)
		if (check_findings(&result->runs[i], false))
			return REPLAY_FINDINGS;
	return REPLAY_CLEAN;
}

/* ---- the command line ---- */

static int run(const struct raw *raw, const char **paths)
{
	int format = options_choose(raw->format, formats), status = REPLAY_USAGE;
	struct check_result result = {0};

	if (format < 0) {
		fprintf(stderr,
			"vidmm check: --format=%s: expected text, json, sarif or junit\n"
			"try: vidmm check --help\n",
			raw->format);
		return REPLAY_USAGE;
	}
	if (!paths || !paths[0]) {
		fputs("vidmm check: no recording of events: vidmm replay --record makes one\n"
		      "try: vidmm check --help\n",
		      stderr);
		return REPLAY_USAGE;
	}
	if (!raw->suppress || suppressions_read(raw->suppress, &result.suppressions, &status))
		status = check_all(paths, &result);
	if (status == REPLAY_CLEAN)
		status = output_status(writers[format](stdout, &result), judge(&result));
	finish(&result);
	return status;
}

int check_main(int argc, const char **argv)
{
	struct raw raw = {0};
	struct poptOption table[] = {
		{"format", 0, POPT_ARG_STRING, &raw.format, 0,
		 "text (default), json, sarif (2.1.0) or junit", "FORMAT"},
		{"suppress", 0, POPT_ARG_STRING, &raw.suppress, 0,
		 "findings to accept: lines of RULE [\"PART OF THE TEXT\"] REASON", "FILE"},
		{"help", 'h', POPT_ARG_NONE, &raw.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	int exit_code = REPLAY_USAGE;

	argv[0] = "vidmm check"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] RECORDING...");
	if (options_read(context, "check", &raw.help, &exit_code))
		exit_code = run(&raw, poptGetArgs(context));
	free(raw.format);
	free(raw.suppress);
	poptFreeContext(context);
	return exit_code;
}
