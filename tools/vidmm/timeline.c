/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "thrash.h"

/* Returns a new row of a table, cleared; NULL when out of memory. */
static void *add_row(struct timeline *t, void **rows, uint32_t *count, uint32_t *capacity,
		     size_t size)
{
	if (!grow_array(rows, capacity, *count, size)) {
		t->failed = true;
		return NULL;
	}
	void *row = (char *)*rows + (size_t)(*count)++ * size;

	memset(row, 0, size);
	return row;
}
#define ADD(t, table)                                                                   \
	add_row((t), (void **)&(t)->table.row, &(t)->table.count, &(t)->table.capacity, \
		sizeof(*(t)->table.row))

/* ---- processes and allocations ---- */

/* Returns the row of the process, UINT32_MAX when out of memory. */
static uint32_t process_row(struct timeline *t, uint32_t number)
{
	struct timeline_process *process;
	uint32_t row;

	/* The map has no handle 0, so each process has the handle 1 of itself. */
	if (handle_map_find(&t->process_of, number, 1, &row))
		return row;
	process = ADD(t, processes);
	if (!process || !handle_map_set(&t->process_of, number, 1, t->processes.count - 1)) {
		t->failed = true;
		return UINT32_MAX;
	}
	process->number = number;
	return t->processes.count - 1;
}

/* Returns the row + 1; 0: the system, or out of memory. */
static uint32_t process_of(struct timeline *t, uint32_t number)
{
	return number ? process_row(t, number) + 1 : 0;
}

static void name_process(struct timeline *t, uint32_t number, const char *name)
{
	uint32_t row = process_row(t, number);

	if (row == UINT32_MAX || !name)
		return;
	struct timeline_process *process = &t->processes.row[row];

	free(process->name);
	process->name = strdup(name);
	t->failed = t->failed || !process->name;
}

/* Adds an allocation, which has the handle from now on. Returns its row, UINT32_MAX: none. */
static uint32_t add_allocation(struct timeline *t, const struct vidmm_event *event, uint64_t bytes,
			       uint64_t flags)
{
	uint32_t process = process_row(t, event->process);
	struct timeline_allocation *a;

	if (process == UINT32_MAX || !event->object)
		return UINT32_MAX;
	a = ADD(t, allocations);
	if (!a || !handle_map_set(&t->allocation_of, event->process, event->object,
				  t->allocations.count - 1)) {
		t->failed = true;
		return UINT32_MAX;
	}
	*a = (struct timeline_allocation){.process = process,
					  .handle = event->object,
					  .bytes = bytes,
					  .flags = (uint32_t)flags,
					  .created_ns = event->time_ns};
	return t->allocations.count - 1;
}

/* Returns the row of the event's allocation, which is added if its creation was not seen. */
static uint32_t allocation_row(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row;

	if (handle_map_find(&t->allocation_of, event->process, event->object, &row))
		return row;
	return add_allocation(t, event, event->arg[0], 0);
}

static void end_allocation(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row;

	if (!handle_map_find(&t->allocation_of, event->process, event->object, &row))
		return;
	t->allocations.row[row].destroyed_ns = event->time_ns;
	t->allocations.row[row].destroyed = true;
}

/* A new instance has the size of the one that it replaces. */
static void add_instance(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row, old;
	uint64_t bytes = event->arg[2], flags = 0;

	if (handle_map_find(&t->allocation_of, event->process, event->object, &row) &&
	    !t->allocations.row[row].destroyed)
		return;
	if (handle_map_find(&t->allocation_of, event->process, (uint32_t)event->arg[0], &old)) {
		bytes = t->allocations.row[old].bytes;
		flags = t->allocations.row[old].flags;
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
	    !handle_map_find(&t->allocation_of, event->process, event->object, &row))
		return;
	if (is_video_memory(t, to))
		t->allocations.row[row].in_bytes += event->arg[0];
	else
		t->allocations.row[row].out_bytes += event->arg[0];
}

static void count_eviction(struct timeline *t, const struct vidmm_event *event, uint32_t row)
{
	if (!is_video_memory(t, event->arg[1]) || event->arg[2] != 0)
		return;
	if (thrash_is_eviction(event->reason))
		t->allocations.row[row].evictions++;
}

/* ---- moves ---- */

static void add_move(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row = allocation_row(t, event);
	struct timeline_move *move = row == UINT32_MAX ? NULL : ADD(t, moves);

	if (!move)
		return;
	count_eviction(t, event, row);
	*move = (struct timeline_move){.time_ns = event->time_ns,
				       .offset = event->arg[2] ? event->arg[3] : 0,
				       .allocation = row,
				       .first_piece = t->pieces.count,
				       .reason = event->reason,
				       .from = (uint16_t)event->arg[1],
				       .segment = (uint16_t)event->arg[2]};
}

static void add_piece(struct timeline *t, const struct vidmm_event *event)
{
	struct timeline_piece *piece = t->moves.count ? ADD(t, pieces) : NULL;

	if (!piece)
		return;
	*piece = (struct timeline_piece){event->arg[0], event->arg[3]};
	t->moves.row[t->moves.count - 1].piece_count++;
}

/* ---- packets ---- */

static void add_packet(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t process = process_of(t, event->process);
	struct timeline_packet *packet = ADD(t, packets);

	if (packet)
		*packet = (struct timeline_packet){.time_ns = event->time_ns,
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
				  t->processes.row[packet->process - 1].number == event->process);
}

/* A fence completes its packet and all that were submitted before it. */
static void complete_packets(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t last = t->packets.count;

	for (uint32_t i = t->open_from; i < t->packets.count; i++)
		if (same_queue(t, &t->packets.row[i], event) &&
		    t->packets.row[i].fence == event->arg[0])
			last = i;
	for (uint32_t i = t->open_from; last < t->packets.count && i <= last; i++) {
		struct timeline_packet *packet = &t->packets.row[i];

		if (!same_queue(t, packet, event))
			continue;
		packet->done = true;
		packet->end_ns =
			event->time_ns > packet->time_ns ? event->time_ns : packet->time_ns;
	}
	while (t->open_from < t->packets.count && t->packets.row[t->open_from].done)
		t->open_from++;
}

static void add_fence(struct timeline *t, const struct vidmm_event *event)
{
	struct timeline_fence *fence;

	complete_packets(t, event);
	fence = ADD(t, fences);
	if (fence)
		*fence = (struct timeline_fence){.time_ns = event->time_ns,
						 .fence = event->arg[0],
						 .number = event->arg[3],
						 .node = (uint16_t)event->arg[1]};
}

/* A node executes one packet after the other. What is not complete lasts until the end. */
static void time_packets(struct timeline *t)
{
	static uint64_t free_ns[UINT16_MAX + 1];

	memset(free_ns, 0, sizeof(free_ns));
	for (uint32_t i = 0; i < t->packets.count; i++) {
		struct timeline_packet *p = &t->packets.row[i];
		uint64_t *from = &free_ns[p->node];

		p->begin_ns = p->time_ns > *from ? p->time_ns : *from;
		if (!p->done)
			p->end_ns = t->end_ns;
		if (p->end_ns < p->begin_ns)
			p->end_ns = p->begin_ns;
		*from = p->end_ns;
	}
}

/* ---- waits, calls, messages ---- */

static void add_wait(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row, process = process_of(t, event->process);
	struct timeline_wait *wait = ADD(t, waits);

	if (!wait)
		return;
	*wait = (struct timeline_wait){.end_ns = event->time_ns,
				       .ns = event->arg[0],
				       .number = event->arg[2],
				       .process = process,
				       .reason = event->reason,
				       .node = (uint16_t)event->arg[1]};
	if (event->object &&
	    handle_map_find(&t->allocation_of, event->process, event->object, &row))
		wait->allocation = row + 1;
}

static void add_mark(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t row = allocation_row(t, event);
	struct timeline_mark *mark = row == UINT32_MAX ? NULL : ADD(t, marks);

	if (mark)
		*mark = (struct timeline_mark){event->time_ns, row, event->type};
}

static void add_call(struct timeline *t, const struct vidmm_event *event)
{
	uint32_t process = process_of(t, event->process);
	struct timeline_call *call = event->arg[2] ? ADD(t, calls) : NULL;

	if (call)
		*call = (struct timeline_call){.end_ns = event->time_ns,
					       .ns = event->arg[2],
					       .process = process,
					       .object = event->object,
					       .status = (uint32_t)event->arg[0],
					       .door = event->reason};
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
	struct timeline_message *message;

	for (uint32_t i = 0; text && i < t->messages.count; i++)
		if (same_message(&t->messages.row[i], event->type, text)) {
			t->messages.row[i].count++;
			return;
		}
	if (!text || t->messages.count == TIMELINE_MESSAGES_MAX) {
		t->messages_left_out++;
		return;
	}
	message = ADD(t, messages);
	if (!message)
		return;
	*message = (struct timeline_message){
		.text = strdup(text), .first_ns = event->time_ns, .count = 1, .type = event->type};
	if (!message->text) {
		t->messages.count--;
		t->failed = true;
	}
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
		add_fence(t, event);
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

bool timeline_end(struct timeline *t)
{
	time_packets(t);
	return !t->failed;
}

void timeline_finish(struct timeline *t)
{
	for (uint32_t i = 0; i < t->processes.count; i++)
		free(t->processes.row[i].name);
	for (uint32_t i = 0; i < t->messages.count; i++)
		free(t->messages.row[i].text);
#define TABLE(name, type) free(t->name.row);
	TIMELINE_TABLES(TABLE)
#undef TABLE
	handle_map_finish(&t->allocation_of);
	handle_map_finish(&t->process_of);
	*t = (struct timeline){0};
}

const char *timeline_process_name(const struct timeline *t, uint32_t row, char *text, size_t size)
{
	const struct timeline_process *process = row ? &t->processes.row[row - 1] : NULL;

	if (!process)
		return "the system";
	if (process->name && process->name[0])
		return process->name;
	snprintf(text, size, "process %u", (unsigned)process->number);
	return text;
}
