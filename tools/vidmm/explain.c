/* SPDX-License-Identifier: MIT */
/*
 * `vidmm explain`: reads an event stream (explain_input.h). For each process it explains
 * why its last failed call failed, and where the time of its slowest call went. Each sentence comes
 * from an event between the beginning and the end of that call. For contexts that a wait blocks, at
 * the end of the stream or when the wait was given up, it prints what blocks them
 * (explain_waits.c).
 */
#include "explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain_events.h"
#include "explain_history.h"
#include "explain_input.h"
#include "explain_waits.h"
#include "replay.h"
#include "status_names.h"
#include "units.h"
#include "verb_help.h"

enum { DISCARD = 0x80, TEXT = 32, MOVES = 16 };

/* What is known of one process. */
struct process_summary {
	uint32_t process;
	uint64_t calls, failed, slowest_ns;
	char *name;                      /* NULL: unknown */
	char *failure, *slow, *given_up; /* printed explanations; NULL: none */
};

struct explain {
	struct explain_history *history;
	struct explain_waits *waits;
	struct process_summary *summaries;
	unsigned count;
	uint64_t lines;
};

/* ---- one call ---- */

/*
 * Moves of allocations, counted by source segment, destination segment and reason, because there
 * may be hundreds of them.
 */
struct moves {
	char reason[LOGGED_REASON_CHARS];
	uint64_t from, to, count, bytes;
};

struct explanation {
	FILE *out;
	const struct explain *explain;
	const struct logged_event *door;
	bool waited, renamed;
	unsigned sentences;
	struct moves moves[MOVES]; /* moves of other allocations of the process */
	unsigned move_count;
};

static bool is(const struct logged_event *event, const char *type, const char *reason)
{
	return strcmp(event->type, type) == 0 && (!reason || strcmp(event->reason, reason) == 0);
}

static void begin_sentence(struct explanation *t)
{
	t->sentences++;
	fputs("    - ", t->out);
}

/* Prints the packet that a wait waited for: its process and context, and when it was accepted. */
static void print_packet(struct explanation *t, const struct logged_event *wait)
{
	uint64_t node = logged_value(wait, "node"), number = logged_value(wait, "number");
	const struct explain_submission *s =
		explain_history_submission(t->explain->history, node, number);
	char ago[TEXT];

	if (!s) {
		fprintf(t->out,
			"packet %" PRIu64 " of node %" PRIu64
			" (a paging packet, or submitted before the known part of the stream)",
			number, node);
		return;
	}
	fprintf(t->out,
		"submission %" PRIu64 " on node %" PRIu64 " (process %" PRIu32
		", context 0x%08" PRIx32 ", %" PRIu64 " references, accepted %s before)",
		number, node, s->process, s->context, s->references,
		units_time(wait->time_ns - s->time_ns, ago, sizeof(ago)));
}

static void print_wait(struct explanation *t, const struct logged_event *event)
{
	static const struct {
		const char *reason, *text;
	} reasons[] = {
		{"space",
		 "for an allocation in video memory to become idle, so that it can be evicted"},
		{"paging_buffer", "for a paging buffer: all of them were in flight"},
		{"dma_buffer", "for a DMA buffer: all of those of the context were in flight"},
		{"destroy", "for the GPU to complete its use of what the call destroys"},
		{"power", "for the adapter to be powered up"},
	};
	char time[TEXT];

	begin_sentence(t);
	t->waited = true;
	if (is(event, "wait", "declined")) {
		fputs("DonotWait (LOCK-08, LOCK-16; without Discard, the hint to rename: REN-14, "
		      "REN-21): the lock would have waited for ",
		      t->out);
		print_packet(t, event);
		fputc('\n', t->out);
		return;
	}
	fprintf(t->out, "waited %s ", units_time(logged_value(event, "ns"), time, sizeof(time)));
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (is(event, "wait", reasons[i].reason)) {
			fprintf(t->out, "%s\n", reasons[i].text);
			return;
		}
	}
	fputs("for ", t->out);
	print_packet(t, event);
	fputc('\n', t->out);
}

static void print_range(struct explanation *t, const struct logged_event *event)
{
	uint64_t range = logged_value(event, "range"), for_whom = logged_value(event, "for");

	if (is(event, "range", "reclaimed") && for_whom == t->door->object) {
		begin_sentence(t);
		fprintf(t->out,
			"swizzling range %" PRIu64 " was taken from 0x%08" PRIx32
			" of process %" PRIu32 ", the least recently used one\n",
			range, event->object, event->process);
	} else if (is(event, "range", "refused") && event->object == t->door->object) {
		const char *name = status_name((uint32_t)for_whom);

		begin_sentence(t);
		fprintf(t->out, "no swizzling range %" PRIu64 ": the miniport answered %s\n", range,
			name ? name : "another status");
	}
}

static const char *segment_text(uint64_t segment, char *text)
{
	if (!segment)
		return "system memory";
	snprintf(text, TEXT, "segment %" PRIu64, segment);
	return text;
}

/* Prints the route of a move, such as "from segment 1 to system memory: pressure". */
static void print_route(struct explanation *t, uint64_t from, uint64_t to, const char *reason)
{
	char old[TEXT], new[TEXT];

	fprintf(t->out, "from %s to %s: %s\n", segment_text(from, old), segment_text(to, new),
		reason);
}

static void count_move(struct explanation *t, const struct logged_event *event)
{
	uint64_t from = logged_value(event, "from"), to = logged_value(event, "to");
	struct moves *m = t->moves;

	while (m < t->moves + t->move_count &&
	       (m->from != from || m->to != to || strcmp(m->reason, event->reason) != 0))
		m++;
	if (m == t->moves + t->move_count) {
		if (t->move_count == MOVES)
			return;
		t->move_count++;
		*m = (struct moves){.from = from, .to = to};
		snprintf(m->reason, sizeof(m->reason), "%s", event->reason);
	}
	m->count++;
	m->bytes += logged_value(event, "bytes");
}

static void print_move(struct explanation *t, const struct logged_event *event)
{
	char bytes[TEXT];

	if (event->object != t->door->object) {
		count_move(t, event);
		return;
	}
	begin_sentence(t);
	fprintf(t->out, "the allocation (%s) moved ",
		units_bytes(logged_value(event, "bytes"), bytes, sizeof(bytes)));
	print_route(t, logged_value(event, "from"), logged_value(event, "to"), event->reason);
}

static void print_other_moves(struct explanation *t)
{
	char bytes[TEXT];

	for (const struct moves *m = t->moves; m < t->moves + t->move_count; m++) {
		begin_sentence(t);
		fprintf(t->out,
			"meanwhile %" PRIu64 " other allocation%s of the process (%s) moved ",
			m->count, m->count == 1 ? "" : "s",
			units_bytes(m->bytes, bytes, sizeof(bytes)));
		print_route(t, m->from, m->to, m->reason);
	}
}

static void print_event(void *context, const struct logged_event *event)
{
	struct explanation *t = context;
	bool own = event->process == t->door->process;

	if (is(event, "range", NULL)) {
		print_range(t, event);
	} else if ((own || !event->process) && event->text &&
		   (is(event, "finding", NULL) || is(event, "reason", NULL))) {
		begin_sentence(t);
		fprintf(t->out, "%s\n", event->text);
	} else if (own && is(event, "wait", NULL)) {
		print_wait(t, event);
	} else if (own && is(event, "residency", NULL)) {
		print_move(t, event);
	} else if (own && is(event, "rename", NULL)) {
		begin_sentence(t);
		t->renamed = true;
		fprintf(t->out,
			"renamed to 0x%08" PRIx32 ", %s instance, %" PRIu64 " instances alive\n",
			event->object, strcmp(event->reason, "new") == 0 ? "a new" : "a reused",
			logged_value(event, "instances"));
	}
}

static bool failed(const struct logged_event *door)
{
	return logged_value(door, "status") >> 30 == 3;
}

/* Explains why a lock with Discard returned the current instance. */
static void print_rename(struct explanation *t)
{
	if (strcmp(t->door->reason, "lock") != 0 || t->renamed || failed(t->door) ||
	    !(logged_value(t->door, "flags") & DISCARD))
		return;
	begin_sentence(t);
	fputs(t->waited ? "not renamed: the maximum number of instances was in use\n"
			: "not renamed: the GPU had completed its use of the current instance\n",
	      t->out);
}

static char *explain_call(const struct explain *explain, const struct logged_event *door)
{
	char *text = NULL, time[TEXT], at[TEXT];
	size_t size;
	struct explanation t = {
		.out = open_memstream(&text, &size), .explain = explain, .door = door};
	uint32_t status = (uint32_t)logged_value(door, "status");
	const char *name = status_name(status);

	if (!t.out)
		return NULL;
	fprintf(t.out, "%s", door->reason);
	if (door->object)
		fprintf(t.out, " 0x%08" PRIx32, door->object);
	if (logged_value(door, "flags"))
		fprintf(t.out, ", flags 0x%" PRIx64, logged_value(door, "flags"));
	fprintf(t.out, ": %s after %s (event %" PRIu64 ", at %s)\n", name ? name : "status",
		units_time(logged_value(door, "ns"), time, sizeof(time)), door->number,
		units_time(door->time_ns, at, sizeof(at)));
	explain_history_of(explain->history, door, print_event, &t);
	print_rename(&t);
	print_other_moves(&t);
	if (!t.sentences) {
		begin_sentence(&t);
		fputs("no event of this call gives a reason\n", t.out);
	}
	if (fclose(t.out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

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
	if (failed(door)) {
		summary->failed++;
		text = &summary->failure;
	} else if (ns > summary->slowest_ns) {
		summary->slowest_ns = ns;
		text = &summary->slow;
	} else {
		return true;
	}
	free(*text);
	*text = explain_call(explain, door);
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
	if (is(event, "process", "opened") && !add_name(explain, event))
		return false;
	if (is(event, "door", NULL) && !add_call(explain, event))
		return false;
	if (is(event, "sync", "given_up") && !add_given_up(explain, event))
		return false;
	if (is(event, "sync", NULL) &&
	    (!summary_of(explain, event->process) || !explain_waits_add(explain->waits, event)))
		return false;
	return explain_history_add(explain->history, event);
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
		if (!add_event(explain, &event)) {
			fprintf(stderr, "vidmm: out of memory\n");
			return REPLAY_ENVIRONMENT;
		}
	}
	return status;
}

static void print_process(const struct explain *explain, const struct process_summary *s)
{
	char count[2][TEXT];

	printf("process %" PRIu32, s->process);
	if (s->name && *s->name)
		printf(" (%s)", s->name);
	printf(": %s calls, %s failed\n", units_count(s->calls, count[0], TEXT),
	       units_count(s->failed, count[1], TEXT));
	if (s->failure)
		printf("  last failed call: %s", s->failure);
	if (s->slow)
		printf("  slowest call: %s", s->slow);
	if (s->given_up)
		printf("%s", s->given_up);
	explain_waits_print_all(explain->waits, stdout, s->process);
}

static int print(const struct explain *explain, const char *process_filter)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < explain->count; i++) {
		const struct process_summary *s = &explain->summaries[i];
		char number[TEXT];

		snprintf(number, sizeof(number), "%" PRIu32, s->process);
		if (process_filter && strcmp(process_filter, number) != 0)
			continue;
		if (shown++)
			printf("\n");
		print_process(explain, s);
	}
	if (shown)
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm: the stream has no calls%s%s\n",
		process_filter ? " of process " : "", process_filter ? process_filter : "");
	return REPLAY_BAD_INPUT;
}

static int explain_file(struct explain_input *input, const char *path, const char *process_filter)
{
	struct explain explain = {.history = explain_history_create(),
				  .waits = explain_waits_create()};
	int result = explain.history && explain.waits ? read_events(&explain, input, path)
						      : REPLAY_ENVIRONMENT;

	if (result == REPLAY_CLEAN)
		result = print(&explain, process_filter);
	for (unsigned i = 0; i < explain.count; i++) {
		free(explain.summaries[i].name);
		free(explain.summaries[i].failure);
		free(explain.summaries[i].slow);
		free(explain.summaries[i].given_up);
	}
	free(explain.summaries);
	explain_waits_destroy(explain.waits);
	explain_history_destroy(explain.history);
	return result;
}

static const char usage[] =
	"usage: vidmm explain EVENTS|- [PROCESS]\n"
	"Explains from the events of `vidmm replay --events`, or from a recording (--record of\n"
	"replay, serve and run), why calls failed or took long: of all processes, or of the one\n"
	"with this number.\n";

int explain_main(int argc, const char **argv)
{
	const char *process_filter = argc == 3 ? argv[2] : NULL;
	struct explain_input *input;
	int result;

	if (verb_help(argc, argv, 1, 2, usage, &result))
		return result;
	if (process_filter &&
	    (!*process_filter || process_filter[strspn(process_filter, "0123456789")])) {
		fprintf(stderr, "vidmm explain: \"%s\" is no process number\n%s", process_filter,
			usage);
		return REPLAY_USAGE;
	}
	input = explain_input_open(argv[1], &result);
	if (input)
		result = explain_file(input, argv[1], process_filter);
	explain_input_close(input);
	return result;
}
