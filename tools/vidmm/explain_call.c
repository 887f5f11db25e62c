/* SPDX-License-Identifier: MIT */
/* Each sentence about a call comes from an event between its beginning and its end. */
#include "explain_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status_names.h"
#include "units.h"

enum { DISCARD = 0x80, TEXT = 32, MOVES = 16 };

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
	const struct explain_history *history;
	const struct logged_event *door;
	bool waited, renamed;
	unsigned sentences;
	struct moves moves[MOVES]; /* moves of other allocations of the process */
	unsigned move_count;
};

static void begin_sentence(struct explanation *t)
{
	t->sentences++;
	fputs("    - ", t->out);
}

/* Prints the packet that a wait waited for: its process and context, and when it was accepted. */
static void print_packet(struct explanation *t, const struct logged_event *wait)
{
	uint64_t node = logged_value(wait, "node"), number = logged_value(wait, "number");
	const struct explain_submission *s = explain_history_submission(t->history, node, number);
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
	if (logged_is(event, "wait", "declined")) {
		fputs("DonotWait (LOCK-08, LOCK-16; without Discard, the hint to rename: REN-14, "
		      "REN-21): the lock would have waited for ",
		      t->out);
		print_packet(t, event);
		fputc('\n', t->out);
		return;
	}
	fprintf(t->out, "waited %s ", units_time(logged_value(event, "ns"), time, sizeof(time)));
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (logged_is(event, "wait", reasons[i].reason)) {
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

	if (logged_is(event, "range", "reclaimed") && for_whom == t->door->object) {
		begin_sentence(t);
		fprintf(t->out,
			"swizzling range %" PRIu64 " was taken from 0x%08" PRIx32
			" of process %" PRIu32 ", the least recently used one\n",
			range, event->object, event->process);
	} else if (logged_is(event, "range", "refused") && event->object == t->door->object) {
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

	if (logged_is(event, "range", NULL)) {
		print_range(t, event);
	} else if ((own || !event->process) && event->text &&
		   (logged_is(event, "finding", NULL) || logged_is(event, "reason", NULL))) {
		begin_sentence(t);
		fprintf(t->out, "%s\n", event->text);
	} else if (own && logged_is(event, "wait", NULL)) {
		print_wait(t, event);
	} else if (own && logged_is(event, "residency", NULL)) {
		print_move(t, event);
	} else if (own && logged_is(event, "rename", NULL)) {
		begin_sentence(t);
		t->renamed = true;
		fprintf(t->out,
			"renamed to 0x%08" PRIx32 ", %s instance, %" PRIu64 " instances alive\n",
			event->object, strcmp(event->reason, "new") == 0 ? "a new" : "a reused",
			logged_value(event, "instances"));
	}
}

/* Explains why a lock with Discard returned the current instance. */
static void print_rename(struct explanation *t)
{
	if (strcmp(t->door->reason, "lock") != 0 || t->renamed || logged_failed(t->door) ||
	    !(logged_value(t->door, "flags") & DISCARD))
		return;
	begin_sentence(t);
	fputs(t->waited ? "not renamed: the maximum number of instances was in use\n"
			: "not renamed: the GPU had completed its use of the current instance\n",
	      t->out);
}

char *explain_call(const struct explain_history *history, const struct logged_event *door)
{
	char *text = NULL, time[TEXT], at[TEXT];
	size_t size;
	struct explanation t = {
		.out = open_memstream(&text, &size), .history = history, .door = door};
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
	explain_history_of(history, door, print_event, &t);
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
