/* SPDX-License-Identifier: MIT */
/*
 * A world whose GPU may hang: timeouts are enabled, and the watchdog's events are recorded. On the
 * simulator TdrDelay is the default. On real threads it is half of that, which exceeds the delays
 * of a busy machine.
 */
#ifndef VMM_TESTS_TIMEOUT_WORLD_H
#define VMM_TESTS_TIMEOUT_WORLD_H

#include "sched_world.h"

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S  ((uint64_t)1000000000)

struct timeout_world {
	struct world w;
	struct vidmm_tdr_options tdr;
	D3DKMT_HANDLE a; /* 64 KiB, resident in segment 1 */
};

/* tdr NULL: that default. The GPU completes packets at once until timeout_hang is called. */
void timeout_start(struct timeout_world *t, void **state, world_setup *setup,
		   const struct vidmm_tdr_options *tdr);
struct vidmm_tdr_options timeout_defaults(uint32_t kind);
void timeout_hang(struct timeout_world *t); /* from here on the GPU completes nothing */
void timeout_work(struct timeout_world *t); /* the GPU completes packets again */
/* Closes the world's own device, which was lost, and opens a new one. */
void timeout_reopen(struct timeout_world *t);
void timeout_stop(struct timeout_world *t);

/* Events of enum vidmm_recovery so far: their number, and the n-th of a kind. */
uint32_t timeout_count(uint32_t what);
struct vidmm_event timeout_event(uint32_t what, uint32_t n);
/* Lets other threads run until there are that many; on the simulator time passes. */
void timeout_await(struct timeout_world *t, uint32_t what, uint32_t count);
/* Waits for the first preemption request. Its event comes before the call of the miniport. */
void timeout_await_preemption(struct timeout_world *t);
/* On the simulator: lets time pass; everything that is due until then happens. */
void timeout_pass(struct timeout_world *t, uint64_t nanoseconds);

bool timeout_is_lost(struct client_device *device, D3DKMT_HANDLE allocation);

#endif
