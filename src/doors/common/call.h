/* SPDX-License-Identifier: MIT */
/*
 * doors/common: what the device callbacks and the D3DKMT functions share. A call in progress, its
 * end with the door event, and copies of a caller's arrays. The doors differ in how a call begins
 * and in what it returns.
 *
 * Any thread; no lock is held on entry.
 */
#ifndef VMM_DOORS_COMMON_CALL_H
#define VMM_DOORS_COMMON_CALL_H

#include <string.h>

#include <d3dukmdt.h>
#include "object/hazard.h"
#include "object/object.h"

/* Limits on what a caller can make the library copy; far above what drivers and clients use. */
#define VMM_DOOR_ALLOCATIONS_MAX   65536u
#define VMM_DOOR_PRIVATE_BYTES_MAX (1u << 20)
#define VMM_DOOR_HANDLES_MAX       (1u << 20)

struct vmm_door_call {
	struct vmm_process *process; /* NULL: none; then the call leaves without an event */
	struct vmm_device *device; /* NULL: none, or ended; else protected until the call leaves */
	struct vmm_observe *observe; /* of the process */
	struct vmm_hazard_guard guard;
	uint64_t began;
	uint32_t door;
	/* Of a call without a device: it destroys something of a stopped device, so it succeeds. */
	bool on_stopped;
};

/*
 * Returns the status of a call on a device that cannot be entered: STATUS_DEVICE_REMOVED if its
 * adapter has stopped (PNP-03), otherwise STATUS_INVALID_PARAMETER. hazard: NULL for a handle of no
 * device. `cleaning`: the call destroys something.
 */
NTSTATUS vmm_door_no_device(struct vmm_door_call *call, const void *hazard, bool cleaning) VMM_COLD;

/* Returns the status of a call on a device that is lost or in error. */
NTSTATUS vmm_door_lost_status(const struct vmm_device *device) VMM_COLD;

/*
 * Returns STATUS_DEVICE_REMOVED if the device is lost with its adapter (LOCK-33, OFR-15, PNP-03) or
 * by a reset (TDR-07), and STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE if it is in error (PRI-16,
 * TDR-19). The reason was reported when the error occurred.
 */
static inline NTSTATUS vmm_door_check_alive(const struct vmm_device *device)
{
	if (vmm_unlikely(atomic_load_explicit(&device->adapter->closed, memory_order_relaxed) ||
			 atomic_load_explicit(&device->error, memory_order_relaxed) !=
				 VMM_DEVICE_OK))
		return vmm_door_lost_status(device);
	return STATUS_SUCCESS;
}

/* Ends the call with its door event; returns the status. */
VMM_ALWAYS_INLINE NTSTATUS vmm_door_leave_inline(const struct vmm_door_call *call, NTSTATUS status,
						 uint32_t object, uint64_t count, uint64_t flags)
{
	if (vmm_unlikely(!call->device) && call->on_stopped)
		status = STATUS_SUCCESS;
	if (vmm_likely(call->process))
		vmm_event_inline(call->observe, VIDMM_EVENT_DOOR, call->process->id, object,
				 call->door, (uint32_t)status, count,
				 vmm_observe_elapsed(call->observe, call->began), flags);
	if (vmm_likely(call->device))
		vmm_hazard_leave(&call->guard);
	return status;
}

/*
 * Copies count elements of the caller's array, which is read once, into `local` if it is large
 * enough. *copy is NULL for an empty array.
 */
NTSTATUS vmm_door_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
			  void *local, size_t local_bytes, void **copy);
/* The same for an array that may be missing: *copy is NULL only then. (OFR-02, PRI-03, PRI-04) */
NTSTATUS vmm_door_copy_given(const void *array, uint32_t count, uint32_t limit, size_t element,
			     void *local, size_t local_bytes, void **copy);
/* Returns the status of a copy; if the array was refused, a reason names it. */
static inline NTSTATUS vmm_door_copied(const struct vmm_door_call *call, NTSTATUS status,
				       const char *array, uint32_t count)
{
	if (vmm_likely(status != STATUS_INVALID_PARAMETER))
		return status;
	return vmm_refuse_reason(call->observe, status, call->process->id, 0,
				 "%s is NULL or larger than the limit (count %u)", array, count);
}
/* vmm_copy_in; if the array is refused, a reason names it. */
static inline NTSTATUS vmm_door_copy(const struct vmm_door_call *call, const char *name,
				     const void *array, uint32_t count, uint32_t limit,
				     size_t element, void **copy)
{
	return vmm_door_copied(call, vmm_copy_in(array, count, limit, element, copy), name, count);
}
void vmm_door_copy_done(void *copy, const void *local);
/* Copies bytes that the miniport may have changed back to the caller. copy: NULL if empty. */
static inline NTSTATUS vmm_door_copy_back(void *array, const void *copy, uint32_t bytes)
{
	if (copy)
		memcpy(array, copy, bytes);
	return STATUS_SUCCESS;
}

#endif
