/* SPDX-License-Identifier: MIT */
/*
 * The common part of the device callbacks: begin and end of a call, and refusals. Each callback
 * enters the device or context by a protected lookup (object/hazard.h), calls the core, emits one
 * event, and translates NTSTATUS to HRESULT. (LOCK-33, PRI-16)
 */
#ifndef VMM_DOORS_UMD_PRIVATE_H
#define VMM_DOORS_UMD_PRIVATE_H

#include "doors/common/allocations.h"
#include "doors/common/quick_lock.h"
#include "doors/common/sync.h"
#include "doors/umd/umd.h"
#include "sched/hw_sched.h"

/*
 * Begins a call on a live device that is neither removed nor in error (LOCK-33, PRI-16). With
 * `destroying`, a lost device is accepted. Returns STATUS_INVALID_PARAMETER if the HANDLE is not a
 * device.
 */
NTSTATUS vmm_umd_enter(struct vmm_door_call *call, HANDLE device, uint32_t door, bool destroying);
/*
 * Like vmm_umd_enter, by one of the device's contexts, which is then protected as well. *context is
 * NULL if the device has no such context.
 */
NTSTATUS vmm_umd_enter_context(struct vmm_door_call *call, HANDLE device, HANDLE handle,
			       uint32_t door, struct vmm_context **context);
/* Ends the call with its door event; returns the HRESULT. */
HRESULT vmm_umd_leave(const struct vmm_door_call *call, NTSTATUS status, uint32_t object,
		      uint64_t count, uint64_t flags);

HRESULT vmm_umd_hresult(NTSTATUS status);

/* vmm_umd_enter and vmm_umd_leave inlined, for calls that are as short as these two: locks. */
VMM_ALWAYS_INLINE NTSTATUS vmm_umd_enter_inline(struct vmm_door_call *call, HANDLE handle,
						uint32_t door, bool destroying)
{
	struct vmm_device *device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, handle);

	call->device = device;
	call->on_stopped = false;
	call->door = door;
	if (vmm_unlikely(!device))
		return vmm_door_no_device(call, handle, destroying);
	call->process = device->process;
	call->observe = device->adapter->observe;
	call->began = vmm_observe_begin(call->observe, VIDMM_EVENT_DOOR);
	return destroying ? STATUS_SUCCESS : vmm_door_check_alive(device);
}

VMM_ALWAYS_INLINE HRESULT vmm_umd_leave_inline(const struct vmm_door_call *call, NTSTATUS status,
					       uint32_t object, uint64_t count, uint64_t flags)
{
	/* A device that ended during the call may have taken its process with it: no event. */
	if (vmm_likely(call->device)) {
		vmm_event_inline(call->observe, VIDMM_EVENT_DOOR, call->process->id, object,
				 call->door, (uint32_t)status, count,
				 vmm_observe_elapsed(call->observe, call->began), flags);
		vmm_hazard_leave(&call->guard);
	} else if (call->on_stopped) {
		status = STATUS_SUCCESS;
	}
	return vmm_likely(status == STATUS_SUCCESS) ? S_OK : vmm_umd_hresult(status);
}

/* Calls of lock and unlock that only count; see doors/common/quick_lock.h. */
static inline bool vmm_umd_quick_lock(HANDLE device, D3DDDICB_LOCK *data)
{
	return vmm_likely(data && !data->pPages && !data->NumPages) &&
	       vmm_quick_lock(device, data->hAllocation, data->Flags.Value, false, &data->pData);
}
static inline bool vmm_umd_quick_unlock(HANDLE device, const D3DDDICB_UNLOCK *data)
{
	return vmm_likely(data) &&
	       vmm_quick_unlock_list(device, &data->phAllocations, &data->NumAllocations);
}
static inline bool vmm_umd_quick_lock2(HANDLE device, D3DDDICB_LOCK2 *data)
{
	return vmm_likely(data && !data->Flags.Value) &&
	       vmm_quick_lock(device, data->hAllocation, 0, true, &data->pData);
}
static inline bool vmm_umd_quick_unlock2(HANDLE device, const D3DDDICB_UNLOCK2 *data)
{
	return vmm_likely(data) && vmm_quick_unlock(device, data->hAllocation);
}

/*
 * For calls whose argument is NULL, after the device was entered with `status`: a finding and
 * STATUS_INVALID_PARAMETER, or `status` if it is an error. (HND-11)
 */
NTSTATUS vmm_umd_no_argument(const struct vmm_door_call *call, NTSTATUS status,
			     const char *callback) VMM_COLD;

/* The number of a HANDLE; 0, which names no object, if it has more than 32 bits. */
static inline uint32_t vmm_umd_number(HANDLE handle)
{
	return (uintptr_t)handle > UINT32_MAX ? 0 : (uint32_t)(uintptr_t)handle;
}

/*
 * A callback that is not built: E_NOTIMPL and an event with its name, so that a driver which calls
 * one learns at once that nothing was done.
 */
HRESULT vmm_umd_not_built(HANDLE device, const char *name);

/*
 * ---- the steps by hand of callbacks that are made from calls.tsv ----
 *
 * More of them, with the call's whole argument, are in umd_calls.h.
 */

NTSTATUS vmm_umd_allocate(const struct vmm_door_call *call, const D3DDDICB_ALLOCATE *args,
			  D3DKMT_HANDLE *first, D3DKMT_HANDLE *resource);
NTSTATUS vmm_umd_deallocate(const struct vmm_door_call *call, HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags);
/* Refuses a call because of `member`, which is not a live context of the call's device. */
NTSTATUS vmm_umd_refuse_context(const struct vmm_door_call *call, const char *rule, uint32_t object,
				const char *member);
NTSTATUS vmm_umd_check_present(const struct vmm_door_call *call, const struct vmm_context *context,
			       NTSTATUS status);

/* The core looks the contexts up. (SYN-28, SYN-29) */
NTSTATUS vmm_umd_copy_others(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const HANDLE *contexts, uint32_t count);
/* Refuses a signal that names no context; the whole callback. (SYN-31) */
HRESULT vmm_umd_refuse_contexts(HANDLE device);
NTSTATUS vmm_umd_wait(struct vmm_door_call *call, const struct vmm_sync_list *list, HANDLE event);

NTSTATUS vmm_umd_refuse_hw_flags(const struct vmm_door_call *call, uint32_t queue, uint32_t flags);
/* Counts beyond the limits of SYN-34 are not read here; the core reports them. */
NTSTATUS vmm_umd_copy_queues(const struct vmm_hw_sync_request *request, const HANDLE *given,
			     uint32_t queues[VMM_HW_BROADCAST_MAX]);

#endif
