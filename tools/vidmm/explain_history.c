/* SPDX-License-Identifier: MIT */
/* Ring buffers: the last events and packets, and the last submissions by node and number. */
#include "explain_history.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS = 1 << 14, OLDER = 64, SUBMISSIONS = 1 << 16, PACKETS = 1 << 13, NODES = 256 };
enum { HW_QUEUES = 1024 };

struct explain_history {
	/* ring buffer: event n is at n % EVENTS; its text is an allocated copy */
	struct logged_event events[EVENTS];
	uint64_t added;
	struct explain_submission submissions[SUBMISSIONS];
	struct explain_packet packets[PACKETS]; /* packet n is at n % PACKETS */
	uint64_t packet_count;
	bool from_first; /* the stream begins with the first event of the host */
	bool has_submit_events, has_hw_queues;
	bool has_submissions[NODES];
	uint64_t completed[NODES];     /* all submissions up to this one are complete */
	uint64_t hw_queues[HW_QUEUES]; /* key_of hardware queues, the last one at each place */
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
	history->has_submit_events = true;
	if (s.node < NODES)
		history->has_submissions[s.node] = true;
}

/* ---- packets ---- */

static uint64_t oldest_packet(const struct explain_history *history)
{
	return history->packet_count > PACKETS ? history->packet_count - PACKETS : 0;
}

static uint64_t key_of(uint32_t process, uint32_t object)
{
	return (uint64_t)process << 32 | object;
}

/* Handles are multiples of 64. */
static unsigned hw_place_of(uint32_t process, uint32_t object)
{
	return (object / 64 + process) % HW_QUEUES;
}

static bool is_hw_queue(const struct explain_history *history, uint32_t process, uint32_t object)
{
	return object &&
	       history->hw_queues[hw_place_of(process, object)] == key_of(process, object);
}

/* Marks the packets of a hardware queue that an event names. */
static void add_hw_queue(struct explain_history *history, const struct logged_event *event)
{
	history->has_hw_queues = true;
	if (!event->object || logged_failed(event) ||
	    is_hw_queue(history, event->process, event->object))
		return;
	history->hw_queues[hw_place_of(event->process, event->object)] =
		key_of(event->process, event->object);
	for (uint64_t n = oldest_packet(history); n < history->packet_count; n++) {
		struct explain_packet *packet = &history->packets[n % PACKETS];

		if (packet->context == event->object && packet->process == event->process)
			packet->by_queue = true;
	}
}

/*
 * Returns whether the packets complete in order: both are of a node, or both of a hardware queue.
 * The fences of a node and those of a hardware queue on it are independent.
 */
static bool is_in_order(const struct explain_packet *a, const struct explain_packet *b)
{
	return a->node == b->node && a->by_queue == b->by_queue &&
	       (!a->by_queue || (a->context == b->context && a->process == b->process));
}

/* Counts the packets ahead of a new one on its node or queue that are not complete. */
static uint32_t count_ahead(const struct explain_history *history,
			    const struct explain_packet *added)
{
	uint32_t count = 0;

	for (uint64_t n = history->packet_count; n > oldest_packet(history); n--) {
		const struct explain_packet *packet = &history->packets[(n - 1) % PACKETS];

		if (!is_in_order(packet, added))
			continue;
		if (packet->done_ns != UINT64_MAX)
			break;
		count++;
	}
	return count;
}

static void add_packet(struct explain_history *history, const struct logged_event *event)
{
	struct explain_packet packet = {.node = logged_value(event, "node"),
					.fence = logged_value(event, "fence"),
					.queued_ns = event->time_ns,
					.done_ns = UINT64_MAX,
					.process = event->process,
					.context = event->object,
					.paging = strcmp(event->reason, "paging") == 0};

	packet.by_queue = is_hw_queue(history, packet.process, packet.context);
	packet.ahead = count_ahead(history, &packet);
	/* The submit event may follow, because another thread emits it. */
	if (!packet.paging && packet.node < NODES)
		history->has_submissions[packet.node] = true;
	history->packets[history->packet_count++ % PACKETS] = packet;
}

/*
 * Returns the submission whose last packet is the one with that fence, 0 if it is not known. If the
 * fence retires several packets, any of them may be that one. The first parts of a split DMA buffer
 * report the submission before, which is complete already.
 */
static uint64_t completed_by(struct explain_history *history, const struct logged_event *fence)
{
	uint64_t node = logged_value(fence, "node"), number = logged_value(fence, "complete");

	if (node >= NODES || number <= history->completed[node])
		return 0;
	history->completed[node] = number;
	return logged_value(fence, "retired") == 1 ? number : 0;
}

/*
 * A fence completes its packet and all earlier ones of the same node or queue. Only the fence of a
 * hardware queue has an object.
 */
static void complete_packets(struct explain_history *history, const struct logged_event *event)
{
	const struct explain_packet of = {.node = logged_value(event, "node"),
					  .process = event->process,
					  .context = event->object,
					  .by_queue = event->object != 0};
	uint64_t complete = completed_by(history, event);
	bool found = false;

	if (event->object)
		add_hw_queue(history, event);
	for (uint64_t n = history->packet_count; n > oldest_packet(history); n--) {
		struct explain_packet *packet = &history->packets[(n - 1) % PACKETS];

		if (!is_in_order(packet, &of))
			continue;
		if (packet->done_ns != UINT64_MAX)
			break;
		if (packet->fence == logged_value(event, "fence")) {
			packet->complete = complete;
			found = true;
		}
		if (found)
			packet->done_ns = event->time_ns;
	}
}

const struct explain_packet *explain_history_packet(const struct explain_history *history,
						    uint64_t node, uint64_t number)
{
	for (uint64_t n = history->packet_count; number && n > oldest_packet(history); n--) {
		const struct explain_packet *packet = &history->packets[(n - 1) % PACKETS];

		if (packet->node == node && !packet->paging && packet->complete == number)
			return packet;
	}
	return NULL;
}

bool explain_history_is_paging(const struct explain_history *history, uint64_t node)
{
	return history->from_first && history->has_submit_events && !history->has_hw_queues &&
	       node < NODES && !history->has_submissions[node];
}

uint64_t explain_history_paging_ns(const struct explain_history *history, uint64_t begin_ns,
				   uint64_t end_ns)
{
	uint64_t ns = 0;

	/* The packets are in the order of their time, so `begin_ns` is what is not counted yet. */
	for (uint64_t n = oldest_packet(history); n < history->packet_count; n++) {
		const struct explain_packet *packet = &history->packets[n % PACKETS];
		uint64_t begin = packet->queued_ns > begin_ns ? packet->queued_ns : begin_ns;
		uint64_t end = packet->done_ns < end_ns ? packet->done_ns : end_ns;

		if (!packet->paging || end <= begin)
			continue;
		ns += end - begin;
		begin_ns = end;
	}
	return ns;
}

/* ---- events ---- */

bool explain_history_add(struct explain_history *history, const struct logged_event *event)
{
	struct logged_event *slot = &history->events[history->added % EVENTS];

	if (!history->added++)
		history->from_first = event->number == 1;
	if (strcmp(event->type, "submit") == 0)
		add_submission(history, event);
	else if (strcmp(event->type, "queue") == 0)
		add_packet(history, event);
	else if (logged_is(event, "door", "hw_queue"))
		add_hw_queue(history, event);
	else if (strcmp(event->type, "fence") == 0)
		complete_packets(history, event);
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

/* A call of the same process that ended when the call of DOOR began. */
static bool separates(const struct logged_event *event, const struct logged_event *door)
{
	return event->time_ns == door->time_ns - logged_value(door, "ns") &&
	       event->process == door->process && strcmp(event->type, "door") == 0;
}

/*
 * Returns whether EVENT precedes the call that ends with DOOR. Virtual time may be the same in two
 * calls; SEPARATED: the end of the call before this one follows the event.
 */
static bool is_before(const struct logged_event *event, const struct logged_event *door,
		      bool separated)
{
	uint64_t began_ns = door->time_ns - logged_value(door, "ns");

	return event->time_ns < began_ns || (event->time_ns == began_ns && separated);
}

bool explain_history_of(const struct explain_history *history, const struct logged_event *door,
			void (*fn)(void *context, const struct logged_event *event), void *context)
{
	uint64_t oldest = history->added > EVENTS ? history->added - EVENTS : 0;
	uint64_t first = history->added, separator = 0; /* separator: number of its event + 1 */
	unsigned before = 0;

	/* Threads deliver events in almost the order of time: a few older ones are no end. */
	while (first > oldest && before < OLDER) {
		const struct logged_event *event = &history->events[--first % EVENTS];

		if (!separator && separates(event, door))
			separator = first + 1;
		before = is_before(event, door, separator != 0) ? before + 1 : 0;
	}
	bool whole = first > oldest || !oldest || before > 0;

	for (; first < history->added; first++)
		if (!is_before(&history->events[first % EVENTS], door, first < separator))
			fn(context, &history->events[first % EVENTS]);
	return whole;
}
