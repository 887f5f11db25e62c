/* SPDX-License-Identifier: MIT */
/*
 * What was paged during a call, and which allocations were evicted for which. There may be
 * thousands of such events in a call, so they are summed.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_PAGING_H
#define VIDMM_TOOLS_EXPLAIN_PAGING_H

#include <stdbool.h>

#include "explain_events.h"
#include "explain_sentences.h"

struct explain_paging;

/* PROCESS: of the call. NULL: out of memory. */
struct explain_paging *explain_paging_create(uint32_t process);
void explain_paging_destroy(struct explain_paging *paging); /* NULL is allowed */
/* Applies an event of the call. Returns false when out of memory. */
bool explain_paging_add(struct explain_paging *paging, const struct logged_event *event);
/* Prints sentences: bytes paged in and out with their allocations, then evictions. */
void explain_paging_print(struct explain_paging *paging, struct sentences *sentences);

#endif
