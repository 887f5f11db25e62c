/* SPDX-License-Identifier: MIT */
/*
 * The wait-for graph of contexts, from the "sync" events of a stream: which contexts wait for which
 * fences, whose queued signals would satisfy them, and where that is a cycle (MFN-31). It holds the
 * waits and signals that are queued at the time, whatever the length of the stream.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_WAITS_H
#define VIDMM_TOOLS_EXPLAIN_WAITS_H

#include <stdio.h>

#include "explain_events.h"

struct explain_waits;

struct explain_waits *explain_waits_create(void);
void explain_waits_destroy(struct explain_waits *waits); /* NULL is allowed */
/* Applies a "sync" event. Returns false when out of memory. */
bool explain_waits_add(struct explain_waits *waits, const struct logged_event *event);
/* Prints what blocks a context. Returns false if no known wait does. */
bool explain_waits_print(struct explain_waits *waits, FILE *out, uint32_t process,
			 uint32_t context);
/* Prints the same for all blocked contexts of a process. */
void explain_waits_print_all(struct explain_waits *waits, FILE *out, uint32_t process);

#endif
