/* SPDX-License-Identifier: MIT */
/*
 * timeline: what an event stream says about memory and time, as columns of numbers for a page.
 * Times are differences from the row before, in ns of the host's clock. A row of `moves` is a change
 * of an allocation's placement; the place where it was before is the one of its row before.
 */
#ifndef VIDMM_TOOLS_TIMELINE_H
#define VIDMM_TOOLS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <vidmm/vidmm.h>

#include "column.h"
#include "handle_map.h"

#define TIMELINE_SEGMENTS_MAX 64u
#define TIMELINE_MESSAGES_MAX 500u /* different ones */
#define TIMELINE_STALLS       50u

enum timeline_column {
	/* for each process: its number */
	TIMELINE_PROCESS_NUMBER,
	/*
	 * For each allocation: process (row), handle, bytes, flags, creation, ns that it lived + 1;
	 * bytes copied into and out of video memory, evictions from there.
	 */
	TIMELINE_ALLOCATION_PROCESS,
	TIMELINE_ALLOCATION_HANDLE,
	TIMELINE_ALLOCATION_BYTES,
	TIMELINE_ALLOCATION_FLAGS,
	TIMELINE_ALLOCATION_CREATED, /* signed */
	TIMELINE_ALLOCATION_LIFE,    /* 0: it exists at the end */
	TIMELINE_ALLOCATION_IN,
	TIMELINE_ALLOCATION_OUT,
	TIMELINE_ALLOCATION_EVICTIONS,
	/* for each move: time, allocation (signed difference), reason, segment, offset, pieces */
	TIMELINE_MOVE_TIME,
	TIMELINE_MOVE_ALLOCATION,
	TIMELINE_MOVE_REASON,
	TIMELINE_MOVE_SEGMENT,
	TIMELINE_MOVE_OFFSET, /* signed difference from the end of the move before */
	TIMELINE_MOVE_PIECES, /* number of extents; 0: contiguous */
	/* for each extent of a move: bytes, offset in the segment */
	TIMELINE_PIECE_BYTES,
	TIMELINE_PIECE_OFFSET, /* signed difference, as for moves */
	/* for each portion that a node executed: submission, ns until its fence + 1, node, ... */
	TIMELINE_PACKET_TIME,
	TIMELINE_PACKET_NS, /* 0: not complete */
	TIMELINE_PACKET_NODE,
	TIMELINE_PACKET_PROCESS, /* row + 1; 0: the system, which pages */
	/* for each wait: its end, ns, process (row + 1), reason, allocation (row + 1) */
	TIMELINE_WAIT_TIME,
	TIMELINE_WAIT_NS,
	TIMELINE_WAIT_PROCESS,
	TIMELINE_WAIT_REASON,
	TIMELINE_WAIT_ALLOCATION,
	/* for each rename, offer, reclaim and discard: time, type, allocation (signed difference) */
	TIMELINE_MARK_TIME,
	TIMELINE_MARK_TYPE,
	TIMELINE_MARK_ALLOCATION,
	TIMELINE_COLUMNS
};

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
	uint64_t in_bytes, out_bytes, evictions;
	bool destroyed;
};

struct timeline_packet {
	uint64_t time_ns, fence, done_ns;
	uint32_t process, object; /* process: row + 1, 0: the system */
	uint16_t node;
	bool done;
};

struct timeline_stall {
	uint64_t time_ns, ns; /* the end, and how long the call took */
	uint32_t process;     /* row + 1 */
	uint32_t object;
	uint16_t door;
	uint32_t status;
};

/* Findings of one rule, or reasons of failed calls with one text. */
struct timeline_message {
	char *text; /* of the first one */
	uint64_t first_ns, count;
	uint16_t type; /* VIDMM_EVENT_FINDING, VIDMM_EVENT_REASON or VIDMM_EVENT_FATAL */
};

struct timeline {
	uint64_t events, begin_ns, end_ns;
	struct column column[TIMELINE_COLUMNS];
	uint32_t rows[TIMELINE_COLUMNS];
	struct timeline_segment segment[TIMELINE_SEGMENTS_MAX];
	struct timeline_process *processes;
	struct timeline_allocation *allocations;
	struct timeline_packet *packets; /* in the order of their submission */
	struct timeline_message *messages;
	uint32_t process_count, process_capacity, allocation_count, allocation_capacity;
	uint32_t packet_count, packet_capacity, message_count, message_capacity;
	struct timeline_stall stall[TIMELINE_STALLS]; /* the longest calls, in any order */
	uint32_t stall_count;
	struct handle_map handles, numbers;
	uint32_t open_from; /* all packets before this one are complete */
	/* What the differences of the columns refer to. */
	uint64_t move_ns, move_end, wait_ns, mark_ns;
	int64_t move_allocation, mark_allocation;
	uint32_t pieces; /* of the last move */
	uint32_t messages_left_out;
	bool failed;
};

/* All zero: no events yet. */
void timeline_add(struct timeline *timeline, const struct vidmm_event *event, const char *text);
/*
 * Ends the stream: writes the columns of what could change until then. Returns false when out of
 * memory, now or before.
 */
bool timeline_end(struct timeline *timeline);
void timeline_finish(struct timeline *timeline);

#endif
