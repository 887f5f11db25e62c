/* SPDX-License-Identifier: MIT */
/*
 * Lanes: contexts of D3DKMT clients that share node 0 of the scripted miniport. Its GPU completes
 * what the test says. What reaches the miniport is recorded by lane.
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
	D3DKMT_HANDLE own; /* an allocation that no other lane uses, resident */
	/* its buffers; without a device, for the client_ functions that render */
	struct client_context c;
	char name;
};

struct priority_world {
	struct world w;
	struct vidmm_process *process[2];
	D3DKMT_HANDLE device[2];
	struct lane lane[LANES_MAX];
	uint32_t lanes;
};

/*
 * Starts two processes with one device each. tdr NULL: no timeouts. scheduling NULL: slices of 10
 * ms, and a preemption patience that no test exceeds.
 */
void priority_start(struct priority_world *p, void **state, world_setup *setup,
		    const struct vidmm_tdr_options *tdr,
		    const struct vidmm_scheduling_options *scheduling);
void priority_stop(struct priority_world *p);

/* A context only: it owns no allocation and nothing is submitted. */
struct lane *priority_open(struct priority_world *p, uint32_t process, char name);
/* To be called before the GPU has work. */
struct lane *priority_lane(struct priority_world *p, uint32_t process, char name);
void lane_end(struct lane *lane);
void lane_enter(const struct lane *lane); /* the calling thread belongs to its process */
NTSTATUS lane_try_priority(struct lane *lane, INT priority);
void lane_priority(struct lane *lane, INT priority);
INT lane_priority_of(struct lane *lane);
void lane_in_process(struct lane *lane, INT priority);
void process_class(struct priority_world *p, uint32_t process, uint32_t class);

D3DKMT_HANDLE lane_allocate(struct lane *lane, uint64_t bytes, uint32_t segment_set);
NTSTATUS lane_destroy(struct lane *lane, D3DKMT_HANDLE allocation);
/*
 * Locks with DonotWait. Returns STATUS_SUCCESS, having unlocked again, or the status of the lock.
 */
NTSTATUS lane_try_lock(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t flags);
uint32_t lane_word(struct lane *lane, D3DKMT_HANDLE allocation);
/* packets that use the lane's own allocation */
void lane_submit(struct lane *lane, uint32_t count);
void lane_submit_use(struct lane *lane, D3DKMT_HANDLE allocation);
void lane_submit_write(struct lane *lane, D3DKMT_HANDLE allocation, uint32_t value);
/* Appends to the next packet; lane_render submits it. */
void lane_render(struct lane *lane);

/*
 * The names of the lanes whose packets the miniport got since the last priority_forget, in order
 * ('.': paging).
 */
const char *priority_order(struct priority_world *p);
void priority_forget(struct priority_world *p);
/*
 * The GPU completes `count` packets of node 0, one after the other; the miniport gets the next
 * ones.
 */
void priority_complete(struct priority_world *p, uint32_t count);
void priority_complete_all(struct priority_world *p);
/* Asserts that the fence ids that the miniport got on node 0 rise. */
void priority_assert_rising(struct priority_world *p);

#endif
