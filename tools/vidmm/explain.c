/* SPDX-License-Identifier: MIT */
/*
 * `vidmm explain`: reads an event stream (explain_input.h). For each process it groups the failed
 * calls by their causes (explain_cause.c), explains the last failed call and the slowest one
 * (explain_call.c), and says what blocks the contexts that a wait blocks, at the end of the stream
 * or when the wait was given up (explain_waits.c). With --handle or --address it prints the history
 * of that one (explain_object.c).
 */
#include "explain.h"

#include <errno.h>
#include <inttypes.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain_call.h"
#include "explain_cause.h"
#include "explain_events.h"
#include "explain_failures.h"
#include "explain_history.h"
#include "explain_input.h"
#include "explain_object.h"
#include "explain_waits.h"
#include "json_text.h"
#include "options.h"
#include "replay.h"
#include "units.h"

enum { TEXT = 32 };

/* What is known of one process. */
struct process_summary {
	uint32_t process;
	uint64_t calls, failed, slowest_ns;
	char *name;                      /* NULL: unknown */
	char *failure, *slow, *given_up; /* printed explanations; NULL: none */
	struct failures failures;
};

struct explain {
	struct explain_history *history;
	struct explain_waits *waits;
	struct explain_causes *causes;
	struct explain_object *object; /* NULL: the calls are explained */
	struct process_summary *summaries;
	unsigned count;
	uint64_t lines;
};

/* ---- the stream ---- */

static struct process_summary *summary_of(struct explain *explain, uint32_t process)
{
	struct process_summary *more;

	for (unsigned i = 0; i < explain->count; i++) {
		if (explain->summaries[i].process == process)
			return &explain->summaries[i];
	}
	more = realloc(explain->summaries, (explain->count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	explain->summaries = more;
	more += explain->count++;
	*more = (struct process_summary){.process = process};
	return more;
}

static bool add_call(struct explain *explain, const struct logged_event *door)
{
	struct process_summary *summary = summary_of(explain, door->process);
	uint64_t ns = logged_value(door, "ns");
	char **text;

	if (!summary)
		return false;
	summary->calls++;
	if (logged_failed(door)) {
		struct cause cause;

		explain_cause_of(explain->causes, explain->history, door, &cause);
		if (!failures_add(&summary->failures, door, &cause))
			return false;
		summary->failed++;
		text = &summary->failure;
	} else if (ns > summary->slowest_ns) {
		summary->slowest_ns = ns;
		text = &summary->slow;
	} else {
		return true;
	}
	free(*text);
	*text = explain_call(explain->history, door);
	return *text != NULL;
}

/*
 * Keeps, for the last context of a process whose wait was given up, what blocked it at that time.
 */
static bool add_given_up(struct explain *explain, const struct logged_event *event)
{
	struct process_summary *summary = summary_of(explain, event->process);
	char *text = NULL, at[TEXT];
	size_t size;
	FILE *out = summary ? open_memstream(&text, &size) : NULL;

	if (!out)
		return false;
	bool known = explain_waits_print(explain->waits, out, event->process, event->object);

	if (known)
		fprintf(out, "    - this wait was given up at %s\n",
			units_time(event->time_ns, at, sizeof(at)));
	if (fclose(out) != 0 || !known) {
		free(text);
		return !known;
	}
	free(summary->given_up);
	summary->given_up = text;
	return true;
}

static bool add_name(struct explain *explain, const struct logged_event *event)
{
	struct process_summary *summary = summary_of(explain, event->process);

	if (!summary || !event->text)
		return summary != NULL;
	free(summary->name);
	summary->name = strdup(event->text);
	return summary->name != NULL;
}

static bool add_event(struct explain *explain, const struct logged_event *event)
{
	if (logged_is(event, "process", "opened") && !add_name(explain, event))
		return false;
	if (logged_is(event, "door", NULL) && !add_call(explain, event))
		return false;
	if (logged_is(event, "sync", "given_up") && !add_given_up(explain, event))
		return false;
	if (logged_is(event, "sync", NULL) &&
	    (!summary_of(explain, event->process) || !explain_waits_add(explain->waits, event)))
		return false;
	return explain_causes_add(explain->causes, event) &&
	       explain_history_add(explain->history, event);
}

static int read_events(struct explain *explain, struct explain_input *input, const char *path)
{
	struct logged_event event;
	const char *line;
	int status;

	while ((line = explain_input_next(input, &status)) != NULL) {
		explain->lines++;
		if (!logged_event_parse(line, &event)) {
			fprintf(stderr,
				"vidmm: %s, line %" PRIu64 ": not a line of an event stream\n",
				path, explain->lines);
			return REPLAY_BAD_INPUT;
		}
		if (explain->object) {
			explain_object_add(explain->object, &event);
			continue;
		}
		if (!add_event(explain, &event)) {
			fprintf(stderr, "vidmm: out of memory\n");
			return REPLAY_ENVIRONMENT;
		}
	}
	return status;
}

/* ---- output ---- */

static const char *name_of(void *context, uint32_t process)
{
	const struct explain *explain = context;

	for (unsigned i = 0; i < explain->count; i++)
		if (explain->summaries[i].process == process && explain->summaries[i].name)
			return explain->summaries[i].name;
	return "";
}

static void print_process(struct explain *explain, struct process_summary *s)
{
	char count[2][TEXT];

	printf("process %" PRIu32, s->process);
	if (s->name && *s->name)
		printf(" (%s)", s->name);
	printf(": %s calls, %s failed\n", units_count(s->calls, count[0], TEXT),
	       units_count(s->failed, count[1], TEXT));
	failures_print(&s->failures, stdout, name_of, explain);
	if (s->failure)
		printf("  last failed call: %s", s->failure);
	if (s->slow)
		printf("  slowest call: %s", s->slow);
	if (s->given_up)
		printf("%s", s->given_up);
	explain_waits_print_all(explain->waits, stdout, s->process);
}

static json_t *process_json(struct process_summary *s)
{
	return json_pack("{s:I, s:o, s:I, s:I, s:o}", "process", (json_int_t)s->process, "name",
			 json_text(s->name ? s->name : ""), "calls", (json_int_t)s->calls, "failed",
			 (json_int_t)s->failed, "failures", failures_json(&s->failures));
}

/* These return the number of processes printed. PROCESS 0: all. */
static unsigned print_text(struct explain *explain, uint32_t process)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < explain->count; i++) {
		if (process && process != explain->summaries[i].process)
			continue;
		if (shown++)
			printf("\n");
		print_process(explain, &explain->summaries[i]);
	}
	return shown;
}

static unsigned print_json(struct explain *explain, uint32_t process)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < explain->count; i++)
		if (!process || process == explain->summaries[i].process)
			json_array_append_new(array, process_json(&explain->summaries[i]));
	unsigned shown = (unsigned)json_array_size(array);

	if (shown) {
		json_dumpf(array, stdout, JSON_INDENT(2));
		printf("\n");
	}
	json_decref(array);
	return shown;
}

static void finish(struct explain *explain)
{
	for (unsigned i = 0; i < explain->count; i++) {
		free(explain->summaries[i].name);
		free(explain->summaries[i].failure);
		free(explain->summaries[i].slow);
		free(explain->summaries[i].given_up);
		free(explain->summaries[i].failures.group);
	}
	free(explain->summaries);
	explain_causes_destroy(explain->causes);
	explain_waits_destroy(explain->waits);
	explain_history_destroy(explain->history);
}

/* ---- the command line ---- */

struct query {
	char *handle_text, *address_text;
	uint64_t handle, address;
	uint32_t process; /* 0: all */
	int json, help;
};

static bool usage(const char *message, const char *value)
{
	fprintf(stderr, "vidmm explain: \"%s\" %s\ntry: vidmm explain --help\n", value, message);
	return false;
}

static bool read_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value <= most;
}

static bool check(struct query *q, const char **arguments)
{
	uint64_t process = 0;

	if (!arguments || !arguments[0] || (arguments[1] && arguments[2])) {
		fputs("vidmm explain: expected EVENTS and at most one process number\n"
		      "try: vidmm explain --help\n",
		      stderr);
		return false;
	}
	if (arguments[1] && (!read_number(arguments[1], UINT32_MAX, &process) || !process))
		return usage("is no process number", arguments[1]);
	q->process = (uint32_t)process;
	if (q->handle_text && q->address_text)
		return usage("and a handle: expected one of --handle and --address",
			     q->address_text);
	if (q->handle_text && (!read_number(q->handle_text, UINT32_MAX, &q->handle) || !q->handle))
		return usage("is no handle", q->handle_text);
	if (q->address_text && !read_number(q->address_text, UINT64_MAX, &q->address))
		return usage("is no address", q->address_text);
	return true;
}

static int print_object(struct explain *explain, const struct query *q)
{
	if (explain_object_finish(explain->object))
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm explain: no event is about %s\n",
		q->handle_text ? q->handle_text : q->address_text);
	return REPLAY_BAD_INPUT;
}

static int print_calls(struct explain *explain, const struct query *q)
{
	if (q->json ? print_json(explain, q->process) : print_text(explain, q->process))
		return REPLAY_CLEAN;
	fputs("vidmm: the stream has no calls", stderr);
	if (q->process)
		fprintf(stderr, " of process %" PRIu32, q->process);
	fputc('\n', stderr);
	return REPLAY_BAD_INPUT;
}

static int explain_file(struct explain_input *input, const char *path, const struct query *q)
{
	struct explain explain = {.history = explain_history_create(),
				  .waits = explain_waits_create(),
				  .causes = explain_causes_create()};
	bool queried = q->handle_text || q->address_text;

	if (q->handle_text)
		explain.object = explain_object_handle(stdout, (uint32_t)q->handle, q->process);
	else if (q->address_text)
		explain.object = explain_object_address(stdout, q->address);
	int result =
		explain.history && explain.waits && explain.causes && (explain.object || !queried)
			? read_events(&explain, input, path)
			: REPLAY_ENVIRONMENT;

	if (result != REPLAY_CLEAN)
		explain_object_finish(explain.object);
	else
		result = explain.object ? print_object(&explain, q) : print_calls(&explain, q);
	finish(&explain);
	return result;
}

int explain_main(int argc, const char **argv)
{
	struct query query = {0};
	struct poptOption table[] = {
		{"handle", 0, POPT_ARG_STRING, &query.handle_text, 0,
		 "what happened to this handle: its placements, and what needed its space",
		 "HANDLE"},
		{"address", 0, POPT_ARG_STRING, &query.address_text, 0,
		 "what was placed at this address of GPU memory", "ADDRESS"},
		{"json", 0, POPT_ARG_NONE, &query.json, 0, "causes of failed calls as JSON", NULL},
		{"help", 'h', POPT_ARG_NONE, &query.help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;
	int exit_code = REPLAY_USAGE;

	argv[0] = "vidmm explain"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "[OPTION...] EVENTS|- [PROCESS]");
	if (options_read(context, "explain", &query.help, &exit_code)) {
		const char **arguments = poptGetArgs(context);

		if (check(&query, arguments)) {
			struct explain_input *input = explain_input_open(arguments[0], &exit_code);

			if (input)
				exit_code = explain_file(input, arguments[0], &query);
			explain_input_close(input);
		}
	}
	free(query.handle_text);
	free(query.address_text);
	poptFreeContext(context);
	return exit_code;
}
