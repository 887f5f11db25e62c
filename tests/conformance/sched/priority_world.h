/* SPDX-License-Identifier: MIT */
/*
 * Lanes: contexts of D3DKMT clients that share node 0 of the scripted miniport, whose GPU completes what the test says. What
 * reaches the miniport is told by lane.
 */
#ifndef VMM_TESTS_PRIORITY_WORLD_H
#define VMM_TESTS_PRIORITY_WORLD_H

#include "timeout_world.h"

#include <d3dkmthk.h>

#define LANES_MAX 8u
#define ABSOLUTE  0x40000000

struct lane {
	struct priority_world *world;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context;
	D3DKMT_HANDLE own;       /* an allocation that nobody else uses, resident */
	struct client_context c; /* its buffers; no device, for client_... that render */
	char name;
};

struct priority_world {
	struct world w;
	struct vidmm_process *process[2];
	D3DKMT_HANDLE device[2];
	struct lane lane[LANES_MAX];
	uint32_t lanes;
};

/* Two processes with a device each. tdr: NULL for no timeouts; scheduling: NULL for slices of 10 ms and more
 * patience than any test takes. */
void priority_start(struct priority_world *p, void **state, world_setup *setup,
		    const struct vidmm_tdr_options *tdr,
		    const struct vidmm_scheduling_options *scheduling);
void priority_stop(struct priority_world *p);

/* A context and no more: nothing of its own, nothing submitted. */
struct lane *priority_open(struct priority_world *p, uint32_t process, char name);
/* Before the GPU has work. */
struct lane *priority_lane(struct priority_world *p, uint32_t process, char name);
void lane_end(struct lane *lane);
void lane_enter(const struct lane *lane); /* the calling thread is in its process */
NTSTATUS lane_try_priority(struct lane *lane, INT priority);
void lane_priority(struct lane *lane, INT priority);
INT lane_priority_of(struct lane *lane);
void lane_in_process(struct lane *lane, INT priority);
void process_class(struct priority_world *p, uint32_t process, uint32_t class);

D3DKMT_HANDLE lane_allocate(struct lane *lane, uint64_t bytes, uint32_t segment_set);
NTSTATUS lane_destroy(struct lane *lane, D3DKMT_HANDLE allocation);
/* With DonotWait: STATUS_SUCCESS, having unlocked it again, or what the lock said. */
NTSTATUS lane_try_lock(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t flags);
uint32_t lane_word(struct lane *lane, D3DKMT_HANDLE allocation);
void lane_submit(struct lane *lane, uint32_t count); /* packets that use what is its own */
void lane_submit_use(struct lane *lane, D3DKMT_HANDLE allocation);
void lane_submit_write(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t value);
/* Into the next packet; lane_render sends it. */
void lane_render(struct lane *lane);

/* The names of the lanes whose packets the miniport got since the last priority_forget, in order ('.': paging). */
const char *priority_order(struct priority_world *p);
void priority_forget(struct priority_world *p);
/* The GPU completes so many packets of node 0, one after the other; the miniport gets what comes next. */
void priority_complete(struct priority_world *p, uint32_t count);
void priority_complete_all(struct priority_world *p);
/* Ids of node 0 that the miniport got rise. */
void priority_assert_rising(struct priority_world *p);

#endif
