/* SPDX-License-Identifier: MIT */
/* Two ring buffers: the last events, and the last submissions by node and number. */
#include "explain_history.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 1 << 14, OLDER = 64, SUBMISSIONS = 1 << 16 };

struct explain_history {
	/* ring buffer: event n is at n % EVENTS; its text is an allocated copy */
	struct logged_event events[EVENTS];
	uint64_t added;
	struct explain_submission submissions[SUBMISSIONS];
};

struct explain_history *explain_history_create(void)
{
	return calloc(1, sizeof(struct explain_history));
}

void explain_history_destroy(struct explain_history *history)
{
	if (!history)
		return;
	for (unsigned i = 0; i < EVENTS; i++)
		free((char *)history->events[i].text);
	free(history);
}

static unsigned place_of(uint64_t node, uint64_t number)
{
	return (unsigned)((number * 64 + node) % SUBMISSIONS);
}

static void add_submission(struct explain_history *history, const struct logged_event *event)
{
	/*
	 * The node is in the field where other events have a reason. The formatter leaves node 0
	 * out.
	 */
	struct explain_submission s = {.node = strtoull(event->reason, NULL, 10),
				       .number = logged_value(event, "number"),
				       .time_ns = event->time_ns,
				       .references = logged_value(event, "references"),
				       .process = event->process,
				       .context = event->object};

	history->submissions[place_of(s.node, s.number)] = s;
}

bool explain_history_add(struct explain_history *history, const struct logged_event *event)
{
	struct logged_event *slot = &history->events[history->added++ % EVENTS];

	if (strcmp(event->type, "submit") == 0)
		add_submission(history, event);
	free((char *)slot->text);
	*slot = *event;
	if (!event->text)
		return true;
	slot->text = strdup(event->text);
	return slot->text != NULL;
}

const struct explain_submission *explain_history_submission(const struct explain_history *history,
							    uint64_t node, uint64_t number)
{
	const struct explain_submission *s = &history->submissions[place_of(node, number)];

	return number && s->number == number && s->node == node ? s : NULL;
}

/* Returns whether EVENT precedes the call that ends with DOOR. */
static bool is_before(const struct logged_event *event, const struct logged_event *door)
{
	uint64_t began_ns = door->time_ns - logged_value(door, "ns");

	if (event->time_ns != began_ns)
		return event->time_ns < began_ns;
	/*
	 * Virtual time may be the same in two calls: the end of the process's previous call
	 * separates them.
	 */
	return event->process == door->process && strcmp(event->type, "door") == 0;
}

void explain_history_of(const struct explain_history *history, const struct logged_event *door,
			void (*fn)(void *context, const struct logged_event *event), void *context)
{
	uint64_t oldest = history->added > EVENTS ? history->added - EVENTS : 0;
	uint64_t first = history->added;
	unsigned before = 0;

	/* Threads deliver events in almost the order of time: a few older ones are no end. */
	while (first > oldest && before < OLDER) {
		first--;
		before = is_before(&history->events[first % EVENTS], door) ? before + 1 : 0;
	}
	for (; first < history->added; first++)
		if (!is_before(&history->events[first % EVENTS], door))
			fn(context, &history->events[first % EVENTS]);
}
