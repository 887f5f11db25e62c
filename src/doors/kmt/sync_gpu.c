/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals in the queue of a context (SYN-25). They return when they are queued. Errors
 * are found here, in sync (packet.c), and for further contexts in sched.
 */
#include "doors/kmt/kmt_private.h"

_Static_assert(D3DDDI_MAX_BROADCAST_CONTEXT == VMM_SYNC_BROADCAST_MAX, "as many as the DDI allows");

#define LOCAL_ITEMS 32u
/* A call with its copies of the caller's arrays (MFN-34); longer arrays are allocated. */
struct gpu_call {
	struct vmm_kmt_call call;
	struct vmm_context *context;
	struct vmm_sched_sync sync;
	uint32_t local_handles[LOCAL_ITEMS];
	uint64_t local_values[LOCAL_ITEMS];
	void *handles, *values; /* allocated */
	const void *others[VMM_SYNC_BROADCAST_MAX];
};

/* ---- the caller's arrays ---- */

static NTSTATUS copy_handles(struct gpu_call *g, const void *handles)
{
	uint32_t count = g->sync.request.count;

	g->sync.request.handles = g->local_handles;
	if (!count)
		return STATUS_SUCCESS;
	if (!handles || count > VMM_KMT_HANDLES_MAX)
		return vmm_refuse_rule(g->call.process->world->observe, STATUS_INVALID_PARAMETER,
				       "SYN-33", g->call.process->id, 0,
				       "%u objects, whose array is missing or too long", count);
	if (vmm_likely(count <= LOCAL_ITEMS)) {
		const volatile uint32_t *from = handles;

		for (uint32_t i = 0; i < count; i++)
			g->local_handles[i] = from[i];
		return STATUS_SUCCESS;
	}
	NTSTATUS status =
		vmm_copy_in(handles, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t), &g->handles);
	g->sync.request.handles = g->handles;
	return status;
}

static NTSTATUS copy_values(struct gpu_call *g, const void *values)
{
	uint32_t count = g->sync.request.count;

	g->sync.request.scalar = false;
	if (!values)
		return vmm_refuse_rule(g->call.process->world->observe, STATUS_INVALID_PARAMETER,
				       "SYN-33", g->call.process->id, 0,
				       "%u objects, whose array of values is missing", count);
	if (vmm_likely(count <= LOCAL_ITEMS)) {
		const volatile uint64_t *from = values;

		for (uint32_t i = 0; i < count; i++)
			g->local_values[i] = from[i];
		return STATUS_SUCCESS;
	}
	NTSTATUS status =
		vmm_copy_in(values, count, VMM_KMT_HANDLES_MAX, sizeof(uint64_t), &g->values);
	g->sync.request.values = g->values;
	return status;
}

/* Sets one value for all objects, instead of an array of values. */
static void set_scalar(struct gpu_call *g, uint64_t value)
{
	g->local_values[0] = value;
	g->sync.request.values = g->local_values;
	g->sync.request.scalar = true;
}

/*
 * Reads the union of the calls of WDDM 2.0: the type of the first object decides whether it is a
 * value or an array. (SYN-32)
 */
static NTSTATUS read_union(struct gpu_call *g, uint64_t value)
{
	set_scalar(g, value);
	return vmm_sync_union_is_array(g->call.process, &g->sync.request)
		       ? copy_values(g, (const void *)(uintptr_t)value)
		       : STATUS_SUCCESS;
}

/* Looks up the further contexts of a broadcast. (SYN-28) */
static NTSTATUS find_others(struct gpu_call *g, const D3DKMT_HANDLE *handles, uint32_t count)
{
	NTSTATUS status = vmm_sync_check_broadcast(g->call.process, count);
	void *device;

	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		g->others[i] = vmm_kmt_live_context(
			g->call.process, ((const volatile D3DKMT_HANDLE *)handles)[i], &device);
		if (!g->others[i])
			status = STATUS_INVALID_PARAMETER;
	}
	g->sync.others = g->others;
	g->sync.other_count = count;
	return status;
}

/* ---- the calls ---- */

static NTSTATUS enter(struct gpu_call *g, D3DKMT_HANDLE context, enum vmm_sync_form form,
		      bool signal, uint32_t count)
{
	g->handles = g->values = NULL;
	g->sync = (struct vmm_sched_sync){
		.request = {.signal = signal, .form = form, .count = count}};
	g->sync.request.values = g->local_values;
	g->sync.request.handles = g->local_handles;
	return vmm_kmt_enter_context(&g->call, context,
				     signal ? VIDMM_DOOR_SIGNAL_FROM_GPU : VIDMM_DOOR_WAIT_FROM_GPU,
				     &g->context);
}

static NTSTATUS finish(struct gpu_call *g, NTSTATUS status, D3DKMT_HANDLE context)
{
	if (NT_SUCCESS(status))
		status = vmm_sched_synchronize(g->context, &g->sync);
	if (vmm_unlikely(g->handles || g->values)) {
		vmm_free(g->handles);
		vmm_free(g->values);
	}
	return vmm_kmt_leave(&g->call, status, context, g->sync.request.count,
			     g->sync.request.flags);
}

/* The array of the older calls is inside their structure. */
static NTSTATUS copy_fixed(struct gpu_call *g, const D3DKMT_HANDLE *handles)
{
	if (g->sync.request.count <= LOCAL_ITEMS)
		return copy_handles(g, handles);
	g->sync.request.handles = g->local_handles;
	return STATUS_SUCCESS; /* the core checks the count and refuses it */
}

KMT_API NTSTATUS APIENTRY
D3DKMTWaitForSynchronizationObject(const D3DKMT_WAITFORSYNCHRONIZATIONOBJECT *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTWaitForSynchronizationObject",
				      "the argument pointer is NULL");
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_1, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	set_scalar(&g, 0);
	return finish(&g, status, args.hContext);
}

KMT_API NTSTATUS APIENTRY
D3DKMTWaitForSynchronizationObject2(const D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTWaitForSynchronizationObject2",
				      "the argument pointer is NULL");
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_2, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	set_scalar(&g, args.Fence.FenceValue);
	return finish(&g, status, args.hContext);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObject(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECT *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSignalSynchronizationObject",
				      "the argument pointer is NULL");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_1, true, args.ObjectCount);
	g.sync.request.flags = args.Flags.Value;
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	set_scalar(&g, 0);
	return finish(&g, status, args.hContext);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObject2(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSignalSynchronizationObject2",
				      "the argument pointer is NULL");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_2, true, args.ObjectCount);
	g.sync.request.flags = args.Flags.Value;
	g.sync.request.event = (uint64_t)(uintptr_t)args.CpuEventHandle;
	if (NT_SUCCESS(status))
		status = find_others(&g, args.BroadcastContext, args.BroadcastContextCount);
	if (NT_SUCCESS(status))
		status = copy_fixed(&g, args.ObjectHandleArray);
	set_scalar(&g, args.Fence.FenceValue);
	return finish(&g, status, args.hContext);
}

KMT_API NTSTATUS APIENTRY
D3DKMTWaitForSynchronizationObjectFromGpu(const D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTWaitForSynchronizationObjectFromGpu",
				      "the argument pointer is NULL");
	D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_GPU, false, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status))
		status = read_union(&g, args.FenceValue);
	return finish(&g, status, args.hContext);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObjectFromGpu(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU *pData)
{
	struct gpu_call g;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSignalSynchronizationObjectFromGpu",
				      "the argument pointer is NULL");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU args = *pData;
	NTSTATUS status = enter(&g, args.hContext, VMM_SYNC_FORM_GPU, true, args.ObjectCount);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status))
		status = read_union(&g, args.Reserved[0]);
	return finish(&g, status, args.hContext);
}

/*
 * Enters the first context. All contexts are in the array, at least one; the call is on the first.
 * (SYN-31)
 */
static NTSTATUS enter_first(struct gpu_call *g,
			    const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *args,
			    D3DKMT_HANDLE *first)
{
	const volatile D3DKMT_HANDLE *contexts = args->BroadcastContextArray;
	bool any = args->BroadcastContextCount && contexts;

	*first = any ? contexts[0] : 0;
	if (any) {
		NTSTATUS status = enter(g, *first, VMM_SYNC_FORM_GPU_2, true, args->ObjectCount);

		g->sync.request.flags = args->Flags.Value;
		g->sync.request.event = (uint64_t)(uintptr_t)args->CpuEventHandle;
		return status;
	}
	g->handles = g->values = NULL;
	g->sync = (struct vmm_sched_sync){.request.count = args->ObjectCount};
	g->call = (struct vmm_kmt_call){.process = vmm_kmt_process(),
					.door = VIDMM_DOOR_SIGNAL_FROM_GPU};
	if (!g->call.process)
		return STATUS_UNSUCCESSFUL;
	return vmm_refuse_rule(
		g->call.process->world->observe, STATUS_INVALID_PARAMETER,
		args->BroadcastContextCount ? "SYN-33" : "SYN-31", g->call.process->id, 0,
		"signal by %u contexts: %s", (uint32_t)args->BroadcastContextCount,
		args->BroadcastContextCount ? "their array is missing" : "at least one is needed");
}

KMT_API NTSTATUS APIENTRY
D3DKMTSignalSynchronizationObjectFromGpu2(const D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 *pData)
{
	struct gpu_call g;
	D3DKMT_HANDLE first;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSignalSynchronizationObjectFromGpu2",
				      "the argument pointer is NULL");
	D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 args = *pData;
	NTSTATUS status = enter_first(&g, &args, &first);
	if (NT_SUCCESS(status))
		status = find_others(&g, args.BroadcastContextArray + 1,
				     (uint32_t)args.BroadcastContextCount - 1);
	if (NT_SUCCESS(status))
		status = copy_handles(&g, args.ObjectHandleArray);
	if (NT_SUCCESS(status))
		status = args.Flags.EnqueueCpuEvent ? STATUS_SUCCESS
						    : read_union(&g, args.FenceValue);
	return finish(&g, status, first);
}
