/* SPDX-License-Identifier: MIT */
/*
 * Steps of calls that wait for synchronization objects or signal them. A step is a function that
 * the functions made from calls.tsv call (src/doors/README.md).
 */
#ifndef VMM_DOORS_COMMON_SYNC_H
#define VMM_DOORS_COMMON_SYNC_H

#include "doors/common/call.h"
#include "sched/hw_sched.h"
#include "sched/sched.h"
#include "sync/sync.h"

/* Copies of the caller's arrays (MFN-34): short ones are stored here, longer ones are allocated. */
struct vmm_door_arrays {
	uint32_t local_handles[32];
	uint64_t local_values[32];
	void *handles, *values; /* the copies */
	const void *others[VMM_SYNC_BROADCAST_MAX];
};

/* Copies both arrays of a call of the CPU. On failure, too, vmm_door_arrays_done ends them. */
NTSTATUS vmm_door_copy_list(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			    const void *handles, const void *values, struct vmm_sync_list *list);
void vmm_door_arrays_done(const struct vmm_door_arrays *arrays);

/*
 * ---- the queue of a context (SYN-25) ----
 *
 * Waits and signals return when they are queued. Errors are found here, in sync (packet.c), and for
 * further contexts in sched.
 */

/* Makes a request with one value for all objects, without arrays yet. */
struct vmm_sched_sync vmm_door_sync(struct vmm_door_arrays *arrays, enum vmm_sync_form form,
				    bool signal, uint32_t count, uint64_t value);
NTSTATUS vmm_door_copy_handles(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			       struct vmm_sched_sync *sync, const void *handles);
/* For an array that is inside the argument. The core refuses a count beyond it. */
NTSTATUS vmm_door_copy_fixed(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const uint32_t *handles);
/*
 * Reads the union of the calls of WDDM 2.0: the type of the first object decides whether it is a
 * value or an array. (SYN-32)
 */
NTSTATUS vmm_door_read_union(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, uint64_t value);

/* Counts beyond the limits of SYN-34 are not read here; the core reports them. */
NTSTATUS vmm_door_submit_sync(const struct vmm_door_call *call, const uint32_t *objects,
			      const uint64_t *values, struct vmm_hw_sync_request *request);

#endif
