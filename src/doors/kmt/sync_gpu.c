/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in the queue of a context (SYN-25). They return when they are queued. Errors
 * are found here, in sync (packet.c), and for further contexts in sched.
 */
#include "kmt_calls.h"

_Static_assert(D3DDDI_MAX_BROADCAST_CONTEXT == VMM_SYNC_BROADCAST_MAX, "as many as the DDI allows");

struct vmm_sched_sync vmm_kmt_sync(struct vmm_kmt_arrays *arrays, enum vmm_sync_form form,
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

void vmm_kmt_arrays_done(const struct vmm_kmt_arrays *arrays)
{
	if (vmm_likely(!arrays->handles && !arrays->values))
		return;
	vmm_free(arrays->handles);
	vmm_free(arrays->values);
}

NTSTATUS vmm_kmt_copy_handles(const struct vmm_kmt_call *call, struct vmm_kmt_arrays *arrays,
			      struct vmm_sched_sync *sync, const void *handles)
{
	uint32_t count = sync->request.count;

	if (!count)
		return STATUS_SUCCESS;
	if (!handles || count > VMM_KMT_HANDLES_MAX)
		return vmm_refuse_rule(call->process->world->observe, STATUS_INVALID_PARAMETER,
				       "SYN-33", call->process->id, 0,
				       "%u objects, whose array is missing or too long", count);
	if (vmm_likely(count <= VMM_ARRAY_LENGTH(arrays->local_handles))) {
		const volatile uint32_t *from = handles;

		for (uint32_t i = 0; i < count; i++)
			arrays->local_handles[i] = from[i];
		return STATUS_SUCCESS;
	}
	NTSTATUS status = vmm_copy_in(handles, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t),
				      &arrays->handles);
	sync->request.handles = arrays->handles;
	return status;
}

/* The array of the older calls is inside their structure. */
NTSTATUS vmm_kmt_copy_fixed(const struct vmm_kmt_call *call, struct vmm_kmt_arrays *arrays,
			    struct vmm_sched_sync *sync, const D3DKMT_HANDLE *handles)
{
	/* the core checks the count and refuses it */
	return sync->request.count <= VMM_ARRAY_LENGTH(arrays->local_handles)
		       ? vmm_kmt_copy_handles(call, arrays, sync, handles)
		       : STATUS_SUCCESS;
}

static NTSTATUS copy_values(const struct vmm_kmt_call *call, struct vmm_kmt_arrays *arrays,
			    struct vmm_sched_sync *sync, const void *values)
{
	uint32_t count = sync->request.count;

	sync->request.scalar = false;
	if (!values)
		return vmm_refuse_rule(call->process->world->observe, STATUS_INVALID_PARAMETER,
				       "SYN-33", call->process->id, 0,
				       "%u objects, whose array of values is missing", count);
	if (vmm_likely(count <= VMM_ARRAY_LENGTH(arrays->local_values))) {
		const volatile uint64_t *from = values;

		for (uint32_t i = 0; i < count; i++)
			arrays->local_values[i] = from[i];
		return STATUS_SUCCESS;
	}
	NTSTATUS status =
		vmm_copy_in(values, count, VMM_KMT_HANDLES_MAX, sizeof(uint64_t), &arrays->values);
	sync->request.values = arrays->values;
	return status;
}

/*
 * Reads the union of the calls of WDDM 2.0: the type of the first object decides whether it is a
 * value or an array. (SYN-32)
 */
NTSTATUS vmm_kmt_read_union(const struct vmm_kmt_call *call, struct vmm_kmt_arrays *arrays,
			    struct vmm_sched_sync *sync, uint64_t value)
{
	arrays->local_values[0] = value;
	return vmm_sync_union_is_array(call->process, &sync->request)
		       ? copy_values(call, arrays, sync, (const void *)(uintptr_t)value)
		       : STATUS_SUCCESS;
}

/* Looks up the further contexts of a broadcast. (SYN-28) */
NTSTATUS vmm_kmt_copy_others(const struct vmm_kmt_call *call, struct vmm_kmt_arrays *arrays,
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

static NTSTATUS refuse_contexts(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *args)
{
	const struct vmm_kmt_call call = {.process = vmm_kmt_process(),
					  .door = VIDMM_DOOR_SIGNAL_FROM_GPU};
	uint32_t count = (uint32_t)args->BroadcastContextCount;

	if (!call.process)
		return STATUS_UNSUCCESSFUL;
	NTSTATUS status = vmm_refuse_rule(
		call.process->world->observe, STATUS_INVALID_PARAMETER, count ? "SYN-33" : "SYN-31",
		call.process->id, 0, "signal by %u contexts: %s", count,
		count ? "their array is missing" : "at least one is needed");
	return vmm_kmt_leave(&call, status, 0, args->ObjectCount, 0);
}

/* All contexts are in the array, at least one; the call is on the first. (SYN-31) */
KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObjectFromGpu2(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *pData)
{
	struct vmm_kmt_call call;
	struct vmm_kmt_arrays arrays;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSignalSynchronizationObjectFromGpu2",
				      "the argument pointer is NULL");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = *pData;
	const volatile D3DKMT_HANDLE *contexts = args.BroadcastContextArray;
	if (!args.BroadcastContextCount || !contexts)
		return refuse_contexts(&args);
	D3DKMT_HANDLE first = contexts[0];
	struct vmm_sched_sync sync =
		vmm_kmt_sync(&arrays, VMM_SYNC_FORM_GPU_2, true, args.ObjectCount, 0);
	sync.request.flags = args.Flags.Value;
	sync.request.event = (uint64_t)(uintptr_t)args.CpuEventHandle;
	NTSTATUS status = vmm_kmt_enter_context(&call, first, VIDMM_DOOR_SIGNAL_FROM_GPU, &context);
	if (NT_SUCCESS(status))
		status = vmm_kmt_copy_others(&call, &arrays, &sync, args.BroadcastContextArray + 1,
					     (uint32_t)args.BroadcastContextCount - 1);
	if (NT_SUCCESS(status))
		status = vmm_kmt_copy_handles(&call, &arrays, &sync, args.ObjectHandleArray);
	if (NT_SUCCESS(status) && !args.Flags.EnqueueCpuEvent)
		status = vmm_kmt_read_union(&call, &arrays, &sync, args.FenceValue);
	if (NT_SUCCESS(status))
		status = vmm_sched_synchronize(context, &sync);
	vmm_kmt_arrays_done(&arrays);
	return vmm_kmt_leave(&call, status, first, args.ObjectCount, args.Flags.Value);
}
