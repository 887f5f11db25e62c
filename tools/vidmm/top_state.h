/* SPDX-License-Identifier: MIT */
/*
 * top_state: what exists at the present end of an event stream, and how much of it happened lately:
 * processes, segments, nodes, waits. Its size depends on what exists, not on the number of events.
 *
 * Events do not name their adapter. Where a host has several, segments and nodes of the same number
 * count as one.
 */
#ifndef VIDMM_TOOLS_TOP_STATE_H
#define VIDMM_TOOLS_TOP_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <vidmm/vidmm.h>

#include "top_rate.h"

#define TOP_SEGMENTS_MAX 64u
#define TOP_NODES_MAX    64u
#define TOP_ADAPTERS_MAX 8u
#define TOP_ROWS_MAX     65536u /* of each table; what comes then is left out */
#define TOP_CLOSED_MAX   256u   /* closed processes that are kept */
#define TOP_WAITS        40u    /* ended waits that are kept for each slot of the window */

struct top_segment {
	uint64_t bytes, used_bytes, peak_bytes; /* bytes: of all adapters */
	uint64_t luid[TOP_ADAPTERS_MAX], luid_bytes[TOP_ADAPTERS_MAX];
	uint32_t adapters; /* 0: unknown, or without allocations */
	bool aperture;
};

struct top_process {
	uint32_t number;
	char *name; /* as in the recording, may have any bytes; NULL: unknown */
	bool closed;
	uint64_t closed_ns;
	/* Resident: in segments of video memory, and in apertures. The peak is of both together. */
	uint64_t video_bytes, aperture_bytes, peak_bytes;
	uint64_t allocations, queued; /* that exist; submissions that are not complete */
	/* Copied into and out of video memory, evictions from there, ns in waits of locks. */
	struct top_rate in_bytes, out_bytes, evictions, lock_ns;
	uint64_t submissions, wait_ns; /* of all time */
};

/* A portion of a DMA buffer that a node executes. */
struct top_packet {
	uint64_t fence;
	uint32_t process, object; /* 0: the fence is a node's */
};

/* A render submission that is not complete. */
struct top_submission {
	uint64_t number, since_ns;
	uint32_t process;
};

struct top_node {
	bool known;
	struct top_packet *packet;
	uint32_t packets, packets_capacity;
	struct top_submission *submission; /* oldest first */
	uint32_t submissions, submissions_capacity;
	uint64_t busy_since_ns; /* while there are packets */
	struct top_rate busy_ns, completed;
};

/* A wait in the queue of a context, which an object holds. */
struct top_hold {
	uint64_t object, value, present, since_ns; /* value 0: the object has units */
	uint32_t process, context;
};

/* A wait that ended. */
struct top_wait {
	uint64_t end_ns, ns, number; /* number: of the submission on the node; 0: of none */
	uint32_t process;
	uint16_t reason, node;
};

/* The longest waits that ended in a slot of the window, or at all. */
struct top_waits {
	uint64_t slot;
	uint32_t count;
	struct top_wait wait[TOP_WAITS];
};

struct top_state {
	uint64_t events, begin_ns, now_ns; /* now_ns: time of the last event */
	uint64_t findings, failures;       /* findings and bug checks; reasons of failed calls */
	struct top_segment segment[TOP_SEGMENTS_MAX];
	struct top_node node[TOP_NODES_MAX];
	struct top_process *process; /* by number */
	uint32_t processes, processes_capacity, closed;
	struct top_hold *hold; /* oldest first */
	uint32_t holds, holds_capacity;
	struct top_waits recent[TOP_SLOTS], longest;
	bool failed; /* out of memory: something is missing */
};

/* Adds an event to a state, which is all zero at first. */
void top_state_add(struct top_state *state, const struct vidmm_event *event, const char *text);
void top_state_finish(struct top_state *state);
/* Returns the process, NULL if it is not known or was dropped after its end. */
struct top_process *top_state_process(const struct top_state *state, uint32_t number);
/* Returns ns in which the node had packets: in the window, or ever. */
uint64_t top_state_busy_ns(const struct top_state *state, const struct top_node *node, bool ever);
/* Stores the longest waits that ended in the window, or ever, longest first. Returns how many. */
uint32_t top_state_waits(const struct top_state *state, bool ever, struct top_wait *waits);

#endif
