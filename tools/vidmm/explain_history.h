/* SPDX-License-Identifier: MIT */
/*
 * The part of an event stream that explains a call: the events since the call began, and the
 * submissions that a wait may name. It is bounded, because a stream may be larger than memory.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_HISTORY_H
#define VIDMM_TOOLS_EXPLAIN_HISTORY_H

#include <stdbool.h>

#include "explain_events.h"

struct explain_history;

struct explain_submission {
	uint64_t node, number; /* number 0: unused slot */
	uint64_t time_ns, references;
	uint32_t process, context;
};

/* A portion of a DMA buffer that was submitted to a node or hardware queue. */
struct explain_packet {
	uint64_t node, fence, queued_ns;
	uint64_t done_ns;  /* when the DPC read its fence; UINT64_MAX: not yet */
	uint64_t complete; /* the submission whose last packet it is, 0: unknown */
	uint32_t process, context;
	uint32_t ahead; /* packets that were not complete on its node or queue when it was queued */
	bool paging;
	bool by_queue; /* of a hardware queue, which has its own fence */
};

struct explain_history *explain_history_create(void);
void explain_history_destroy(struct explain_history *history);
/* Stores a copy of EVENT. Returns false when out of memory. */
bool explain_history_add(struct explain_history *history, const struct logged_event *event);
/* Returns NULL if the submission is unknown or no longer kept. */
const struct explain_submission *explain_history_submission(const struct explain_history *history,
							    uint64_t node, uint64_t number);
/* Returns the last packet of that submission. NULL: unknown or no longer kept. */
const struct explain_packet *explain_history_packet(const struct explain_history *history,
						    uint64_t node, uint64_t number);
/*
 * Returns whether a wait that names the node waits for paging. That is so if the stream begins with
 * the first event of the host and has submit events, but none of that node. It is unknown, and the
 * result false, if there are hardware queues: they have a timeline without submit events. A wait
 * that is declined before the submit event of the first submission to a node is taken for one for
 * paging.
 */
bool explain_history_is_paging(const struct explain_history *history, uint64_t node);
/* Returns for how many ns between those times a paging packet was on a node. */
uint64_t explain_history_paging_ns(const struct explain_history *history, uint64_t begin_ns,
				   uint64_t end_ns);
/*
 * Calls FN, oldest event first, for each event of any process during the call that the event DOOR
 * ends. A call of that process that ended when this one began separates events of the same time.
 * Returns false if the call had more events than are kept: the first ones are missing.
 */
bool explain_history_of(const struct explain_history *history, const struct logged_event *door,
			void (*fn)(void *context, const struct logged_event *event), void *context);

#endif
