/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "thrash.h"

/* ---- columns ---- */

static void put(struct timeline *t, enum timeline_column column, uint64_t value)
{
	column_put(&t->column[column], value);
	t->rows[column]++;
}

static void put_signed(struct timeline *t, enum timeline_column column, int64_t value)
{
	column_put_signed(&t->column[column], value);
	t->rows[column]++;
}

/* Puts the time since the row before. Events may come slightly out of order: time stands still. */
static void put_time(struct timeline *t, enum timeline_column column, uint64_t *before,
		     uint64_t now)
{
	uint64_t later = now > *before ? now : *before;

	put(t, column, later - *before);
	*before = later;
}

static void put_allocation(struct timeline *t, enum timeline_column column, int64_t *before,
			   uint32_t row)
{
	put_signed(t, column, (int64_t)row - *before);
	*before = row;
}

/* ---- processes and allocations ---- */

/* Returns the row of the process, UINT32_MAX when out of memory. */
static uint32_t process_row(struct timeline *t, uint32_t number)
{
	uint32_t row;

	/* A handle of the map is never 0, and process 0 is a process of the map, too. */
	if (handle_map_find(&t->numbers, number, 1, &row))
		return row;
	if (!grow_array((void **)&t->processes, &t->process_capacity, t->process_count,
			sizeof(*t->processes)) ||
	    !handle_map_set(&t->numbers, number, 1, t->process_count)) {
		t->failed = true;
		return UINT32_MAX;
	}
	row = t->process_count++;
	t->processes[row] = (struct timeline_process){.number = number};
	return row;
}

static void name_process(struct timeline *t, uint32_t number, const char *name)
{
	uint32_t row = process_row(t, number);

	if (row == UINT32_MAX || !name)
		return;
	free(t->processes[row].name);
	t->processes[row].name = strdup(name);
	t->failed = t->failed || !t->processes[row].name;
}

/* Adds an allocation, which has the handle from now on. Returns its row, UINT32_MAX: failed. */
static uint32_t add_allocation(struct timeline *t, const struct vidmm_event *event, uint64_t bytes,
			       uint64_t flags)
{
	uint32_t process = process_row(t, event->process);

	if (process == UINT32_MAX || !event->object)
		return UINT32_MAX;
	if (!grow_array((void **)&t->allocations, &t->allocation_capacity, t->allocation_count,
			sizeof(*t->allocations)) ||
	    !handle_map_set(&t->handles, event->process, event->object, t->allocation_count)) {
		t->failed = true;
		return UINT32_MAX;
	}
	t->allocations[t->allocation_count] =
		(struct timeline_allocation){.process = process,
					     .handle = event->object,
					     .bytes = bytes,
					     .flags = (uint32_t)flags,
					     .created_ns = event->time_ns};
	return t->allocation_count++;
}

/* Returns the row of the event's allocation, which is added if its creation was not seen. */
static uint32_t allocation_row(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row;

	if (handle_map_find(&t->handles, event->process, event->object, &row))
		return row;
	return add_allocation(t, event, event->arg[0], 0);
}

static void end_allocation(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row;

	if (!handle_map_find(&t->handles, event->process, event->object, &row))
		return;
	t->allocations[row].destroyed_ns = event->time_ns;
	t->allocations[row].destroyed = true;
}

/* A new instance has the size of the one that it replaces. */
static void add_instance(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row, old;
	uint64_t bytes = event->arg[2], flags = 0;

	if (handle_map_find(&t->handles, event->process, event->object, &row) &&
	    !t->allocations[row].destroyed)
		return;
	if (handle_map_find(&t->handles, event->process, (uint32_t)event->arg[0], &old)) {
		bytes = t->allocations[old].bytes;
		flags = t->allocations[old].flags;
	}
	(void)add_allocation(t, event, bytes, flags);
}

/* ---- paging, counted as the summary of a replay does (thrash.c) ---- */

#define SEGMENT_APERTURE 1u /* of DXGK_SEGMENTFLAGS */

static bool is_video_memory(const struct timeline *t, uint64_t segment)
{
	return segment != 0 && segment < TIMELINE_SEGMENTS_MAX &&
	       !(t->segment[segment].flags & SEGMENT_APERTURE);
}

/* A copy inside a segment is compaction. */
static void count_paging(struct timeline *t, const struct vidmm_event *event)
{
	uint64_t from = event->arg[1], to = event->arg[2];
	uint32_t row;

	if (from == to || !thrash_is_copy(event->reason) ||
	    !handle_map_find(&t->handles, event->process, event->object, &row))
		return;
	if (is_video_memory(t, to))
		t->allocations[row].in_bytes += event->arg[0];
	else
		t->allocations[row].out_bytes += event->arg[0];
}

static void count_eviction(struct timeline *t, const struct vidmm_event *event, uint32_t row)
{
	if (!is_video_memory(t, event->arg[1]) || event->arg[2] != 0)
		return;
	if (event->reason != VIDMM_RESIDENCY_DESTROYED &&
	    event->reason != VIDMM_RESIDENCY_DISCARDED && event->reason != VIDMM_RESIDENCY_RESET)
		t->allocations[row].evictions++;
}

/* ---- moves ---- */

static void end_pieces(struct timeline *t)
{
	if (t->rows[TIMELINE_MOVE_PIECES] < t->rows[TIMELINE_MOVE_TIME])
		put(t, TIMELINE_MOVE_PIECES, t->pieces);
	t->pieces = 0;
}

static void add_move(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row = allocation_row(t, event);

	if (row == UINT32_MAX)
		return;
	count_eviction(t, event, row);
	end_pieces(t);
	put_time(t, TIMELINE_MOVE_TIME, &t->move_ns, event->time_ns);
	put_allocation(t, TIMELINE_MOVE_ALLOCATION, &t->move_allocation, row);
	put(t, TIMELINE_MOVE_REASON, event->reason);
	put(t, TIMELINE_MOVE_SEGMENT, event->arg[2]);
	if (event->arg[2] == 0) {
		put(t, TIMELINE_MOVE_OFFSET, 0);
		return;
	}
	put_signed(t, TIMELINE_MOVE_OFFSET, (int64_t)(event->arg[3] - t->move_end));
	t->move_end = event->arg[3] + t->allocations[row].bytes;
}

static void add_piece(struct timeline *t, const struct vidmm_event *event)
{
	if (!t->rows[TIMELINE_MOVE_TIME])
		return;
	t->pieces++;
	put(t, TIMELINE_PIECE_BYTES, event->arg[0]);
	put_signed(t, TIMELINE_PIECE_OFFSET, (int64_t)(event->arg[3] - t->move_end));
	t->move_end = event->arg[3] + event->arg[0];
}

/* ---- packets ---- */

static void add_packet(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t process = event->process ? process_row(t, event->process) + 1 : 0;

	if (!grow_array((void **)&t->packets, &t->packet_capacity, t->packet_count,
			sizeof(*t->packets))) {
		t->failed = true;
		return;
	}
	t->packets[t->packet_count++] = (struct timeline_packet){.time_ns = event->time_ns,
								 .fence = event->arg[0],
								 .process = process,
								 .object = event->object,
								 .node = (uint16_t)event->arg[1]};
}

/* Is the packet of the queue whose fence the event reports: a node's, or a hardware queue's? */
static bool same_queue(const struct timeline *t, const struct timeline_packet *packet,
		       const struct vidmm_event *event)
{
	if (packet->done || packet->node != (uint16_t)event->arg[1])
		return false;
	return !event->object || (packet->object == event->object && packet->process &&
				  t->processes[packet->process - 1].number == event->process);
}

/* A fence completes its packet and all that were submitted before it. */
static void complete_packets(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t last = t->packet_count;

	for (uint32_t i = t->open_from; i < t->packet_count; i++)
		if (same_queue(t, &t->packets[i], event) && t->packets[i].fence == event->arg[0])
			last = i;
	for (uint32_t i = t->open_from; last < t->packet_count && i <= last; i++) {
		struct timeline_packet *packet = &t->packets[i];

		if (!same_queue(t, packet, event))
			continue;
		packet->done = true;
		packet->done_ns =
			event->time_ns > packet->time_ns ? event->time_ns : packet->time_ns;
	}
	while (t->open_from < t->packet_count && t->packets[t->open_from].done)
		t->open_from++;
}

/* ---- waits, calls, messages ---- */

static void add_wait(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row, allocation = 0;

	if (event->object && handle_map_find(&t->handles, event->process, event->object, &row))
		allocation = row + 1;
	put_time(t, TIMELINE_WAIT_TIME, &t->wait_ns, event->time_ns);
	put(t, TIMELINE_WAIT_NS, event->arg[0]);
	put(t, TIMELINE_WAIT_PROCESS, event->process ? process_row(t, event->process) + 1 : 0);
	put(t, TIMELINE_WAIT_REASON, event->reason);
	put(t, TIMELINE_WAIT_ALLOCATION, allocation);
}

static void add_mark(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row = allocation_row(t, event);

	if (row == UINT32_MAX)
		return;
	put_time(t, TIMELINE_MARK_TIME, &t->mark_ns, event->time_ns);
	put(t, TIMELINE_MARK_TYPE, event->type);
	put_allocation(t, TIMELINE_MARK_ALLOCATION, &t->mark_allocation, row);
}

/* Keeps the longest calls. */
static void add_call(struct timeline *t, const struct vidmm_event *event)
{
	struct timeline_stall *least = &t->stall[0];

	if (!event->arg[2])
		return;
	if (t->stall_count < TIMELINE_STALLS) {
		least = &t->stall[t->stall_count++];
	} else {
		for (uint32_t i = 1; i < TIMELINE_STALLS; i++)
			if (t->stall[i].ns < least->ns)
				least = &t->stall[i];
		if (least->ns >= event->arg[2])
			return;
	}
	*least = (struct timeline_stall){
		.time_ns = event->time_ns,
		.ns = event->arg[2],
		.process = event->process ? process_row(t, event->process) + 1 : 0,
		.object = event->object,
		.door = event->reason,
		.status = (uint32_t)event->arg[0]};
}

/* Findings are the same if their rules are, other messages if their texts are. */
static bool same_message(const struct timeline_message *message, uint16_t type, const char *text)
{
	size_t rule = strcspn(text, ":");

	if (message->type != type)
		return false;
	return type == VIDMM_EVENT_FINDING ? strncmp(message->text, text, rule) == 0 &&
						     message->text[rule] == text[rule]
					   : strcmp(message->text, text) == 0;
}

static void add_message(struct timeline *t, const struct vidmm_event *event, const char *text)
{
	for (uint32_t i = 0; text && i < t->message_count; i++)
		if (same_message(&t->messages[i], event->type, text)) {
			t->messages[i].count++;
			return;
		}
	if (!text || t->message_count == TIMELINE_MESSAGES_MAX) {
		t->messages_left_out++;
		return;
	}
	if (!grow_array((void **)&t->messages, &t->message_capacity, t->message_count,
			sizeof(*t->messages))) {
		t->failed = true;
		return;
	}
	struct timeline_message *message = &t->messages[t->message_count];

	*message = (struct timeline_message){
		.text = strdup(text), .first_ns = event->time_ns, .count = 1, .type = event->type};
	if (message->text)
		t->message_count++;
	else
		t->failed = true;
}

static void add_segment(struct timeline *t, const struct vidmm_event *event)
{
	if (event->reason >= TIMELINE_SEGMENTS_MAX)
		return;
	t->segment[event->reason] = (struct timeline_segment){.bytes = event->arg[0],
							      .base = event->arg[1],
							      .flags = (uint32_t)event->arg[2],
							      .known = true};
}

/* ---- the stream ---- */

static void add_memory(struct timeline *t, const struct vidmm_event *event)
{
	switch (event->type) {
	case VIDMM_EVENT_CREATE:
		(void)add_allocation(t, event, event->arg[0], event->arg[2]);
		break;
	case VIDMM_EVENT_DESTROY:
		end_allocation(t, event);
		break;
	case VIDMM_EVENT_RENAME:
		add_instance(t, event);
		add_mark(t, event);
		break;
	case VIDMM_EVENT_OFFER:
	case VIDMM_EVENT_RECLAIM:
	case VIDMM_EVENT_DISCARD:
		add_mark(t, event);
		break;
	case VIDMM_EVENT_PAGING:
		count_paging(t, event);
		break;
	case VIDMM_EVENT_RESIDENCY:
		add_move(t, event);
		break;
	case VIDMM_EVENT_EXTENT:
		add_piece(t, event);
		break;
	default:
		break;
	}
}

void timeline_add(struct timeline *t, const struct vidmm_event *event, const char *text)
{
	if (!t->events++)
		t->begin_ns = event->time_ns;
	if (event->time_ns > t->end_ns)
		t->end_ns = event->time_ns;
	switch (event->type) {
	case VIDMM_EVENT_PROCESS:
		name_process(t, event->process, text);
		break;
	case VIDMM_EVENT_SEGMENT:
		add_segment(t, event);
		break;
	case VIDMM_EVENT_QUEUE:
		add_packet(t, event);
		break;
	case VIDMM_EVENT_FENCE:
		complete_packets(t, event);
		break;
	case VIDMM_EVENT_WAIT:
		add_wait(t, event);
		break;
	case VIDMM_EVENT_DOOR:
		add_call(t, event);
		break;
	case VIDMM_EVENT_FINDING:
	case VIDMM_EVENT_REASON:
	case VIDMM_EVENT_FATAL:
		add_message(t, event, text);
		break;
	default:
		add_memory(t, event);
		break;
	}
}

static void write_allocations(struct timeline *t)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < t->allocation_count; i++) {
		const struct timeline_allocation *a = &t->allocations[i];
		uint64_t life =
			a->destroyed_ns > a->created_ns ? a->destroyed_ns - a->created_ns : 0;

		put(t, TIMELINE_ALLOCATION_PROCESS, a->process);
		put(t, TIMELINE_ALLOCATION_HANDLE, a->handle);
		put(t, TIMELINE_ALLOCATION_BYTES, a->bytes);
		put(t, TIMELINE_ALLOCATION_FLAGS, a->flags);
		put_signed(t, TIMELINE_ALLOCATION_CREATED, (int64_t)(a->created_ns - before));
		put(t, TIMELINE_ALLOCATION_LIFE, a->destroyed ? life + 1 : 0);
		put(t, TIMELINE_ALLOCATION_IN, a->in_bytes);
		put(t, TIMELINE_ALLOCATION_OUT, a->out_bytes);
		put(t, TIMELINE_ALLOCATION_EVICTIONS, a->evictions);
		before = a->created_ns;
	}
}

static void write_packets(struct timeline *t)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < t->packet_count; i++) {
		const struct timeline_packet *p = &t->packets[i];

		put_time(t, TIMELINE_PACKET_TIME, &before, p->time_ns);
		put(t, TIMELINE_PACKET_NS, p->done ? p->done_ns - p->time_ns + 1 : 0);
		put(t, TIMELINE_PACKET_NODE, p->node);
		put(t, TIMELINE_PACKET_PROCESS, p->process);
	}
}

bool timeline_end(struct timeline *t)
{
	end_pieces(t);
	write_allocations(t);
	write_packets(t);
	for (uint32_t i = 0; i < t->process_count; i++)
		put(t, TIMELINE_PROCESS_NUMBER, t->processes[i].number);
	for (unsigned i = 0; i < TIMELINE_COLUMNS; i++)
		t->failed = t->failed || t->column[i].failed;
	return !t->failed;
}

void timeline_finish(struct timeline *t)
{
	for (unsigned i = 0; i < TIMELINE_COLUMNS; i++)
		column_finish(&t->column[i]);
	for (uint32_t i = 0; i < t->process_count; i++)
		free(t->processes[i].name);
	for (uint32_t i = 0; i < t->message_count; i++)
		free(t->messages[i].text);
	free(t->processes);
	free(t->allocations);
	free(t->packets);
	free(t->messages);
	handle_map_finish(&t->handles);
	handle_map_finish(&t->numbers);
	*t = (struct timeline){0};
}
