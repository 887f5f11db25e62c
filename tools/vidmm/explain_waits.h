/* SPDX-License-Identifier: MIT */
/*
 * Which contexts wait for which fences, whose queued signals would satisfy them, and where that goes round (MFN-31): from the
 * "sync" events of a stream. What is kept is what is held or queued at the time, however long the stream is.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_WAITS_H
#define VIDMM_TOOLS_EXPLAIN_WAITS_H

#include <stdio.h>

#include "explain_events.h"

struct explain_waits;

struct explain_waits *explain_waits_create(void);
void explain_waits_destroy(struct explain_waits *waits); /* NULL is fine */
/* Of a "sync" event. False: out of memory. */
bool explain_waits_add(struct explain_waits *waits, const struct logged_event *event);
/* What holds that context. False: nothing that is known does. */
bool explain_waits_tell(struct explain_waits *waits, FILE *out, uint32_t process, uint32_t context);
/* The same of all contexts of the process that are held. */
void explain_waits_tell_all(struct explain_waits *waits, FILE *out, uint32_t process);

#endif
