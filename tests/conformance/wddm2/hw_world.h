/* SPDX-License-Identifier: MIT */
/*
 * The fixture of the WDDM 2.x tests with a miniport of 3.0 that supports hardware scheduling on
 * node 0, and a D3DKMT process with a device and a hardware context. The calling thread is
 * attached to that process.
 */
#ifndef VMM_TESTS_HW_WORLD_H
#define VMM_TESTS_HW_WORLD_H

#include "wddm2_world.h"

#include <d3dkmthk.h>

#define HW_ADDRESS        0x10000u /* the address of a command, plus its id */
#define HW_BYTES          96u
#define VMM_PRIVATE_LIMIT 65536u /* */

struct hw_world {
	struct world w;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context;
};

/* Setups: for node 0; with at most two commands of a queue in flight. */
void hw_setup(struct scripted_miniport *m);
void hw_two_in_flight(struct scripted_miniport *m);

void hw_start(struct hw_world *h, void **state, world_setup *setup); /* NULL: hw_setup */
void hw_start_with(struct hw_world *h, void **state, world_setup *setup,
		   const struct client_options *options);
void hw_stop(struct hw_world *h);
D3DKMT_HANDLE hw_device(struct hw_world *h); /* creates another device */
D3DKMT_HANDLE hw_context(D3DKMT_HANDLE device);
/* Discards findings that the test does not check. */
void hw_forget(struct hw_world *h);
/* Returns when all other threads are blocked. */
void hw_settle(struct hw_world *h);
/* The GPU executes commands until none is left. */
void hw_run(struct hw_world *h);

struct hw_queue {
	D3DKMT_HANDLE handle, fence;
	const _Atomic uint64_t *value;
};
struct hw_queue hw_queue(struct hw_world *h, D3DKMT_HANDLE context, uint32_t flags);
void hw_destroy_queue(const struct hw_queue *queue);
uint64_t hw_value(const struct hw_queue *queue);
NTSTATUS hw_submit(const struct hw_queue *queue, uint64_t id);
NTSTATUS hw_submit_with(const struct hw_queue *queue, uint64_t id, const void *private_data,
			uint32_t bytes);
/*
 * Returns whether the value is reached. STATUS_TIMEOUT: it is not, which an event that should be
 * set shows.
 */
NTSTATUS hw_reached(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value);
/*
 * Destroys it on another thread, which waits until the GPU has executed the commands of the queue
 * with that number.
 */
void hw_destroy_and_complete(struct hw_world *h, const struct hw_queue *queue, uint32_t index);

/* ---- memory of the process of the hardware context ---- */

D3DKMT_HANDLE hw_paging_queue(D3DKMT_HANDLE device);
D3DKMT_HANDLE hw_allocate(D3DKMT_HANDLE device, uint64_t bytes); /* in WORLD_MEMORY */
D3DKMT_HANDLE hw_allocate_in(D3DKMT_HANDLE device, uint64_t bytes, uint32_t segment_set);
/* Returns what MakeResident does; *value: that of the queue's fence. */
NTSTATUS hw_make(D3DKMT_HANDLE queue, D3DKMT_HANDLE allocation, uint64_t *value);
void hw_make_resident(struct hw_world *h, D3DKMT_HANDLE device, D3DKMT_HANDLE allocation);
/* An allocation on the residency list of the device. */
D3DKMT_HANDLE hw_listed(struct hw_world *h, D3DKMT_HANDLE device, uint64_t bytes);
/* The same, but the GPU may still have to do the paging for it. */
D3DKMT_HANDLE hw_listing(D3DKMT_HANDLE device, uint64_t bytes);
D3DKMT_DEVICEEXECUTION_STATE hw_state_of(D3DKMT_HANDLE device);

/* An allocation on the residency list of the fixture's device, which is another process's. */
D3DKMT_HANDLE hw_theirs_in_memory(struct hw_world *h, uint64_t bytes, uint32_t flags);
/*
 * A packet of the fixture's device takes memory that commands of hardware queues use. Returns when
 * the packet is on the GPU, which does not complete it.
 */
void hw_use_theirs(struct hw_world *h, D3DKMT_HANDLE theirs);

#endif
