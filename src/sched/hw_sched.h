/* SPDX-License-Identifier: MIT */
/*
 * Hardware scheduling, as the doors (src/doors) use it. The GPU itself schedules hardware
 * contexts. Each context has queues, and the commands of a queue complete in order. An adapter
 * supports this if its miniport does (struct vmm_port_caps.hw_nodes). Otherwise creation fails with
 * STATUS_NOT_SUPPORTED and a reason. A command is an address that the miniport interprets; sched
 * does not read what is there. If the adapter has GPU virtual addresses, it is one of the address
 * space of the process, in which the GPU can also store progress fences. Everything on the device's
 * residency list is resident while a command runs (RES-08).
 *
 * The caller is inside the device (vmm_hazard_enter). Only the functions that end a context or
 * queue wait for the GPU.
 */
#ifndef VMM_SCHED_HW_SCHED_H
#define VMM_SCHED_HW_SCHED_H

#include "sched/sched.h"

struct vmm_hw_context_request {
	uint32_t node, affinity, flags;
	void *private_data; /* copied from the client */
	uint32_t private_bytes;
	uint32_t handle; /* out */
};
NTSTATUS vmm_hw_create_context(struct vmm_device *device,
			       struct vmm_hw_context_request *request) VMM_MUST_CHECK;
/*
 * Ends a context and its queues. STATUS_INVALID_PARAMETER: the handle is not a hardware context of
 * the device.
 */
NTSTATUS vmm_hw_destroy_context(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;

struct vmm_hw_queue_request {
	uint32_t context; /* handle */
	D3DDDI_CREATEHWQUEUEFLAGS flags;
	void *private_data; /* copied from the client */
	uint32_t private_bytes;
	uint32_t handle, fence; /* out */
	void *fence_address;    /* out: where the client reads the 64-bit value */
	/* out: where commands may store it; 0: no GPU virtual addresses */
	uint64_t fence_gpu_address;
};
NTSTATUS vmm_hw_create_queue(struct vmm_device *device,
			     struct vmm_hw_queue_request *request) VMM_MUST_CHECK;
/*
 * Ends a queue. Waits until its commands are complete, those included that can still be submitted.
 * Commands behind an unsatisfied wait never run.
 */
NTSTATUS vmm_hw_destroy_queue(struct vmm_device *device, uint32_t handle) VMM_MUST_CHECK;

#define VMM_HW_PRIVATE_BYTES_MAX 65536u /* private data of one command */
struct vmm_hw_command {
	uint32_t queue; /* handle */
	/*
	 * Value of the progress fence when the command is complete; larger than that of the command
	 * before (MFN-37).
	 */
	uint64_t id;
	uint64_t address;
	uint32_t bytes;
	const void *private_data; /* copied from the client */
	uint32_t private_bytes;
	uint32_t primaries;
};
NTSTATUS vmm_hw_submit(struct vmm_device *device,
		       const struct vmm_hw_command *command) VMM_MUST_CHECK;

struct vmm_hw_present_request {
	uint32_t queue; /* handle */
	/* As the id of a command; `next`: one larger than that of the command before. */
	uint64_t id;
	bool next;
	const struct vmm_present_request *present;
};
/*
 * Queues a present as a command of a hardware queue (PRS-10). Waits while the device has as many
 * presents queued as its limit allows (SUB-17). The errors of vmm_sched_present and vmm_hw_submit.
 */
NTSTATUS vmm_hw_present(struct vmm_device *device,
			const struct vmm_hw_present_request *request) VMM_MUST_CHECK;

/* What a user-mode driver tells of a present on a hardware queue. */
struct vmm_hw_blt {
	uint32_t queue;       /* handle of the first of queue_count queues */
	uint32_t queue_count; /* must be 1 */
	uint64_t id;          /* as in vmm_hw_present_request, like `next` */
	bool next;
	uint32_t source, destination; /* handles; without a destination it is a flip */
	const void *private_data;     /* copied from the client */
	uint32_t private_bytes;
};
/* Presents the whole source. Returns what vmm_hw_present does. */
NTSTATUS vmm_hw_present_blt(struct vmm_device *device, const struct vmm_hw_blt *blt) VMM_MUST_CHECK;

#define VMM_HW_BROADCAST_MAX 64u /* SYN-34 */
#define VMM_HW_OBJECTS_MAX   32u
struct vmm_hw_sync_request {
	bool signal;
	uint32_t flags; /* of a signal: D3DDDICB_SIGNALFLAGS */
	/* All arrays are copied from the client. A wait has one queue. */
	const uint32_t *queues;
	uint32_t queue_count;
	const uint32_t *objects;
	const uint64_t *values;
	uint32_t count;
};
/*
 * Queues a wait or signal (SYN-34, SYN-35). STATUS_ACCESS_DENIED: NoSignal, NoWait, or a fence that
 * the client may not signal.
 */
NTSTATUS vmm_hw_submit_sync(struct vmm_device *device,
			    const struct vmm_hw_sync_request *request) VMM_MUST_CHECK;

/*
 * Return the device of a hardware context or queue, as a handle for protected lookups (hazard.h);
 * NULL: not one of the process.
 */
void *vmm_hw_device_of_context(struct vmm_process *process, uint32_t handle);
void *vmm_hw_device_of_queue(struct vmm_process *process, uint32_t handle);

/*
 * Like vmm_sched_set_priority and the functions beside it. In-process priorities are -7 to 7 here
 * (SCH-10).
 */
NTSTATUS vmm_hw_set_priority(struct vmm_device *device, uint32_t context,
			     int32_t priority) VMM_MUST_CHECK;
NTSTATUS vmm_hw_set_in_process_priority(struct vmm_device *device, uint32_t context,
					int32_t priority) VMM_MUST_CHECK;
NTSTATUS vmm_hw_priority(struct vmm_device *device, uint32_t context, bool in_process,
			 int32_t *priority) VMM_MUST_CHECK;
/*
 * Returns true if the handle is a hardware context of the process. The context may end at any time.
 */
bool vmm_hw_is_context(struct vmm_process *process, uint32_t handle);

#endif
