/* SPDX-License-Identifier: MIT */
/*
 * Steps of device callbacks for waits and signals in the queue of a context. The rules are those of
 * the D3DKMT functions.
 */
#include "umd_calls.h"

struct vmm_sched_sync vmm_umd_sync(struct vmm_umd_arrays *arrays, enum vmm_sync_form form,
				   bool signal, uint32_t count, uint64_t value)
{
	arrays->handles = arrays->values = NULL;
	arrays->local_values[0] = value;
	return (struct vmm_sched_sync){.request = {.signal = signal,
						   .form = form,
						   .count = count,
						   .scalar = true,
						   .handles = arrays->local_handles,
						   .values = arrays->local_values}};
}

void vmm_umd_arrays_done(const struct vmm_umd_arrays *arrays)
{
	vmm_umd_copy_done(arrays->handles, arrays->local_handles);
	vmm_umd_copy_done(arrays->values, arrays->local_values);
}

NTSTATUS vmm_umd_refuse_sync(const struct vmm_umd_call *call, const char *what)
{
	return vmm_refuse_rule(call->device->adapter->observe, STATUS_INVALID_PARAMETER, "SYN-23",
			       call->device->process->id, 0,
			       "%s: hContext is not a live context of device 0x%08x", what,
			       call->device->handle);
}

static NTSTATUS refuse_array(const struct vmm_umd_call *call, uint32_t count)
{
	return vmm_refuse_rule(call->device->adapter->observe, STATUS_INVALID_PARAMETER, "SYN-33",
			       call->device->process->id, 0,
			       "%u objects: an array is missing, or there are more than %u", count,
			       VMM_UMD_HANDLES_MAX);
}

NTSTATUS vmm_umd_copy_handles(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			      struct vmm_sched_sync *sync, const void *handles)
{
	NTSTATUS status = vmm_umd_copy_in(handles, sync->request.count, VMM_UMD_HANDLES_MAX,
					  sizeof(uint32_t), arrays->local_handles,
					  sizeof(arrays->local_handles), &arrays->handles);

	if (arrays->handles)
		sync->request.handles = arrays->handles;
	return status == STATUS_INVALID_PARAMETER ? refuse_array(call, sync->request.count)
						  : status;
}

/* The array is inside the structure. The core refuses a count beyond it. */
NTSTATUS vmm_umd_copy_fixed(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			    struct vmm_sched_sync *sync, const D3DKMT_HANDLE *handles)
{
	return sync->request.count <= VMM_ARRAY_LENGTH(arrays->local_handles)
		       ? vmm_umd_copy_handles(call, arrays, sync, handles)
		       : STATUS_SUCCESS;
}

/* SYN-28, SYN-29 */
NTSTATUS vmm_umd_copy_others(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			     struct vmm_sched_sync *sync, const HANDLE *contexts, uint32_t count)
{
	NTSTATUS status = vmm_sync_check_broadcast(call->device->process, count);

	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < count; i++)
		arrays->others[i] = ((const volatile HANDLE *)contexts)[i];
	sync->others = arrays->others;
	sync->other_count = count;
	return STATUS_SUCCESS;
}

/* The type of the first object decides whether the union is a value or an array. (SYN-32) */
NTSTATUS vmm_umd_read_union(const struct vmm_umd_call *call, struct vmm_umd_arrays *arrays,
			    struct vmm_sched_sync *sync, uint64_t value)
{
	arrays->local_values[0] = value;
	if (!vmm_sync_union_is_array(call->device->process, &sync->request))
		return STATUS_SUCCESS;
	NTSTATUS status =
		vmm_umd_copy_in((const void *)(uintptr_t)value, sync->request.count,
				VMM_UMD_HANDLES_MAX, sizeof(uint64_t), arrays->local_values,
				sizeof(arrays->local_values), &arrays->values);
	sync->request.values = arrays->values;
	sync->request.scalar = false;
	return status == STATUS_INVALID_PARAMETER ? refuse_array(call, sync->request.count)
						  : status;
}

static HRESULT refuse_contexts(HANDLE device)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_SIGNAL_FROM_GPU, false);

	if (NT_SUCCESS(status))
		status = vmm_refuse_rule(
			call.device->adapter->observe, STATUS_INVALID_PARAMETER, "SYN-31",
			call.device->process->id, 0,
			"signal by contexts: BroadcastContextCount is 0, or the array "
			"is NULL");
	return vmm_umd_leave(&call, status, 0, 0, 0);
}

/* All contexts are in the array. (SYN-31) */
HRESULT APIENTRY vmm_umd_signal_from_gpu_2(HANDLE device,
					   const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *data)
{
	struct vmm_umd_call call;
	struct vmm_umd_arrays arrays;
	struct vmm_context *context;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_SIGNAL_FROM_GPU);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = *data;
	if (!args.BroadcastContextCount || !args.BroadcastContextArray)
		return refuse_contexts(device);
	struct vmm_sched_sync sync =
		vmm_umd_sync(&arrays, VMM_SYNC_FORM_GPU_2, true, args.ObjectCount, 0);
	sync.request.flags = args.Flags.Value;
	sync.request.event = (uint64_t)(uintptr_t)args.CpuEventHandle;
	NTSTATUS status = vmm_umd_enter_context(
		&call, device, *(const volatile HANDLE *)args.BroadcastContextArray,
		VIDMM_DOOR_SIGNAL_FROM_GPU, &context);
	if (NT_SUCCESS(status) && !context)
		status = vmm_umd_refuse_sync(&call, "signal");
	if (NT_SUCCESS(status))
		status = vmm_umd_copy_others(&call, &arrays, &sync, args.BroadcastContextArray + 1,
					     (uint32_t)args.BroadcastContextCount - 1);
	if (NT_SUCCESS(status))
		status = vmm_umd_copy_handles(&call, &arrays, &sync, args.ObjectHandleArray);
	if (NT_SUCCESS(status) && !args.Flags.EnqueueCpuEvent)
		status = vmm_umd_read_union(&call, &arrays, &sync, args.FenceValue);
	if (NT_SUCCESS(status))
		status = vmm_sched_synchronize(context, &sync);
	vmm_umd_arrays_done(&arrays);
	return vmm_umd_leave(&call, status, 0, args.ObjectCount, args.Flags.Value);
}
