/* SPDX-License-Identifier: MIT */
/*
 * What of an event stream explains a call: the events since it began, and who submitted what somebody waited for. Bounded:
 * a stream may be longer than memory.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_HISTORY_H
#define VIDMM_TOOLS_EXPLAIN_HISTORY_H

#include "explain_events.h"

struct explain_history;

struct explain_submission {
	uint64_t node, number; /* number 0: nothing here */
	uint64_t time_ns, references;
	uint32_t process, context;
};

struct explain_history *explain_history_create(void);
void explain_history_destroy(struct explain_history *history);
/* Keeps a copy. False: out of memory. */
bool explain_history_add(struct explain_history *history, const struct logged_event *event);
/* NULL: unknown, or too long ago. */
const struct explain_submission *explain_history_submission(const struct explain_history *history,
							    uint64_t node, uint64_t number);
/*
 * Calls fn, oldest first, for what happened during the call that this event (a door's) ends, whoever's it was. A call that
 * took no time began when the last one of its process ended.
 */
void explain_history_of(const struct explain_history *history, const struct logged_event *door,
			void (*fn)(void *context, const struct logged_event *event), void *context);

#endif
