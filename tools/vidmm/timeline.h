/* SPDX-License-Identifier: MIT */
/*
 * timeline: what an event stream says about memory and time, as rows that refer to each other.
 * `vidmm report` and `vidmm export` are made of it. Times are those of the events, in ns.
 */
#ifndef VIDMM_TOOLS_TIMELINE_H
#define VIDMM_TOOLS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <vidmm/vidmm.h>

#include "handle_map.h"

#define TIMELINE_SEGMENTS_MAX 64u
#define TIMELINE_MESSAGES_MAX 500u /* different ones */

struct timeline_segment {
	uint64_t bytes, base;
	uint32_t flags; /* DXGK_SEGMENTFLAGS */
	bool known;
};

struct timeline_process {
	uint32_t number;
	char *name; /* NULL: unknown */
};

struct timeline_allocation {
	uint32_t process, handle, flags; /* process: row */
	uint64_t bytes, created_ns, destroyed_ns;
	/* Copied into and out of video memory; evictions from there. */
	uint64_t in_bytes, out_bytes, evictions;
	bool destroyed;
};

/* An allocation changed its place. Where it was before says its row before. */
struct timeline_move {
	uint64_t time_ns, offset; /* offset: of the first piece */
	uint32_t allocation;
	uint32_t first_piece, piece_count; /* 0 pieces: it is contiguous */
	uint16_t reason, from, segment;    /* segment 0: system memory */
};

struct timeline_piece {
	uint64_t bytes, offset;
};

/* A portion of a DMA buffer on a node. */
struct timeline_packet {
	uint64_t time_ns, fence, begin_ns, end_ns; /* submitted; executed, if `done` */
	uint32_t process, object;                  /* process: row + 1, 0: the system */
	uint16_t node;
	bool done;
};

struct timeline_wait {
	uint64_t end_ns, ns;
	uint64_t number;              /* of the submission on the node; 0: of none */
	uint32_t process, allocation; /* row + 1, 0: the system; row + 1, 0: none */
	uint16_t reason, node;
};

/* A rename, offer, reclaim or discard. */
struct timeline_mark {
	uint64_t time_ns;
	uint32_t allocation;
	uint16_t type; /* enum vidmm_event_type */
};

/* A call that took time. */
struct timeline_call {
	uint64_t end_ns, ns;
	uint32_t process, object; /* process: row + 1 */
	uint32_t status;
	uint16_t door;
};

/* All submissions of a node up to `number` are complete. */
struct timeline_fence {
	uint64_t time_ns, fence, number;
	uint16_t node;
};

/* Findings of one rule, or reasons of failed calls with one text. */
struct timeline_message {
	char *text; /* of the first one */
	uint64_t first_ns, count;
	uint16_t type; /* VIDMM_EVENT_FINDING, VIDMM_EVENT_REASON or VIDMM_EVENT_FATAL */
};

/* The tables: name of the member, its type. */
#define TIMELINE_TABLES(TABLE)                         \
	TABLE(processes, struct timeline_process)      \
	TABLE(allocations, struct timeline_allocation) \
	TABLE(moves, struct timeline_move)             \
	TABLE(pieces, struct timeline_piece)           \
	TABLE(packets, struct timeline_packet)         \
	TABLE(waits, struct timeline_wait)             \
	TABLE(marks, struct timeline_mark)             \
	TABLE(calls, struct timeline_call)             \
	TABLE(fences, struct timeline_fence)           \
	TABLE(messages, struct timeline_message)

struct timeline {
	uint64_t events, begin_ns, end_ns;
	struct timeline_segment segment[TIMELINE_SEGMENTS_MAX];
#define TABLE(name, type)                 \
	struct {                          \
		type *row;                \
		uint32_t count, capacity; \
	} name;
	TIMELINE_TABLES(TABLE)
#undef TABLE
	uint64_t messages_left_out;
	struct handle_map allocation_of, process_of; /* rows of handles and of numbers */
	uint32_t open_from;                          /* all packets before this one are complete */
	bool failed;                                 /* out of memory: rows are missing */
};

/* Adds an event to a timeline, which is all zero at first. */
void timeline_add(struct timeline *timeline, const struct vidmm_event *event, const char *text);
/* Ends the stream. Returns false when out of memory, now or before. */
bool timeline_end(struct timeline *timeline);
void timeline_finish(struct timeline *timeline);
/* Returns the name of a process, or "process N". ROW: row + 1, 0: "the system". */
const char *timeline_process_name(const struct timeline *timeline, uint32_t row, char *text,
				  size_t size);

#endif
