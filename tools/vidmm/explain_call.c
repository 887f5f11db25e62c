/* SPDX-License-Identifier: MIT */
/* Each sentence about a call comes from an event between its beginning and its end. */
#include "explain_call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain_paging.h"
#include "explain_stall.h"
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
	struct sentences sentences;
	struct explain_stall stall;
	struct explain_paging *paging;
	const struct logged_event *door;
	bool renamed, failed;      /* failed: out of memory */
	struct moves moves[MOVES]; /* moves of other allocations of the process */
	unsigned move_count;
};

static void print_range(struct explanation *t, const struct logged_event *event)
{
	uint64_t range = logged_value(event, "range"), for_whom = logged_value(event, "for");

	if (logged_is(event, "range", "reclaimed") && for_whom == t->door->object) {
		sentence_begin(&t->sentences);
		fprintf(t->sentences.out,
			"swizzling range %" PRIu64 " was taken from 0x%08" PRIx32
			" of process %" PRIu32 ", the least recently used one\n",
			range, event->object, event->process);
	} else if (logged_is(event, "range", "refused") && event->object == t->door->object) {
		const char *name = status_name((uint32_t)for_whom);

		sentence_begin(&t->sentences);
		fprintf(t->sentences.out,
			"no swizzling range %" PRIu64 ": the miniport answered %s\n", range,
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

	fprintf(t->sentences.out, "from %s to %s: %s\n", segment_text(from, old),
		segment_text(to, new), reason);
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
	sentence_begin(&t->sentences);
	fprintf(t->sentences.out, "the allocation (%s) moved ",
		units_bytes(logged_value(event, "bytes"), bytes, sizeof(bytes)));
	print_route(t, logged_value(event, "from"), logged_value(event, "to"), event->reason);
}

static void print_other_moves(struct explanation *t)
{
	char bytes[TEXT];

	for (const struct moves *m = t->moves; m < t->moves + t->move_count; m++) {
		sentence_begin(&t->sentences);
		fprintf(t->sentences.out,
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

	explain_stall_add(&t->stall, &t->sentences, event);
	t->failed = !explain_paging_add(t->paging, event) || t->failed;
	if (logged_is(event, "range", NULL)) {
		print_range(t, event);
	} else if ((own || !event->process) && event->text &&
		   (logged_is(event, "finding", NULL) || logged_is(event, "reason", NULL))) {
		sentence_begin(&t->sentences);
		fprintf(t->sentences.out, "%s\n", event->text);
	} else if (own && logged_is(event, "residency", NULL)) {
		print_move(t, event);
	} else if (own && logged_is(event, "rename", NULL)) {
		sentence_begin(&t->sentences);
		t->renamed = true;
		fprintf(t->sentences.out,
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
	sentence_begin(&t->sentences);
	fputs(t->stall.waited
		      ? "not renamed: the maximum number of instances was in use\n"
		      : "not renamed: the GPU had completed its use of the current instance\n",
	      t->sentences.out);
}

/* Prints the sentences about what happened in the call. Returns false when out of memory. */
static bool print_events(struct explanation *t)
{
	bool whole = explain_history_of(t->stall.history, t->door, print_event, t);

	print_rename(t);
	explain_stall_print(&t->stall, &t->sentences);
	explain_paging_print(t->paging, &t->sentences);
	if (!whole)
		fputs("the call has more events than are kept: its first ones are not explained\n",
		      sentence_begin(&t->sentences));
	return !t->failed;
}

static void print_header(FILE *out, const struct logged_event *door)
{
	uint32_t status = (uint32_t)logged_value(door, "status");
	const char *name = status_name(status);
	char time[TEXT], at[TEXT];

	fprintf(out, "%s", door->reason);
	if (door->object)
		fprintf(out, " 0x%08" PRIx32, door->object);
	if (logged_value(door, "flags"))
		fprintf(out, ", flags 0x%" PRIx64, logged_value(door, "flags"));
	fprintf(out, ": %s after %s (event %" PRIu64 ", at %s)\n", name ? name : "status",
		units_time(logged_value(door, "ns"), time, sizeof(time)), door->number,
		units_time(door->time_ns, at, sizeof(at)));
}

/* Prints what has no sentence yet. */
static void print_rest(struct explanation *t)
{
	print_other_moves(t);
	if (!t->sentences.count)
		fputs("no event of this call gives a reason\n", sentence_begin(&t->sentences));
}

/* Waits that are almost as long as the call explain its length. */
static void print_unexplained(struct explanation *t)
{
	uint64_t ns = logged_value(t->door, "ns"), waited_ns = t->stall.waited_ns;
	char time[TEXT];

	if (t->stall.several_threads)
		fputs("several threads waited: no event says which of these waits were "
		      "those of the call\n",
		      sentence_begin(&t->sentences));
	else if (!waited_ns)
		fputs(t->stall.thread_count ? "no event says whether the call waited for that\n"
					    : "no event in it says why\n",
		      sentence_begin(&t->sentences));
	else if (waited_ns < ns - ns / 10)
		fprintf(sentence_begin(&t->sentences), "no event in it says why the other %s\n",
			units_time(ns - waited_ns, time, sizeof(time)));
}

static char *explain(const struct explain_history *history, const struct logged_event *door,
		     bool about_time)
{
	char *text = NULL;
	size_t size;
	struct explanation t = {.sentences = {.out = open_memstream(&text, &size),
					      .prefix = about_time ? "" : "    - "},
				.stall = {.history = history, .door = door},
				.paging = explain_paging_create(door->process),
				.door = door};
	bool good = t.sentences.out && t.paging;

	if (good) {
		if (!about_time)
			print_header(t.sentences.out, door);
		good = print_events(&t);
		if (about_time)
			print_unexplained(&t);
		else
			print_rest(&t);
	}
	explain_paging_destroy(t.paging);
	if (t.sentences.out)
		good = fclose(t.sentences.out) == 0 && good;
	if (good)
		return text;
	free(text);
	return NULL;
}

char *explain_call(const struct explain_history *history, const struct logged_event *door)
{
	return explain(history, door, false);
}

char *explain_call_time(const struct explain_history *history, const struct logged_event *door)
{
	return explain(history, door, true);
}
