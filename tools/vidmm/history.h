/* SPDX-License-Identifier: MIT */
/*
 * history: the last events of each allocation, which explain wrong content. The event stream feeds
 * it, on any thread; the thread of the replay reads it. An allocation is identified by process and
 * handle. Instances that renaming created share one history.
 */
#ifndef VIDMM_TOOLS_HISTORY_H
#define VIDMM_TOOLS_HISTORY_H

#include <stdint.h>
#include <vidmm/vidmm.h>

#define HISTORY_EVENTS 5u

struct history;

/* Returns NULL when out of memory or of subscriptions. */
struct history *history_create(struct vidmm_host *host);
void history_destroy(struct history *history);
/* Copies up to HISTORY_EVENTS events, oldest first. Returns their number. */
unsigned history_of(struct history *history, uint32_t process, uint32_t handle,
		    struct vidmm_event events[HISTORY_EVENTS]);

#endif
