/* SPDX-License-Identifier: MIT */
/*
 * The wait-for graph of context queues, from the "sync" events. A queue is blocked by a wait. The
 * wait has one hold for each of its objects and needs all of them; one signal satisfies a hold. The
 * algorithm has two steps. First it finds every queue that can make progress: each queue without
 * holds, and transitively each queue whose holds such queues would satisfy. A breadth-first search
 * over the remaining queues then finds the shortest cycle through a given queue.
 */
#include "explain_waits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

enum { TEXT = 32, SIGNALS_MAX = 8, CYCLE_STEPS_MAX = 64 };

/* An object and a value: of a hold, or of a queued signal. */
struct item {
	/*
	 * value 0: the object has units instead of values (mutex, semaphore); now: its value at
	 * that time
	 */
	uint64_t object, value, now, time_ns;
	uint32_t handle; /* handle in the context's process */
	/* for find_unblocked: a hold, and a queue that can make progress would signal it */
	bool will_be_signaled;
};

struct items {
	struct item *at;
	size_t count, capacity;
};

/* The queue of a context that is blocked or has a queued signal. */
struct queue {
	uint32_t process, context;
	struct items holds, signals; /* oldest first */
	/*
	 * For find_unblocked: the number of holds that no unblocked queue would satisfy. At 0 the
	 * queue can make progress and is in the list that `next` links.
	 */
	size_t unsatisfied;
	struct queue *next;
	/* For find_cycle: the search has visited this queue. */
	bool visited;
};

struct explain_waits {
	struct queue *queues;
	size_t count, capacity;
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

/* ---- events ---- */

static struct queue *find(const struct explain_waits *waits, uint32_t process, uint32_t context)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->queues[i].process == process && waits->queues[i].context == context)
			return &waits->queues[i];
	return NULL;
}

/* Doubles the array if it is full. Returns NULL when out of memory. */
static void *grown(void *at, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return at;
	size_t more = *capacity ? *capacity * 2 : 4;
	void *moved = realloc(at, more * size);

	if (moved)
		*capacity = more;
	return moved;
}

static bool append_item(struct items *items, const struct logged_event *event)
{
	struct item *at = grown(items->at, items->count, &items->capacity, sizeof(*at));

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

/*
 * Removes the oldest item with the object and value of EVENT: a queue executes its signals in
 * order.
 */
static void remove_item(struct items *items, const struct logged_event *event)
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
		grown(waits->queues, waits->count, &waits->capacity, sizeof(*waits->queues));

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
		return true; /* the hold or signal precedes the beginning of the stream */
	if (!queue)
		queue = add_queue(waits, event);
	if (!queue)
		return false;
	if (more)
		return append_item(held ? &queue->holds : &queue->signals, event);
	if (strcmp(event->reason, "released") == 0 || strcmp(event->reason, "given_up") == 0)
		queue->holds.count = 0;
	else
		remove_item(&queue->signals, event);
	drop_if_empty(waits, queue);
	return true;
}

/* ---- queues that can make progress, and cycles ---- */

static bool satisfies(const struct item *signal, const struct item *hold)
{
	return signal->object == hold->object && signal->value >= hold->value;
}

/* Returns the first signal of QUEUE that would satisfy HOLD, NULL if there is none. */
static const struct item *signal_for(const struct queue *queue, const struct item *hold)
{
	for (size_t i = 0; i < queue->signals.count; i++)
		if (satisfies(&queue->signals.at[i], hold))
			return &queue->signals.at[i];
	return NULL;
}

/*
 * Marks the holds that the signals of FROM would satisfy. Queues without another hold are appended
 * to the list at *LAST.
 */
static void unblock_waiters(struct explain_waits *waits, const struct queue *from,
			    struct queue **last)
{
	for (size_t i = 0; i < waits->count; i++) {
		struct queue *queue = &waits->queues[i];

		for (size_t n = 0; n < queue->holds.count; n++) {
			struct item *hold = &queue->holds.at[n];

			if (hold->will_be_signaled || !signal_for(from, hold))
				continue;
			hold->will_be_signaled = true;
			if (--queue->unsatisfied)
				continue;
			*last = (*last)->next = queue;
		}
	}
}

/* Finds all queues that can make progress, as a work list in which each queue is processed once. */
static void find_unblocked(struct explain_waits *waits)
{
	struct queue first = {.next = NULL}, *last = &first;

	for (size_t i = 0; i < waits->count; i++) {
		struct queue *queue = &waits->queues[i];

		queue->next = NULL;
		queue->unsatisfied = queue->holds.count;
		for (size_t n = 0; n < queue->holds.count; n++)
			queue->holds.at[n].will_be_signaled = false;
		if (!queue->unsatisfied)
			last = last->next = queue;
	}
	for (const struct queue *queue = first.next; queue; queue = queue->next)
		unblock_waiters(waits, queue, &last);
}

/* A step of the breadth-first search: QUEUE would signal what the queue of step FROM waits for. */
struct step {
	const struct queue *queue;
	const struct item *hold; /* of the queue of step `from`; NULL in the first step */
	/* indexes of steps; next: set in a cycle that was found, 0 in its last step */
	size_t from, next;
};

struct search {
	struct explain_waits *waits;
	struct step *steps; /* at most one for each queue */
	size_t count;
	/* the hold of the cycle's last queue that its first queue would satisfy */
	const struct item *last;
};

/*
 * Adds the queues that would satisfy HOLD of step AT. Returns true if the first queue is one of
 * them, which closes the cycle.
 */
static bool expand_step(struct search *s, size_t at, const struct item *hold)
{
	if (hold->will_be_signaled)
		return false;
	for (size_t i = 0; i < s->waits->count; i++) {
		struct queue *next = &s->waits->queues[i];

		if (!signal_for(next, hold))
			continue;
		if (next == s->steps[0].queue) {
			s->last = hold;
			return true;
		}
		if (next->visited)
			continue;
		next->visited = true;
		s->steps[s->count++] = (struct step){.queue = next, .hold = hold, .from = at};
	}
	return false;
}

/*
 * Searches for the shortest cycle through the first queue. Returns false if there is none;
 * otherwise `next` links its steps.
 */
static bool find_cycle(struct search *s)
{
	for (size_t i = 0; i < s->waits->count; i++)
		s->waits->queues[i].visited = false;
	for (size_t at = 0; at < s->count; at++) {
		const struct items *holds = &s->steps[at].queue->holds;

		for (size_t i = 0; i < holds->count; i++) {
			if (!expand_step(s, at, &holds->at[i]))
				continue;
			for (; at; at = s->steps[at].from)
				s->steps[s->steps[at].from].next = at;
			return true;
		}
	}
	return false;
}

/* ---- output ---- */

static void print_hold(FILE *out, const struct item *hold)
{
	if (hold->value)
		fprintf(out, "waits for fence 0x%08" PRIx32 " to reach %" PRIu64, hold->handle,
			hold->value);
	else
		fprintf(out, "waits for a unit of object 0x%08" PRIx32, hold->handle);
}

static void print_queue(FILE *out, const struct queue *queue)
{
	fprintf(out, "context 0x%08" PRIx32 " of process %" PRIu32, queue->context, queue->process);
}

/*
 * Prints "waits for ..., which <next> would signal" for each step. The middle of a cycle with more
 * than CYCLE_STEPS_MAX steps is left out.
 */
static void print_cycle(FILE *out, const struct search *s)
{
	const struct step *step = s->steps;
	size_t shown = 0, left_out = 0;

	fputs("    - MFN-31, a cycle: ", out);
	print_queue(out, step->queue);
	fputc(' ', out);
	for (; step->next; step = &s->steps[step->next]) {
		const struct step *next = &s->steps[step->next];

		if (++shown > CYCLE_STEPS_MAX) {
			left_out++;
			continue;
		}
		print_hold(out, next->hold);
		fputs(", which ", out);
		print_queue(out, next->queue);
		fputs(" would signal, which ", out);
	}
	if (left_out) {
		fprintf(out, "continues with %zu more contexts, the last of them ", left_out);
		print_queue(out, step->queue);
		fputs(", which ", out);
	}
	print_hold(out, s->last);
	fputs(", which ", out);
	print_queue(out, s->steps->queue);
	fputs(step == s->steps ? " would signal itself, after that wait\n" : " would signal\n",
	      out);
}

static void print_signal(FILE *out, const struct queue *queue, const struct item *signal)
{
	char at[TEXT];

	fputs("    - ", out);
	print_queue(out, queue);
	fputs(" would signal it", out);
	if (signal->value)
		fprintf(out, " with %" PRIu64, signal->value);
	fprintf(out, ", queued at %s", units_time(signal->time_ns, at, sizeof(at)));
	if (!queue->holds.count) {
		fputs("; no wait blocks it\n", out);
		return;
	}
	fputs(", but ", out);
	print_hold(out, queue->holds.at);
	if (queue->holds.count > 1)
		fprintf(out, " and %zu more", queue->holds.count - 1);
	fputc('\n', out);
}

/* Prints a hold of QUEUE and the queued signals that would satisfy it. */
static void print_one(const struct explain_waits *waits, FILE *out, const struct queue *queue,
		      const struct item *hold)
{
	char at[TEXT];
	unsigned shown = 0;

	fprintf(out, "  context 0x%08" PRIx32 " ", queue->context);
	print_hold(out, hold);
	fprintf(out, " since %s", units_time(hold->time_ns, at, sizeof(at)));
	if (hold->value)
		fprintf(out, ", when it was %" PRIu64, hold->now);
	fputc('\n', out);
	for (size_t i = 0; i < waits->count && shown < SIGNALS_MAX; i++) {
		const struct item *signal = signal_for(&waits->queues[i], hold);

		if (!signal)
			continue;
		shown++;
		print_signal(out, &waits->queues[i], signal);
	}
	if (!shown)
		fputs("    - no queued signal would satisfy it: the signal must come from a CPU, "
		      "a GPU or a later call\n",
		      out);
}

/* Prints all holds of QUEUE and the shortest cycle through it. find_unblocked has run. */
static void print_queue_holds(struct explain_waits *waits, FILE *out, const struct queue *queue)
{
	struct search s = {.waits = waits, .steps = calloc(waits->count, sizeof(struct step))};

	for (size_t i = 0; i < queue->holds.count; i++)
		print_one(waits, out, queue, &queue->holds.at[i]);
	if (s.steps) {
		s.steps[s.count++].queue = queue;
		if (find_cycle(&s))
			print_cycle(out, &s);
	} else {
		fputs("    - out of memory: no search for a cycle\n", out);
	}
	free(s.steps);
}

bool explain_waits_print(struct explain_waits *waits, FILE *out, uint32_t process, uint32_t context)
{
	const struct queue *queue = find(waits, process, context);

	if (!queue || !queue->holds.count)
		return false;
	find_unblocked(waits);
	print_queue_holds(waits, out, queue);
	return true;
}

void explain_waits_print_all(struct explain_waits *waits, FILE *out, uint32_t process)
{
	find_unblocked(waits);
	for (size_t i = 0; i < waits->count; i++)
		if (waits->queues[i].process == process && waits->queues[i].holds.count)
			print_queue_holds(waits, out, &waits->queues[i]);
}
