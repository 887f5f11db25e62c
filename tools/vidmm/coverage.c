/* SPDX-License-Identifier: MIT */
#include "coverage.h"

#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "options.h"
#include "output.h"
#include "record_describe.h"
#include "record_status.h"

/* ---- names ---- */

static const json_t *describe(const struct coverage *coverage, unsigned type)
{
	return json_array_get(json_object_get(coverage->names, "events"), type);
}

const char *coverage_type(const struct coverage *coverage, unsigned type)
{
	const char *name = json_string_value(json_object_get(describe(coverage, type), "name"));

	return name && name[0] ? name : NULL;
}

const char *coverage_reason(const struct coverage *coverage, unsigned type, unsigned reason)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", reason);
	return json_string_value(
		json_object_get(json_object_get(describe(coverage, type), "reasons"), number));
}

unsigned coverage_names(const struct coverage *coverage, unsigned type, unsigned *seen)
{
	unsigned names = 0;

	*seen = 0;
	for (unsigned reason = 0; reason < COVERAGE_REASONS_MAX; reason++) {
		if (!coverage_reason(coverage, type, reason))
			continue;
		names++;
		*seen += coverage->type[type].reason[reason].count != 0;
	}
	return names;
}

static unsigned argument_named(const struct coverage *coverage, unsigned type, const char *name)
{
	const json_t *arguments = json_object_get(describe(coverage, type), "arguments");

	for (unsigned i = 0; i < COVERAGE_NO_ARGUMENT; i++) {
		const char *argument = json_string_value(json_array_get(arguments, i));

		if (argument && strcmp(argument, name) == 0)
			return i;
	}
	return COVERAGE_NO_ARGUMENT;
}

static bool begin(struct coverage *coverage)
{
	coverage->names = record_describe();
	for (unsigned type = 0; coverage->names && type < VIDMM_EVENT_TYPE_COUNT; type++) {
		coverage->type[type].status = argument_named(coverage, type, "status");
		coverage->type[type].flags = argument_named(coverage, type, "flags");
	}
	return coverage->names != NULL;
}

/* ---- events ---- */

static bool count_status(struct coverage *coverage, const struct vidmm_event *event,
			 uint32_t status)
{
	struct covered_status *s;

	for (uint32_t i = 0; i < coverage->status_count; i++) {
		s = &coverage->statuses[i];
		if (s->type == event->type && s->reason == event->reason && s->status == status) {
			s->count++;
			return true;
		}
	}
	if (!grow_array((void **)&coverage->statuses, &coverage->status_capacity,
			coverage->status_count, sizeof(*s)))
		return false;
	coverage->statuses[coverage->status_count++] =
		(struct covered_status){event->type, event->reason, status, 1};
	return true;
}

/* Types and reasons of a later version have no name here and are counted as events only. */
static bool count_event(struct coverage *coverage, const struct vidmm_event *event)
{
	struct covered_type *type;

	coverage->events++;
	if (event->type >= VIDMM_EVENT_TYPE_COUNT || event->reason >= COVERAGE_REASONS_MAX)
		return true;
	type = &coverage->type[event->type];
	type->count++;
	type->reason[event->reason].count++;
	if (type->flags != COVERAGE_NO_ARGUMENT)
		type->reason[event->reason].flags |= event->arg[type->flags];
	return type->status == COVERAGE_NO_ARGUMENT ||
	       count_status(coverage, event, (uint32_t)event->arg[type->status]);
}

static enum replay_status count_recording(const char *path, struct coverage *coverage)
{
	struct record_reader *reader;
	struct vidmm_event event;
	const char *text;
	enum replay_status status = record_open_or_say(path, &reader);

	while (status == REPLAY_CLEAN) {
		enum record_result got = record_next(reader, &event, &text);

		if (got != RECORD_EVENT) {
			status = record_end(reader, got);
			break;
		}
		if (!count_event(coverage, &event)) {
			fputs("vidmm coverage: out of memory\n", stderr);
			status = REPLAY_ENVIRONMENT;
		}
	}
	record_close(reader);
	return status;
}

/* ---- the command line ---- */

static enum replay_status run(const char **paths, bool json)
{
	static struct coverage coverage;
	enum replay_status status = begin(&coverage) ? REPLAY_CLEAN : REPLAY_ENVIRONMENT;

	if (status != REPLAY_CLEAN)
		fputs("vidmm coverage: out of memory\n", stderr);
	for (unsigned i = 0; status == REPLAY_CLEAN && paths[i]; i++)
		status = count_recording(paths[i], &coverage);
	if (status == REPLAY_CLEAN && json)
		status = output_status(coverage_json(stdout, &coverage), status);
	else if (status == REPLAY_CLEAN)
		coverage_text(stdout, &coverage);
	json_decref(coverage.names);
	free(coverage.statuses);
	return status;
}

int coverage_main(int argc, const char **argv)
{
	int json = 0, help = 0, exit_code = REPLAY_USAGE;
	struct poptOption table[] = {
		{"json", 0, POPT_ARG_NONE, &json, 0, "JSON instead of text", NULL},
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;

	argv[0] = "vidmm coverage"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] RECORDING...");
	if (options_read(context, "coverage", &help, &exit_code)) {
		const char **paths = poptGetArgs(context);

		if (paths && paths[0])
			exit_code = (int)run(paths, json != 0);
		else
			fputs("vidmm coverage: no recording of events: vidmm replay --record "
			      "makes one\ntry: vidmm coverage --help\n",
			      stderr);
	}
	poptFreeContext(context);
	return exit_code;
}
