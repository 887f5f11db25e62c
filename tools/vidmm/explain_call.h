/* SPDX-License-Identifier: MIT */
/* What happened during one call: why it failed or was not renamed, its waits, what moved. */
#ifndef VIDMM_TOOLS_EXPLAIN_CALL_H
#define VIDMM_TOOLS_EXPLAIN_CALL_H

#include "explain_history.h"

/* Explains the call that the event DOOR ends. Returns lines to be freed; NULL: out of memory. */
char *explain_call(const struct explain_history *history, const struct logged_event *door);
/*
 * Explains why that call took its time: sentences, one in each line. The last one says how much
 * of the time no event explains, if any. The result is as that of explain_call.
 */
char *explain_call_time(const struct explain_history *history, const struct logged_event *door);

#endif
