/* SPDX-License-Identifier: MIT */
/*
 * Device callbacks for waits and signals in the queue of a context. The rules are those of the
 * D3DKMT functions.
 */
#include "umd_calls.h"

#define LOCAL_ITEMS 32u
/* A call with its copies of the caller's arrays (MFN-34). */
struct gpu_call {
	struct vmm_umd_call call;
	struct vmm_context *context;
	struct vmm_sched_sync sync;
	uint32_t local_handles[LOCAL_ITEMS];
	uint64_t local_values[LOCAL_ITEMS];
	void *handles, *values; /* copies: in the local arrays, or allocated */
	const void *others[VMM_SYNC_BROADCAST_MAX];
};

static NTSTATUS enter(struct gpu_call *g, HANDLE device, HANDLE context, enum vmm_sync_form form,
		      bool signal, uint32_t count)
{
	g->handles = g->values = NULL;
	g->local_values[0] = 0;
	g->sync = (struct vmm_sched_sync){.request = {.signal = signal,
						      .form = form,
						      .count = count,
						      .scalar = true,
						      .handles = g->local_handles,
						      .values = g->local_values}};
	NTSTATUS status = vmm_umd_enter_context(
		&g->call, device, context,
		signal ? VIDMM_DOOR_SIGNAL_FROM_GPU : VIDMM_DOOR_WAIT_FROM_GPU, &g->context);
	if (!NT_SUCCESS(status) || g->context)
		return status;
	return vmm_refuse_rule(g->call.device->adapter->observe, STATUS_INVALID_PARAMETER, "SYN-23",
			       g->call.device->process->id, 0,
			       "%s: hContext is not a live context of device 0x%08x",
			       signal ? "signal" : "wait", g->call.device->handle);
}

static NTSTATUS refuse_array(const struct gpu_call *g)
{
	return vmm_refuse_rule(g->call.device->adapter->observe, STATUS_INVALID_PARAMETER, "SYN-33",
			       g->call.device->process->id, 0,
			       "%u objects: an array is missing, or there are more than %u",
			       g->sync.request.count, VMM_UMD_HANDLES_MAX);
}

static NTSTATUS copy_handles(struct gpu_call *g, const void *handles)
{
	NTSTATUS status = vmm_umd_copy_in(handles, g->sync.request.count, VMM_UMD_HANDLES_MAX,
					  sizeof(uint32_t), g->local_handles,
					  sizeof(g->local_handles), &g->handles);

	if (g->handles)
		g->sync.request.handles = g->handles;
	return status == STATUS_INVALID_PARAMETER ? refuse_array(g) : status;
}

/* The array is inside the structure. The core refuses a count beyond it. */
static NTSTATUS copy_fixed(struct gpu_call *g, const D3DKMT_HANDLE *handles)
{
	return g->sync.request.count <= LOCAL_ITEMS ? copy_handles(g, handles) : STATUS_SUCCESS;
}

static HRESULT finish(struct gpu_call *g, NTSTATUS status)
{
	if (NT_SUCCESS(status))
		status = vmm_sched_synchronize(g->context, &g->sync);
	vmm_umd_copy_done(g->handles, g->local_handles);
	vmm_umd_copy_done(g->values, g->local_values);
	return vmm_umd_leave(&g->call, status, 0, g->sync.request.count, g->sync.request.flags);
}

HRESULT APIENTRY vmm_umd_wait_first_form(HANDLE device,
					 const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_WAIT_FROM_GPU);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT args = *data;
	NTSTATUS status =
		enter(&g, device, args.hContext, VMM_SYNC_FORM_1, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	return finish(&g, status);
}

HRESULT APIENTRY vmm_umd_signal_first_form(HANDLE device,
					   const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_SIGNAL_FROM_GPU);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT args = *data;
	NTSTATUS status = enter(&g, device, args.hContext, VMM_SYNC_FORM_1, true, args.ObjectCount);
	g.sync.request.flags = args.Flags.Value;
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	return finish(&g, status);
}

/* SYN-28, SYN-29 */
static NTSTATUS copy_others(struct gpu_call *g, const HANDLE *contexts, uint32_t count)
{
	NTSTATUS status = vmm_sync_check_broadcast(g->call.device->process, count);

	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < count; i++)
		g->others[i] = ((const volatile HANDLE *)contexts)[i];
	g->sync.others = g->others;
	g->sync.other_count = count;
	return STATUS_SUCCESS;
}

HRESULT APIENTRY vmm_umd_wait_second_form(HANDLE device,
					  const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_WAIT_FROM_GPU);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECT2 args = *data;
	NTSTATUS status =
		enter(&g, device, args.hContext, VMM_SYNC_FORM_2, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	g.local_values[0] = args.FenceValue;
	return finish(&g, status);
}

HRESULT APIENTRY vmm_umd_signal_second_form(HANDLE device,
					    const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_SIGNAL_FROM_GPU);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECT2 args = *data;
	NTSTATUS status = enter(&g, device, args.hContext, VMM_SYNC_FORM_2, true, args.ObjectCount);
	g.sync.request.flags = args.Flags.Value;
	g.sync.request.event = (uint64_t)(uintptr_t)args.CpuEventHandle;
	if (NT_SUCCESS(status))
		status = copy_others(&g, args.BroadcastContext, args.BroadcastContextCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	g.local_values[0] = args.FenceValue;
	return finish(&g, status);
}

/* The type of the first object decides whether the union is a value or an array. (SYN-32) */
static NTSTATUS read_union(struct gpu_call *g, uint64_t value)
{
	g->local_values[0] = value;
	if (!vmm_sync_union_is_array(g->call.device->process, &g->sync.request))
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_umd_copy_in((const void *)(uintptr_t)value, g->sync.request.count,
					  VMM_UMD_HANDLES_MAX, sizeof(uint64_t), g->local_values,
					  sizeof(g->local_values), &g->values);
	g->sync.request.values = g->values;
	g->sync.request.scalar = false;
	return status == STATUS_INVALID_PARAMETER ? refuse_array(g) : status;
}

HRESULT APIENTRY vmm_umd_wait_from_gpu(HANDLE device,
				       const D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_WAIT_FROM_GPU);
	D3DDDICB_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = *data;
	NTSTATUS status =
		enter(&g, device, args.hContext, VMM_SYNC_FORM_GPU, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status))
		status = read_union(&g, args.FenceValue);
	return finish(&g, status);
}

HRESULT APIENTRY vmm_umd_signal_from_gpu(HANDLE device,
					 const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_SIGNAL_FROM_GPU);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args = *data;
	NTSTATUS status =
		enter(&g, device, args.hContext, VMM_SYNC_FORM_GPU, true, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status))
		status = read_union(&g, args.Reserved[0]);
	return finish(&g, status);
}

/* All contexts are in the array. (SYN-31) */
HRESULT APIENTRY vmm_umd_signal_from_gpu_2(HANDLE device,
					   const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *data)
{
	struct gpu_call g;

	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_SIGNAL_FROM_GPU);
	D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = *data;
	if (!args.BroadcastContextCount || !args.BroadcastContextArray) {
		struct vmm_umd_call call;
		NTSTATUS entered = vmm_umd_enter(&call, device, VIDMM_DOOR_SIGNAL_FROM_GPU, false);

		if (NT_SUCCESS(entered))
			vmm_finding(call.device->adapter->observe, "SYN-31",
				    call.device->process->id, 0,
				    "signal by contexts: BroadcastContextCount is 0, or the array "
				    "is NULL");
		return vmm_umd_leave(
			&call, NT_SUCCESS(entered) ? STATUS_INVALID_PARAMETER : entered, 0, 0, 0);
	}
	NTSTATUS status = enter(&g, device, *(const volatile HANDLE *)args.BroadcastContextArray,
				VMM_SYNC_FORM_GPU_2, true, args.ObjectCount);
	g.sync.request.flags = args.Flags.Value;
	g.sync.request.event = (uint64_t)(uintptr_t)args.CpuEventHandle;
	if (NT_SUCCESS(status))
		status = copy_others(&g, args.BroadcastContextArray + 1,
				     (uint32_t)args.BroadcastContextCount - 1);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status) && !args.Flags.EnqueueCpuEvent)
		status = read_union(&g, args.FenceValue);
	return finish(&g, status);
}
