/* SPDX-License-Identifier: MIT */
/*
 * history: the last few events of each allocation, so that wrong content can be explained. Fed by vidmm's event
 * stream, from any thread; read by the replay's thread. An allocation is known by process and handle; instances that
 * renaming made share one history.
 */
#ifndef VIDMM_TOOLS_HISTORY_H
#define VIDMM_TOOLS_HISTORY_H

#include <stdint.h>
#include <vidmm/vidmm.h>

#define HISTORY_EVENTS 5u

struct history;

/* NULL when out of memory or subscriptions. */
struct history *history_create(struct vidmm_host *host);
void history_destroy(struct history *history);
/* Copies up to HISTORY_EVENTS events, oldest first; returns how many. */
unsigned history_of(struct history *history, uint32_t process, uint32_t handle,
		    struct vidmm_event events[HISTORY_EVENTS]);

#endif
