/* SPDX-License-Identifier: MIT */
/*
 * Contexts whose queues wait and signal: lanes of priority_world.h on the scripted miniport of WDDM
 * 3.0, whose GPU completes what the test says. Their packets reference no allocations, so only the
 * order of each queue and its waits decide.
 */
#ifndef VMM_TESTS_QUEUE_WORLD_H
#define VMM_TESTS_QUEUE_WORLD_H

#include <priority_world.h>

void queue_3_0(struct scripted_miniport *m);
void queue_start(struct priority_world *p, void **state);
void queue_start_with(struct priority_world *p, void **state, world_setup *setup,
		      const struct vidmm_tdr_options *tdr);
/* A lane of one of the two processes, on its device. */
struct lane *queue_lane(struct priority_world *p, uint32_t process, char name);
/* The names of the lanes whose packets the miniport got since the last call. */
void queue_assert_order(struct priority_world *p, const char *expected);
void queue_found(struct priority_world *p, const char *rule);

struct queue_fence {
	D3DKMT_HANDLE handle;
	const _Atomic uint64_t *value;
};
/* A monitored fence of the lane's device. */
struct queue_fence queue_fence(struct lane *lane, uint32_t flags, uint64_t value);
/*
 * A handle of the same fence in another process: the fence is created Shared with
 * NtSecuritySharing.
 */
D3DKMT_HANDLE queue_fence_for(struct lane *lane, D3DKMT_HANDLE fence, struct lane *other);
NTSTATUS queue_destroy(struct lane *lane, D3DKMT_HANDLE fence);
/* Signals from the CPU. */
NTSTATUS queue_cpu_signal(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value);

/* WaitForSynchronizationObjectFromGpu, SignalSynchronizationObjectFromGpu of one fence. */
NTSTATUS lane_wait(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value);
NTSTATUS lane_signal(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value);
/* SignalSynchronizationObjectFromGpu2 by one context. */
NTSTATUS lane_signal_with(struct lane *lane, D3DKMT_HANDLE fence, uint64_t value, uint32_t flags);

#endif
