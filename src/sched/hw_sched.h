/* SPDX-License-Identifier: MIT */
/*
 * Hardware scheduling as doors see it: contexts that the GPU schedules by itself, and the queues of each, whose commands complete
 * in order. An adapter has them where its miniport does (struct vmm_port_caps.hw_nodes); elsewhere every call here is
 * STATUS_NOT_SUPPORTED with a reason. A command is an address that the miniport understands: nothing here looks behind it, and
 * GPU virtual addresses are not built. Everything on the device's residency list is there while it runs (RES-08).
 *
 * The caller is inside the device. Nothing here waits for the GPU but what ends something.
 */
#ifndef VMM_SCHED_HW_SCHED_H
#define VMM_SCHED_HW_SCHED_H

#include "sched/sched.h"

struct vmm_hw_context_request {
	uint32_t node, affinity, flags;
	void *private_data; /* our copy */
	uint32_t private_bytes;
	uint32_t handle; /* out */
};
NTSTATUS vmm_hw_create_context(struct vmm_device *device,
			       struct vmm_hw_context_request *request) VMM_MUST_CHECK;
/* Its queues end with it. STATUS_INVALID_PARAMETER: not a hardware context of the device. */
NTSTATUS vmm_hw_destroy_context(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;

struct vmm_hw_queue_request {
	uint32_t context; /* handle */
	D3DDDI_CREATEHWQUEUEFLAGS flags;
	void *private_data; /* our copy */
	uint32_t private_bytes;
	uint32_t handle, fence; /* out */
	void *fence_address;    /* out: where the client reads the 64-bit value */
};
NTSTATUS vmm_hw_create_queue(struct vmm_device *device,
			     struct vmm_hw_queue_request *request) VMM_MUST_CHECK;
/* Waits for what the GPU has of it, and for what it is not kept from; what is behind a wait never runs. */
NTSTATUS vmm_hw_destroy_queue(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;

#define VMM_HW_PRIVATE_BYTES_MAX 65536u /* of a command */
struct vmm_hw_command {
	uint32_t queue; /* handle */
	uint64_t id; /* what the progress fence will reach; larger than the one before (MFN-37) */
	uint64_t address;
	uint32_t bytes;
	const void *private_data; /* our copy */
	uint32_t private_bytes;
	uint32_t primaries;
};
NTSTATUS vmm_hw_submit(struct vmm_device *device,
		       const struct vmm_hw_command *command) VMM_MUST_CHECK;

#define VMM_HW_BROADCAST_MAX 64u /* SYN-34 */
#define VMM_HW_OBJECTS_MAX   32u
struct vmm_hw_sync_request {
	bool signal;
	uint32_t flags;         /* of a signal: D3DDDICB_SIGNALFLAGS */
	const uint32_t *queues; /* our copies, as are the other arrays; a wait has one */
	uint32_t queue_count;
	const uint32_t *objects;
	const uint64_t *values;
	uint32_t count;
};
/* SYN-34, SYN-35. STATUS_ACCESS_DENIED: NoSignal, NoWait, or a fence that is not the client's to signal. */
NTSTATUS vmm_hw_submit_sync(struct vmm_device *device,
			    const struct vmm_hw_sync_request *request) VMM_MUST_CHECK;

/* The live handle of the device whose context, or queue, that is; NULL: none. */
void *vmm_hw_device_of_context(struct vmm_process *process, uint32_t handle);
void *vmm_hw_device_of_queue(struct vmm_process *process, uint32_t handle);

/* As vmm_sched_set_priority and its neighbours; in-process priorities are -7 to 7 here (SCH-10). */
NTSTATUS vmm_hw_set_priority(struct vmm_device *device, uint32_t context,
			     int32_t priority) VMM_MUST_CHECK;
NTSTATUS vmm_hw_set_in_process_priority(struct vmm_device *device, uint32_t context,
					int32_t priority) VMM_MUST_CHECK;
NTSTATUS vmm_hw_priority(struct vmm_device *device, uint32_t context, bool in_process,
			 int32_t *priority) VMM_MUST_CHECK;
/* Is the number that of a hardware context of the process? It may end at once. */
bool vmm_hw_is_context(struct vmm_process *process, uint32_t handle);

#endif
