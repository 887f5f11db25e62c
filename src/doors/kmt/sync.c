/* SPDX-License-Identifier: MIT */
/*
 * Synchronization objects of a D3DKMT client. Signals, and waits that are satisfied at once, look
 * device and objects up under one lock and allocate no memory.
 */
#include "kmt_calls.h"

_Static_assert(D3DDDI_SYNCHRONIZATION_MUTEX == (int)VMM_SYNC_MUTEX &&
		       D3DDDI_SEMAPHORE == (int)VMM_SYNC_SEMAPHORE &&
		       D3DDDI_FENCE == (int)VMM_SYNC_FENCE &&
		       D3DDDI_CPU_NOTIFICATION == (int)VMM_SYNC_CPU_NOTIFICATION &&
		       D3DDDI_MONITORED_FENCE == (int)VMM_SYNC_MONITORED_FENCE &&
		       D3DDDI_PERIODIC_MONITORED_FENCE == (int)VMM_SYNC_PERIODIC_MONITORED_FENCE &&
		       D3DDDI_SYNCHRONIZATION_TYPE_LIMIT == (int)VMM_SYNC_TYPE_LIMIT,
	       "types have the numbers of the DDI");
_Static_assert(D3DDDI_MAX_BROADCAST_CONTEXT == VMM_SYNC_BROADCAST_MAX, "as many as the DDI allows");
_Static_assert(D3DDDI_MAX_OBJECT_SIGNALED == VMM_SYNC_SIGNALS_MAX, "as many as the DDI allows");

NTSTATUS vmm_kmt_destroy_sync(struct vmm_door_call *call,
			      const D3DKMT_DESTROYSYNCHRONIZATIONOBJECT *args)
{
	void *hazard = vmm_sync_driver_device(call->process, args->hSyncObject);

	if (vmm_unlikely(hazard)) /* the miniport's event is destroyed, too (CPN-06) */
		call->device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, hazard);
	NTSTATUS status = vmm_sync_destroy(call->process, call->device, args->hSyncObject);
	call->on_stopped = status == STATUS_DEVICE_REMOVED;
	return status;
}

NTSTATUS vmm_kmt_wait_file(const struct vmm_door_call *call, const D3DKMT_CREATESYNCFILE *args,
			   int event)
{
	uint32_t fence = args->hMonitoredFence;
	uint64_t value = args->FenceValue;
	const struct vmm_sync_list list = {.handles = &fence, .values = &value, .count = 1};
	NTSTATUS status = vmm_sync_wait_event(call->device, &list, (uint64_t)event);

	if (!NT_SUCCESS(status))
		vmm_os_event_close(event);
	return status;
}

/* ---- the queue of a context ---- */

/* Looks up the further contexts of a broadcast. (SYN-28) */
NTSTATUS vmm_kmt_copy_others(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const D3DKMT_HANDLE *handles,
			     uint32_t count)
{
	NTSTATUS status = vmm_sync_check_broadcast(call->process, count);
	void *device;

	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		arrays->others[i] = vmm_kmt_live_context(
			call->process, ((const volatile D3DKMT_HANDLE *)handles)[i], &device);
		if (!arrays->others[i])
			status = STATUS_INVALID_PARAMETER;
	}
	sync->others = arrays->others;
	sync->other_count = count;
	return status;
}

NTSTATUS vmm_kmt_refuse_contexts(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *args)
{
	struct vmm_door_call call;
	uint32_t count = (uint32_t)args->BroadcastContextCount;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_SIGNAL_FROM_GPU);

	if (!NT_SUCCESS(status))
		return status;
	status =
		vmm_refuse_rule(call.observe, STATUS_INVALID_PARAMETER, count ? "SYN-33" : "SYN-31",
				call.process->id, 0, "signal by %u contexts: %s", count,
				count ? "their array is missing" : "at least one is needed");
	return vmm_kmt_leave(&call, status, 0, args->ObjectCount, 0);
}

/* ---- signals and waits of the CPU ---- */

/* Enters the device for the slow path, which waits while the device is paused. */
static NTSTATUS enter(struct vmm_door_call *call, D3DKMT_HANDLE device, uint32_t door)
{
	uint64_t began = call->began;
	NTSTATUS status = vmm_kmt_enter_device(call, device, door, false);

	call->began = began;
	return status;
}

/* For one fence: each of the caller's two arrays has one entry, which is read once. */
static inline struct vmm_sync_one first_of(D3DKMT_HANDLE device, const void *handles,
					   const void *values)
{
	return (struct vmm_sync_one){.device = device,
				     .handle = *(const volatile uint32_t *)handles,
				     .value = *(const volatile uint64_t *)values};
}

__attribute__((noinline)) static NTSTATUS signal_list(
	struct vmm_door_call *call, const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU *args)
{
	struct vmm_sync_list list = {.count = args->ObjectCount, .flags = args->Flags.Value};
	struct vmm_door_arrays arrays;
	NTSTATUS status = vmm_door_copy_list(call, &arrays, args->ObjectHandleArray,
					     args->FenceValueArray, &list);

	if (NT_SUCCESS(status)) {
		struct vmm_sync_caller caller = {.process = call->process,
						 .device_handle = args->hDevice};

		status = vmm_sync_signal(&caller, &list);
		if (vmm_unlikely(status == STATUS_PENDING)) {
			status = enter(call, args->hDevice, VIDMM_DOOR_SIGNAL_FROM_CPU);
			caller.device = call->device;
			if (NT_SUCCESS(status))
				status = vmm_sync_signal(&caller, &list);
		}
	}
	vmm_door_arrays_done(&arrays);
	return vmm_kmt_leave(call, status, args->hDevice, args->ObjectCount, args->Flags.Value);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObjectFromCpu(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU *pData)
{
	struct vmm_door_call call;

	if (vmm_unlikely(!pData))
		return vmm_kmt_no_argument(VIDMM_DOOR_SIGNAL_FROM_CPU,
					   "D3DKMTSignalSynchronizationObjectFromCpu");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = *pData;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_SIGNAL_FROM_CPU);
	if (vmm_unlikely(!NT_SUCCESS(status)))
		return status;
	if (vmm_likely(args.ObjectCount == 1 && !args.Flags.Value && args.ObjectHandleArray &&
		       args.FenceValueArray)) {
		const struct vmm_sync_one one =
			first_of(args.hDevice, args.ObjectHandleArray, args.FenceValueArray);

		if (vmm_likely(vmm_sync_signal_one(call.process, &one) == VMM_OK))
			return vmm_door_leave_inline(&call, STATUS_SUCCESS, args.hDevice, 1, 0);
	}
	return signal_list(&call, &args);
}

static NTSTATUS wait_long(struct vmm_door_call *call, D3DKMT_HANDLE device,
			  const struct vmm_sync_list *list, HANDLE event)
{
	NTSTATUS status = enter(call, device, VIDMM_DOOR_WAIT_FROM_CPU);

	if (!NT_SUCCESS(status))
		return status;
	if (event)
		return vmm_sync_wait_event(call->device, list, (uint64_t)(uintptr_t)event);
	return vmm_sync_wait(&call->device, &call->guard, list);
}

__attribute__((noinline)) static NTSTATUS wait_for_list(
	struct vmm_door_call *call, const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU *args)
{
	struct vmm_sync_list list = {.count = args->ObjectCount, .flags = args->Flags.Value};
	struct vmm_door_arrays arrays;
	NTSTATUS status = vmm_door_copy_list(call, &arrays, args->ObjectHandleArray,
					     args->FenceValueArray, &list);

	if (NT_SUCCESS(status)) {
		const struct vmm_sync_caller caller = {.process = call->process,
						       .device_handle = args->hDevice};

		status = args->hAsyncEvent ? STATUS_PENDING : vmm_sync_poll(&caller, &list);
		if (status == STATUS_PENDING)
			status = wait_long(call, args->hDevice, &list, args->hAsyncEvent);
	}
	vmm_door_arrays_done(&arrays);
	return vmm_kmt_leave(call, status, args->hDevice, args->ObjectCount, args->Flags.Value);
}

KMT_API NTSTATUS APIENTRY
D3DKMTWaitForSynchronizationObjectFromCpu(const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU *pData)
{
	struct vmm_door_call call;

	if (vmm_unlikely(!pData))
		return vmm_kmt_no_argument(VIDMM_DOOR_WAIT_FROM_CPU,
					   "D3DKMTWaitForSynchronizationObjectFromCpu");
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = *pData;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_WAIT_FROM_CPU);
	if (vmm_unlikely(!NT_SUCCESS(status)))
		return status;
	if (vmm_likely(args.ObjectCount == 1 && !args.hAsyncEvent &&
		       !(args.Flags.Value & ~VMM_SYNC_WAIT_ANY) && args.ObjectHandleArray &&
		       args.FenceValueArray)) {
		const struct vmm_sync_one one =
			first_of(args.hDevice, args.ObjectHandleArray, args.FenceValueArray);

		if (vmm_sync_poll_one(call.process, &one) == VMM_OK)
			return vmm_door_leave_inline(&call, STATUS_SUCCESS, args.hDevice, 1,
						     args.Flags.Value);
	}
	return wait_for_list(&call, &args);
}
