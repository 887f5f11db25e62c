/* SPDX-License-Identifier: MIT */
/*
 * The part of an event stream that explains a call: the events since the call began, and the
 * submissions that a wait may name. It is bounded, because a stream may be larger than memory.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_HISTORY_H
#define VIDMM_TOOLS_EXPLAIN_HISTORY_H

#include "explain_events.h"

struct explain_history;

struct explain_submission {
	uint64_t node, number; /* number 0: unused slot */
	uint64_t time_ns, references;
	uint32_t process, context;
};

struct explain_history *explain_history_create(void);
void explain_history_destroy(struct explain_history *history);
/* Stores a copy of EVENT. Returns false when out of memory. */
bool explain_history_add(struct explain_history *history, const struct logged_event *event);
/* Returns NULL if the submission is unknown or no longer kept. */
const struct explain_submission *explain_history_submission(const struct explain_history *history,
							    uint64_t node, uint64_t number);
/*
 * Calls FN, oldest event first, for each event of any process during the call that the event DOOR
 * ends. A call that took no time began when the previous call of its process ended.
 */
void explain_history_of(const struct explain_history *history, const struct logged_event *door,
			void (*fn)(void *context, const struct logged_event *event), void *context);

#endif
