/* SPDX-License-Identifier: MIT */
/*
 * The queues of contexts as far as events tell of them: by what each is held, and which signals stand behind that. A wait needs all of
 * its objects, an object one signal. Whoever is held by what somebody who is not held would signal gets on by himself; a cycle is
 * looked for among the others, the shortest first.
 */
#include "explain_waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

enum { TEXT = 32, SIGNALS_TOLD = 8, CYCLE_TOLD = 64 };

/* An object and value, waited for or to be signalled. */
struct item {
	uint64_t object, value, now, time_ns; /* value 0: of units */
	uint32_t handle;                      /* in the context's process */
	bool coming; /* waited for, and a queue that goes on by itself would signal it (find_free) */
};

struct items {
	struct item *at;
	size_t count, room;
};

/* A context of which something is held or queued. */
struct queue {
	uint32_t process, context;
	struct items holds, signals; /* oldest first */
	/* find_free: so many of its holds are not coming; 0: it goes on by itself, and is in a list. */
	size_t missing;
	struct queue *next;
	/* find_cycle: the search has been here. */
	bool seen;
};

struct explain_waits {
	struct queue *queues;
	size_t count, room;
};

struct explain_waits *explain_waits_create(void)
{
	return calloc(1, sizeof(struct explain_waits));
}

static void free_queue(struct queue *queue)
{
	free(queue->holds.at);
	free(queue->signals.at);
}

void explain_waits_destroy(struct explain_waits *waits)
{
	if (!waits)
		return;
	for (size_t i = 0; i < waits->count; i++)
		free_queue(&waits->queues[i]);
	free(waits->queues);
	free(waits);
}

/* ---- what happened ---- */

static struct queue *find(const struct explain_waits *waits, uint32_t process, uint32_t context)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->queues[i].process == process && waits->queues[i].context == context)
			return &waits->queues[i];
	return NULL;
}

/* Room for one more of a size; NULL: out of memory. */
static void *grown(void *at, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return at;
	size_t more = *room ? *room * 2 : 4;
	void *moved = realloc(at, more * size);

	if (moved)
		*room = more;
	return moved;
}

static bool put(struct items *items, const struct logged_event *event)
{
	struct item *at = grown(items->at, items->count, &items->room, sizeof(*at));

	if (!at)
		return false;
	items->at = at;
	at[items->count++] = (struct item){.object = logged_value(event, "object"),
					   .value = logged_value(event, "value"),
					   .now = logged_value(event, "now"),
					   .time_ns = event->time_ns,
					   .handle = (uint32_t)logged_value(event, "handle")};
	return true;
}

/* Signals of a queue are reached in their order, so it is the oldest of its kind. */
static void take(struct items *items, const struct logged_event *event)
{
	uint64_t object = logged_value(event, "object"), value = logged_value(event, "value");

	for (size_t i = 0; i < items->count; i++) {
		struct item *item = &items->at[i];

		if (item->object != object || item->value != value)
			continue;
		memmove(item, item + 1, (--items->count - i) * sizeof(*item));
		return;
	}
}

static struct queue *add_queue(struct explain_waits *waits, const struct logged_event *event)
{
	struct queue *queues =
		grown(waits->queues, waits->count, &waits->room, sizeof(*waits->queues));

	if (!queues)
		return NULL;
	waits->queues = queues;
	queues += waits->count++;
	*queues = (struct queue){.process = event->process, .context = event->object};
	return queues;
}

static void drop_if_empty(struct explain_waits *waits, struct queue *queue)
{
	if (queue->holds.count || queue->signals.count)
		return;
	free_queue(queue);
	waits->count--;
	memmove(queue, queue + 1, (size_t)(waits->queues + waits->count - queue) * sizeof(*queue));
}

bool explain_waits_add(struct explain_waits *waits, const struct logged_event *event)
{
	bool held = strcmp(event->reason, "held") == 0;
	bool more = held || strcmp(event->reason, "queued") == 0;
	struct queue *queue = find(waits, event->process, event->object);

	if (!queue && !more)
		return true; /* the stream began behind its beginning */
	if (!queue)
		queue = add_queue(waits, event);
	if (!queue)
		return false;
	if (more)
		return put(held ? &queue->holds : &queue->signals, event);
	if (strcmp(event->reason, "released") == 0 || strcmp(event->reason, "given_up") == 0)
		queue->holds.count = 0;
	else
		take(&queue->signals, event);
	drop_if_empty(waits, queue);
	return true;
}

/* ---- who would go on with whose signal ---- */

static bool satisfies(const struct item *signal, const struct item *hold)
{
	return signal->object == hold->object && signal->value >= hold->value;
}

/* The first of its signals that would do. */
static const struct item *signal_for(const struct queue *queue, const struct item *hold)
{
	for (size_t i = 0; i < queue->signals.count; i++)
		if (satisfies(&queue->signals.at[i], hold))
			return &queue->signals.at[i];
	return NULL;
}

/* With what one that goes on would signal, so do others: they are put behind it. */
static void set_free(struct explain_waits *waits, const struct queue *from, struct queue **last)
{
	for (size_t i = 0; i < waits->count; i++) {
		struct queue *queue = &waits->queues[i];

		for (size_t n = 0; n < queue->holds.count; n++) {
			struct item *hold = &queue->holds.at[n];

			if (hold->coming || !signal_for(from, hold))
				continue;
			hold->coming = true;
			if (--queue->missing)
				continue;
			*last = (*last)->next = queue;
		}
	}
}

/* Who goes on by himself: each is looked at once. */
static void find_free(struct explain_waits *waits)
{
	struct queue first = {.next = NULL}, *last = &first;

	for (size_t i = 0; i < waits->count; i++) {
		struct queue *queue = &waits->queues[i];

		queue->next = NULL;
		queue->missing = queue->holds.count;
		for (size_t n = 0; n < queue->holds.count; n++)
			queue->holds.at[n].coming = false;
		if (!queue->missing)
			last = last->next = queue;
	}
	for (const struct queue *queue = first.next; queue; queue = queue->next)
		set_free(waits, queue, &last);
}

/* How a search got to a queue: it would signal what the one before it waits for. */
struct step {
	const struct queue *queue;
	const struct item *hold; /* of the one before it; NULL: it is the first */
	size_t from, next;       /* steps; next: set in a cycle that was found, 0 behind the last */
};

struct search {
	struct explain_waits *waits;
	struct step *steps; /* one for each queue at most */
	size_t count;
	const struct item *last; /* what the last of a cycle waits for and the first would signal */
};

/* From one step on to those who would satisfy that wait of it. True: the first is one of them. */
static bool follow(struct search *s, size_t at, const struct item *hold)
{
	if (hold->coming)
		return false;
	for (size_t i = 0; i < s->waits->count; i++) {
		struct queue *next = &s->waits->queues[i];

		if (!signal_for(next, hold))
			continue;
		if (next == s->steps[0].queue) {
			s->last = hold;
			return true;
		}
		if (next->seen)
			continue;
		next->seen = true;
		s->steps[s->count++] = (struct step){.queue = next, .hold = hold, .from = at};
	}
	return false;
}

/* False: none goes through the first. Otherwise the shortest is linked by `next`. */
static bool find_cycle(struct search *s)
{
	for (size_t i = 0; i < s->waits->count; i++)
		s->waits->queues[i].seen = false;
	for (size_t at = 0; at < s->count; at++) {
		const struct items *holds = &s->steps[at].queue->holds;

		for (size_t i = 0; i < holds->count; i++) {
			if (!follow(s, at, &holds->at[i]))
				continue;
			for (; at; at = s->steps[at].from)
				s->steps[s->steps[at].from].next = at;
			return true;
		}
	}
	return false;
}

/* ---- sentences ---- */

static void tell_hold(FILE *out, const struct item *hold)
{
	if (hold->value)
		fprintf(out, "waits for fence 0x%08" PRIx32 " to reach %" PRIu64, hold->handle,
			hold->value);
	else
		fprintf(out, "waits for a unit of 0x%08" PRIx32, hold->handle);
}

static void tell_queue(FILE *out, const struct queue *queue)
{
	fprintf(out, "context 0x%08" PRIx32 " of process %" PRIu32, queue->context, queue->process);
}

/* "waits for ..., which <next> would signal" of each step; of a very long cycle the beginning and the end. */
static void tell_cycle(FILE *out, const struct search *s)
{
	const struct step *step = s->steps;
	size_t told = 0, left_out = 0;

	fputs("    - MFN-31, a cycle: ", out);
	tell_queue(out, step->queue);
	fputc(' ', out);
	for (; step->next; step = &s->steps[step->next]) {
		const struct step *next = &s->steps[step->next];

		if (++told > CYCLE_TOLD) {
			left_out++;
			continue;
		}
		tell_hold(out, next->hold);
		fputs(", which ", out);
		tell_queue(out, next->queue);
		fputs(" would signal, which ", out);
	}
	if (left_out) {
		fprintf(out, "goes on with %zu more, the last of them ", left_out);
		tell_queue(out, step->queue);
		fputs(", which ", out);
	}
	tell_hold(out, s->last);
	fputs(", which ", out);
	tell_queue(out, s->steps->queue);
	fputs(step == s->steps ? " would signal itself, behind that wait\n" : " would signal\n",
	      out);
}

static void tell_signal(FILE *out, const struct queue *queue, const struct item *signal)
{
	char at[TEXT];

	fputs("    - ", out);
	tell_queue(out, queue);
	fputs(" would signal it", out);
	if (signal->value)
		fprintf(out, " with %" PRIu64, signal->value);
	fprintf(out, ", queued at %s", units_time(signal->time_ns, at, sizeof(at)));
	if (!queue->holds.count) {
		fputs("; no wait holds it any more\n", out);
		return;
	}
	fputs(", but ", out);
	tell_hold(out, queue->holds.at);
	if (queue->holds.count > 1)
		fprintf(out, " and %zu more", queue->holds.count - 1);
	fputc('\n', out);
}

/* What it waits for, and who would signal that. */
static void tell_one(const struct explain_waits *waits, FILE *out, const struct queue *queue,
		     const struct item *hold)
{
	char at[TEXT];
	unsigned told = 0;

	fprintf(out, "  context 0x%08" PRIx32 " ", queue->context);
	tell_hold(out, hold);
	fprintf(out, " since %s", units_time(hold->time_ns, at, sizeof(at)));
	if (hold->value)
		fprintf(out, ", when it was %" PRIu64, hold->now);
	fputc('\n', out);
	for (size_t i = 0; i < waits->count && told < SIGNALS_TOLD; i++) {
		const struct item *signal = signal_for(&waits->queues[i], hold);

		if (!signal)
			continue;
		told++;
		tell_signal(out, &waits->queues[i], signal);
	}
	if (!told)
		fputs("    - no signal for it stands behind a wait: it must come from a CPU, a GPU, "
		      "or a call that has not been made\n",
		      out);
}

/* After find_free. Without memory for the search it says that. */
static void tell(struct explain_waits *waits, FILE *out, const struct queue *queue)
{
	struct search s = {.waits = waits, .steps = calloc(waits->count, sizeof(struct step))};

	for (size_t i = 0; i < queue->holds.count; i++)
		tell_one(waits, out, queue, &queue->holds.at[i]);
	if (s.steps) {
		s.steps[s.count++].queue = queue;
		if (find_cycle(&s))
			tell_cycle(out, &s);
	} else {
		fputs("    - no memory to look for a cycle\n", out);
	}
	free(s.steps);
}

bool explain_waits_tell(struct explain_waits *waits, FILE *out, uint32_t process, uint32_t context)
{
	const struct queue *queue = find(waits, process, context);

	if (!queue || !queue->holds.count)
		return false;
	find_free(waits);
	tell(waits, out, queue);
	return true;
}

void explain_waits_tell_all(struct explain_waits *waits, FILE *out, uint32_t process)
{
	find_free(waits);
	for (size_t i = 0; i < waits->count; i++)
		if (waits->queues[i].process == process && waits->queues[i].holds.count)
			tell(waits, out, &waits->queues[i]);
}
