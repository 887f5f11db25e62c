/* SPDX-License-Identifier: MIT */
/*
 * Reads an event stream (`vidmm replay --events`) and says of each process why its last call that failed did so, and where the
 * time of its slowest call went. Every sentence comes from an event between the call's beginning and its end. Of contexts that are
 * held by a wait, at the end of the stream or when they were given up, it says by what (explain_waits.c).
 */
#include "explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain_events.h"
#include "explain_history.h"
#include "explain_waits.h"
#include "replay.h"
#include "status_names.h"
#include "units.h"

enum { DISCARD = 0x80, TEXT = 32, MOVES = 16 };

/* What is kept of one process. */
struct subject {
	uint32_t process;
	uint64_t calls, failed, slowest_ns;
	char *failure, *slow, *given_up; /* explanations; NULL: none */
};

struct explain {
	struct explain_history *history;
	struct explain_waits *waits;
	struct subject *subjects;
	unsigned count;
	uint64_t lines;
};

/* ---- one call ---- */

/* How many allocations went from one kind of place to another for one reason; there may be hundreds. */
struct moves {
	char reason[TEXT];
	uint64_t from, to, count, bytes;
};

struct telling {
	FILE *out;
	const struct explain *explain;
	const struct logged_event *door;
	bool waited, renamed;
	unsigned said;
	struct moves moves[MOVES]; /* of other allocations of the process */
	unsigned move_count;
};

static bool is(const struct logged_event *event, const char *type, const char *reason)
{
	return strcmp(event->type, type) == 0 && (!reason || strcmp(event->reason, reason) == 0);
}

static void begin_sentence(struct telling *t)
{
	t->said++;
	fputs("    - ", t->out);
}

/* Which packet it was: whose, since when. */
static void tell_packet(struct telling *t, const struct logged_event *wait)
{
	uint64_t node = logged_value(wait, "node"), number = logged_value(wait, "number");
	const struct explain_submission *s =
		explain_history_submission(t->explain->history, node, number);
	char ago[TEXT];

	if (!s) {
		fprintf(t->out,
			"packet %" PRIu64 " of node %" PRIu64
			" (paging, or too long ago to be known)",
			number, node);
		return;
	}
	fprintf(t->out,
		"submission %" PRIu64 " on node %" PRIu64 " (process %" PRIu32
		", context 0x%08" PRIx32 ", %" PRIu64 " references, accepted %s before)",
		number, node, s->process, s->context, s->references,
		units_time(wait->time_ns - s->time_ns, ago, sizeof(ago)));
}

static void tell_wait(struct telling *t, const struct logged_event *event)
{
	static const struct {
		const char *reason, *text;
	} reasons[] = {
		{"space", "for something in video memory to become idle, so that it can leave"},
		{"paging_buffer", "for a paging buffer: all were in flight"},
		{"dma_buffer", "for a DMA buffer: all of the context were in flight"},
		{"destroy", "for the GPU to be done with what is destroyed"},
		{"power", "for the adapter to get power"},
	};
	char time[TEXT];

	begin_sentence(t);
	t->waited = true;
	if (is(event, "wait", "declined")) {
		fputs("DonotWait (LOCK-08, LOCK-16; without Discard the sign to rename: REN-14, REN-21): it would have "
		      "had to wait for ",
		      t->out);
		tell_packet(t, event);
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
	tell_packet(t, event);
	fputc('\n', t->out);
}

static void tell_range(struct telling *t, const struct logged_event *event)
{
	uint64_t range = logged_value(event, "range"), for_whom = logged_value(event, "for");

	if (is(event, "range", "reclaimed") && for_whom == t->door->object) {
		begin_sentence(t);
		fprintf(t->out,
			"swizzling range %" PRIu64 " was taken from 0x%08" PRIx32
			" of process %" PRIu32 ", which had used it least recently\n",
			range, event->object, event->process);
	} else if (is(event, "range", "refused") && event->object == t->door->object) {
		const char *name = status_name((uint32_t)for_whom);

		begin_sentence(t);
		fprintf(t->out, "no swizzling range %" PRIu64 ": the miniport answered %s\n", range,
			name ? name : "another status");
	}
}

static const char *place(uint64_t segment, char *text)
{
	if (!segment)
		return "system memory";
	snprintf(text, TEXT, "segment %" PRIu64, segment);
	return text;
}

/* "from segment 1 to system memory: pressure" */
static void tell_way(struct telling *t, uint64_t from, uint64_t to, const char *reason)
{
	char old[TEXT], new[TEXT];

	fprintf(t->out, "from %s to %s: %s\n", place(from, old), place(to, new), reason);
}

static void count_move(struct telling *t, const struct logged_event *event)
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

static void tell_move(struct telling *t, const struct logged_event *event)
{
	char bytes[TEXT];

	if (event->object != t->door->object) {
		count_move(t, event);
		return;
	}
	begin_sentence(t);
	fprintf(t->out, "it (%s) went ",
		units_bytes(logged_value(event, "bytes"), bytes, sizeof(bytes)));
	tell_way(t, logged_value(event, "from"), logged_value(event, "to"), event->reason);
}

static void tell_other_moves(struct telling *t)
{
	char bytes[TEXT];

	for (const struct moves *m = t->moves; m < t->moves + t->move_count; m++) {
		begin_sentence(t);
		fprintf(t->out, "meanwhile %" PRIu64 " other%s of the process (%s) went ", m->count,
			m->count == 1 ? "" : "s", units_bytes(m->bytes, bytes, sizeof(bytes)));
		tell_way(t, m->from, m->to, m->reason);
	}
}

static void tell_event(void *context, const struct logged_event *event)
{
	struct telling *t = context;
	bool own = event->process == t->door->process;

	if (is(event, "range", NULL)) {
		tell_range(t, event);
	} else if ((own || !event->process) && event->text &&
		   (is(event, "finding", NULL) || is(event, "reason", NULL))) {
		begin_sentence(t);
		fprintf(t->out, "%s\n", event->text);
	} else if (own && is(event, "wait", NULL)) {
		tell_wait(t, event);
	} else if (own && is(event, "residency", NULL)) {
		tell_move(t, event);
	} else if (own && is(event, "rename", NULL)) {
		begin_sentence(t);
		t->renamed = true;
		fprintf(t->out,
			"renamed: it goes on in 0x%08" PRIx32 ", %s instance, %" PRIu64 " alive\n",
			event->object, strcmp(event->reason, "new") == 0 ? "a new" : "a reused",
			logged_value(event, "instances"));
	}
}

static bool failed(const struct logged_event *door)
{
	return logged_value(door, "status") >> 30 == 3;
}

/* Why a lock with Discard came back with the instance that it had. */
static void tell_rename(struct telling *t)
{
	if (strcmp(t->door->reason, "lock") != 0 || t->renamed || failed(t->door) ||
	    !(logged_value(t->door, "flags") & DISCARD))
		return;
	begin_sentence(t);
	fputs(t->waited ? "not renamed: as many instances as it may have were in use\n"
			: "not renamed: the GPU was done with the instance it has\n",
	      t->out);
}

static char *explain_call(const struct explain *explain, const struct logged_event *door)
{
	char *text = NULL, time[TEXT], at[TEXT];
	size_t size;
	struct telling t = {.out = open_memstream(&text, &size), .explain = explain, .door = door};
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
	explain_history_of(explain->history, door, tell_event, &t);
	tell_rename(&t);
	tell_other_moves(&t);
	if (!t.said) {
		begin_sentence(&t);
		fputs("no event says why\n", t.out);
	}
	if (fclose(t.out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- the stream ---- */

static struct subject *subject_of(struct explain *explain, uint32_t process)
{
	struct subject *more;

	for (unsigned i = 0; i < explain->count; i++) {
		if (explain->subjects[i].process == process)
			return &explain->subjects[i];
	}
	more = realloc(explain->subjects, (explain->count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	explain->subjects = more;
	more += explain->count++;
	*more = (struct subject){.process = process};
	return more;
}

static bool take_call(struct explain *explain, const struct logged_event *door)
{
	struct subject *subject = subject_of(explain, door->process);
	uint64_t ns = logged_value(door, "ns");
	char **place;

	if (!subject)
		return false;
	subject->calls++;
	if (failed(door)) {
		subject->failed++;
		place = &subject->failure;
	} else if (ns > subject->slowest_ns) {
		subject->slowest_ns = ns;
		place = &subject->slow;
	} else {
		return true;
	}
	free(*place);
	*place = explain_call(explain, door);
	return *place != NULL;
}

/* The last context of a process that was given up while it waited: by what it was held then. */
static bool note_given_up(struct explain *explain, const struct logged_event *event)
{
	struct subject *subject = subject_of(explain, event->process);
	char *text = NULL, at[TEXT];
	size_t size;
	FILE *out = subject ? open_memstream(&text, &size) : NULL;

	if (!out)
		return false;
	bool known = explain_waits_tell(explain->waits, out, event->process, event->object);

	if (known)
		fprintf(out, "    - that was given up at %s\n",
			units_time(event->time_ns, at, sizeof(at)));
	if (fclose(out) != 0 || !known) {
		free(text);
		return !known;
	}
	free(subject->given_up);
	subject->given_up = text;
	return true;
}

static bool take_event(struct explain *explain, const struct logged_event *event)
{
	if (is(event, "door", NULL) && !take_call(explain, event))
		return false;
	if (is(event, "sync", "given_up") && !note_given_up(explain, event))
		return false;
	if (is(event, "sync", NULL) &&
	    (!subject_of(explain, event->process) || !explain_waits_add(explain->waits, event)))
		return false;
	return explain_history_add(explain->history, event);
}

static int read_events(struct explain *explain, FILE *file, const char *path)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	int result = REPLAY_CLEAN;

	while (result == REPLAY_CLEAN && (length = getline(&line, &size, file)) >= 0) {
		struct logged_event event;

		explain->lines++;
		if (length && line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (strlen(line) + 1 < (size_t)length || !logged_event_parse(line, &event)) {
			fprintf(stderr, "vidmm: %s, line %" PRIu64 ": not an event\n", path,
				explain->lines);
			result = REPLAY_BAD_INPUT;
		} else if (!take_event(explain, &event)) {
			fprintf(stderr, "vidmm: out of memory\n");
			result = REPLAY_ENVIRONMENT;
		}
	}
	free(line);
	if (result == REPLAY_CLEAN && ferror(file)) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		result = REPLAY_ENVIRONMENT;
	}
	return result;
}

static int print(const struct explain *explain, const char *wanted)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < explain->count; i++) {
		const struct subject *s = &explain->subjects[i];
		char count[2][TEXT], number[TEXT];

		snprintf(number, sizeof(number), "%" PRIu32, s->process);
		if (wanted && strcmp(wanted, number) != 0)
			continue;
		printf("%sprocess %s: %s calls, %s failed\n", shown++ ? "\n" : "", number,
		       units_count(s->calls, count[0], TEXT),
		       units_count(s->failed, count[1], TEXT));
		if (s->failure)
			printf("  the last that failed: %s", s->failure);
		if (s->slow)
			printf("  the slowest: %s", s->slow);
		if (s->given_up)
			printf("%s", s->given_up);
		explain_waits_tell_all(explain->waits, stdout, s->process);
	}
	if (shown)
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm: no calls%s%s\n", wanted ? " of process " : "",
		wanted ? wanted : "");
	return REPLAY_BAD_INPUT;
}

static int explain_file(FILE *file, const char *path, const char *wanted)
{
	struct explain explain = {.history = explain_history_create(),
				  .waits = explain_waits_create()};
	int result = explain.history && explain.waits ? read_events(&explain, file, path)
						      : REPLAY_ENVIRONMENT;

	if (result == REPLAY_CLEAN)
		result = print(&explain, wanted);
	for (unsigned i = 0; i < explain.count; i++) {
		free(explain.subjects[i].failure);
		free(explain.subjects[i].slow);
		free(explain.subjects[i].given_up);
	}
	free(explain.subjects);
	explain_waits_destroy(explain.waits);
	explain_history_destroy(explain.history);
	return result;
}

int explain_main(int argc, const char **argv)
{
	const char *wanted = argc == 3 ? argv[2] : NULL;
	bool piped = argc > 1 && strcmp(argv[1], "-") == 0;
	FILE *file;
	int result;

	if (argc < 2 || argc > 3 || (argv[1][0] == '-' && !piped)) {
		fprintf(stderr, "usage: vidmm explain EVENTS|- [PROCESS]\n");
		return REPLAY_USAGE;
	}
	file = piped ? stdin : fopen(argv[1], "r");
	if (!file) {
		fprintf(stderr, "vidmm: %s: %s\n", argv[1], strerror(errno));
		return REPLAY_ENVIRONMENT;
	}
	result = explain_file(file, argv[1], wanted);
	if (!piped)
		fclose(file);
	return result;
}
