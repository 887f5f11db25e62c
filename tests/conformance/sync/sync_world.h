/* SPDX-License-Identifier: MIT */
/*
 * The world of the scheduling tests with a miniport of WDDM 3.0 whose GPU completes at once, and
 * two D3DKMT processes with one device each. The calling thread belongs to the first process.
 */
#ifndef VMM_TESTS_SYNC_WORLD_H
#define VMM_TESTS_SYNC_WORLD_H

#include <sched_world.h>

#include <d3dkmthk.h>

struct sync_world {
	struct world w;
	struct vidmm_process *process, *other;
	D3DKMT_HANDLE adapter, device; /* of `process` */
	D3DKMT_HANDLE other_device;
};

/* Setups. */
void sync_3_0(struct scripted_miniport *m);
void sync_2_0(struct scripted_miniport *m);
void sync_narrow(struct scripted_miniport *m); /* No64BitAtomics */

void sync_start(struct sync_world *s, void **state, world_setup *setup);
void sync_start_with(struct sync_world *s, void **state, world_setup *setup,
		     const struct client_options *options);
/* Asserts that there is no finding that the test did not expect. */
void sync_stop(struct sync_world *s);
void sync_found(struct sync_world *s, const char *rule);
D3DKMT_HANDLE sync_open_device(struct sync_world *s);

/* D3DKMTCreateSynchronizationObject2 of that type and flags, otherwise zero. */
NTSTATUS sync_try_create(struct sync_world *s, uint32_t type, uint32_t flags,
			 D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *args);
/*
 * Creates a monitored fence of the first device with those flags; also gives the address of its
 * value.
 */
struct sync_fence {
	D3DKMT_HANDLE handle;
	const _Atomic uint64_t *value;
};
struct sync_fence sync_fence(struct sync_world *s, uint32_t flags, uint64_t value);
NTSTATUS sync_destroy(D3DKMT_HANDLE handle);
NTSTATUS sync_signal(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value);
NTSTATUS sync_signal_with(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value,
			  uint32_t flags);
NTSTATUS sync_wait(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value);
NTSTATUS sync_wait_all(D3DKMT_HANDLE device, const D3DKMT_HANDLE *fences, const uint64_t *values,
		       uint32_t count, uint32_t flags);
NTSTATUS sync_wait_event(D3DKMT_HANDLE device, D3DKMT_HANDLE fence, uint64_t value, int event);

/* An eventfd, and its count since the last call; it does not block. */
int sync_event(void);
uint64_t sync_events(int event);

/* One wait in its own thread, in a process. */
struct sync_waiter {
	struct vidmm_process *process;
	D3DKMT_HANDLE device, fence;
	uint64_t value;
	NTSTATUS result;
	_Atomic uint32_t done;
	struct vidmm_thread *thread;
};
/* Returns when the thread waits or has finished. */
void sync_waiter_start(struct sync_world *s, struct sync_waiter *v, D3DKMT_HANDLE fence,
		       uint64_t value);
NTSTATUS sync_waiter_join(struct sync_waiter *v);

#endif
