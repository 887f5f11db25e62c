/* SPDX-License-Identifier: MIT */
/* Device callbacks for synchronization objects. The rules are those of the D3DKMT functions. */
#include "umd_calls.h"

#define LOCAL_ITEMS 32u
struct arrays {
	uint32_t local_handles[LOCAL_ITEMS];
	uint64_t local_values[LOCAL_ITEMS];
	void *handles, *values;
};

/* Copies the arrays (MFN-34). The caller ends with arrays_done, whatever is returned. */
static NTSTATUS copy_arrays(const struct vmm_umd_call *call, struct arrays *arrays,
			    const void *handles, const void *values, struct vmm_sync_list *list)
{
	NTSTATUS status = vmm_umd_copy_in(handles, list->count, VMM_UMD_HANDLES_MAX,
					  sizeof(uint32_t), arrays->local_handles,
					  sizeof(arrays->local_handles), &arrays->handles);

	arrays->values = NULL;
	if (NT_SUCCESS(status))
		status = vmm_umd_copy_in(values, list->count, VMM_UMD_HANDLES_MAX, sizeof(uint64_t),
					 arrays->local_values, sizeof(arrays->local_values),
					 &arrays->values);
	list->handles = arrays->handles;
	list->values = arrays->values;
	if (status == STATUS_INVALID_PARAMETER)
		vmm_finding(call->device->adapter->observe, "SYN-33", call->device->process->id, 0,
			    "%u objects: an array is missing, or there are more than %u",
			    list->count, VMM_UMD_HANDLES_MAX);
	return status;
}

static void arrays_done(const struct arrays *arrays)
{
	vmm_umd_copy_done(arrays->handles, arrays->local_handles);
	vmm_umd_copy_done(arrays->values, arrays->local_values);
}

HRESULT APIENTRY vmm_umd_signal_from_cpu(HANDLE device,
					 const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU *data)
{
	struct vmm_umd_call call;
	struct arrays arrays;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_SIGNAL_FROM_CPU, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMCPU args = *data;
	struct vmm_sync_list list = {.count = args.ObjectCount};
	const struct vmm_sync_caller caller = {.process = call.device->process,
					       .device = call.device};
	status = copy_arrays(&call, &arrays, args.ObjectHandleArray, args.FenceValueArray, &list);
	if (NT_SUCCESS(status))
		status = vmm_sync_signal(&caller, &list);
	arrays_done(&arrays);
	return vmm_umd_leave(&call, status, 0, args.ObjectCount, 0);
}

static NTSTATUS wait_for(struct vmm_umd_call *call, const struct vmm_sync_list *list, HANDLE event)
{
	const struct vmm_sync_caller caller = {.process = call->device->process,
					       .device = call->device};

	if (event)
		return vmm_sync_wait_event(call->device, list, (uint64_t)(uintptr_t)event);
	NTSTATUS status = vmm_sync_poll(&caller, list);
	return status == STATUS_PENDING ? vmm_sync_wait(&call->device, &call->guard, list) : status;
}

HRESULT APIENTRY vmm_umd_wait_from_cpu(HANDLE device,
				       const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU *data)
{
	struct vmm_umd_call call;
	struct arrays arrays;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_WAIT_FROM_CPU, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMCPU args = *data;
	struct vmm_sync_list list = {.count = args.ObjectCount, .flags = args.Flags.Value};
	status = copy_arrays(&call, &arrays, args.ObjectHandleArray, args.FenceValueArray, &list);
	if (NT_SUCCESS(status))
		status = wait_for(&call, &list, args.hAsyncEvent);
	arrays_done(&arrays);
	return vmm_umd_leave(&call, status, 0, args.ObjectCount, args.Flags.Value);
}
