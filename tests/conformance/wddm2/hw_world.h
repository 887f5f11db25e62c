/* SPDX-License-Identifier: MIT */
/*
 * The world of the tests of WDDM 2.x with a miniport of 3.0 that schedules by itself, on node 0; a D3DKMT process with a device
 * and a hardware context there. The calling thread is in that process.
 */
#ifndef VMM_TESTS_HW_WORLD_H
#define VMM_TESTS_HW_WORLD_H

#include "wddm2_world.h"

#include <d3dkmthk.h>

#define HW_ADDRESS        0x10000u /* of a command, plus its id */
#define HW_BYTES          96u
#define VMM_PRIVATE_LIMIT 65536u /* */

struct hw_world {
	struct world w;
	struct vidmm_process *process;
	D3DKMT_HANDLE device, context;
};

/* Setups: of node 0; with room for two commands of a queue. */
void hw_setup(struct scripted_miniport *m);
void hw_two_in_flight(struct scripted_miniport *m);

void hw_start(struct hw_world *h, void **state, world_setup *setup); /* NULL: hw_setup */
void hw_start_with(struct hw_world *h, void **state, world_setup *setup,
		   const struct client_options *options);
void hw_stop(struct hw_world *h);
D3DKMT_HANDLE hw_device(struct hw_world *h); /* another */
D3DKMT_HANDLE hw_context(D3DKMT_HANDLE device);
/* Findings that the test does not look at. */
void hw_forget(struct hw_world *h);
/* All others have done what they can. */
void hw_settle(struct hw_world *h);
/* The GPU works until nothing is left to be done. */
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
/* Is the value there? STATUS_TIMEOUT: it is not, as an event says that was to be set. */
NTSTATUS hw_reached(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value);
/* Its end, in a thread of its own, waits until the GPU has done what the queue of that number has. */
void hw_destroy_and_complete(struct hw_world *h, const struct hw_queue *queue, uint32_t index);

#endif
