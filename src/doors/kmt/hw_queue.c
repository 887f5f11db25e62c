/* SPDX-License-Identifier: MIT */
/* Hardware contexts and hardware queues of a D3DKMT client (SUB-27, SCH-10). */
#include "doors/kmt/kmt_private.h"
#include "sched/hw_sched.h"

/*
 * Begins a call on the device of an object. If device_of returns NULL, it has reported a finding
 * about the handle.
 */
static NTSTATUS enter(struct vmm_kmt_call *call, uint32_t handle,
		      void *device_of(struct vmm_process *process, uint32_t handle), bool cleaning)
{
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_HW_QUEUE);

	return NT_SUCCESS(status)
		       ? vmm_kmt_enter_hazard(call, device_of(call->process, handle), cleaning)
		       : status;
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateHwContext(D3DKMT_CREATEHWCONTEXT *pData)
{
	struct vmm_kmt_call call;
	void *private_data = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateHwContext", "the argument pointer is NULL");
	D3DKMT_CREATEHWCONTEXT args = *pData;
	struct vmm_hw_context_request request = {.node = args.NodeOrdinal,
						 .affinity = args.EngineAffinity,
						 .flags = args.Flags.Value};
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_HW_QUEUE, false);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				     VMM_KMT_PRIVATE_BYTES_MAX, 1, &private_data);
	request.private_data = private_data;
	request.private_bytes = args.PrivateDriverDataSize;
	if (NT_SUCCESS(status))
		status = vmm_hw_create_context(call.device, &request);
	vmm_free(private_data);
	if (NT_SUCCESS(status))
		pData->hHwContext = request.handle;
	return vmm_kmt_leave(&call, status, request.handle, 1, request.flags);
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyHwContext(const D3DKMT_DESTROYHWCONTEXT *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyHwContext", "the argument pointer is NULL");
	uint32_t handle = pData->hHwContext;
	NTSTATUS status = enter(&call, handle, vmm_hw_device_of_context, true);
	if (NT_SUCCESS(status))
		status = vmm_hw_destroy_context(call.device, handle);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateHwQueue(D3DKMT_CREATEHWQUEUE *pData)
{
	struct vmm_kmt_call call;
	void *private_data = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateHwQueue", "the argument pointer is NULL");
	D3DKMT_CREATEHWQUEUE args = *pData;
	struct vmm_hw_queue_request request = {.context = args.hHwContext, .flags = args.Flags};
	NTSTATUS status = enter(&call, args.hHwContext, vmm_hw_device_of_context, false);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				     VMM_KMT_PRIVATE_BYTES_MAX, 1, &private_data);
	request.private_data = private_data;
	request.private_bytes = args.PrivateDriverDataSize;
	if (NT_SUCCESS(status))
		status = vmm_hw_create_queue(call.device, &request);
	vmm_free(private_data);
	if (NT_SUCCESS(status)) {
		pData->hHwQueue = request.handle;
		pData->hHwQueueProgressFence = request.fence;
		pData->HwQueueProgressFenceCPUVirtualAddress = request.fence_address;
		pData->HwQueueProgressFenceGPUVirtualAddress = 0; /* no GPU virtual addresses */
	}
	return vmm_kmt_leave(&call, status, request.handle, 1, args.Flags.Value);
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyHwQueue(const D3DKMT_DESTROYHWQUEUE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyHwQueue", "the argument pointer is NULL");
	uint32_t handle = pData->hHwQueue;
	NTSTATUS status = enter(&call, handle, vmm_hw_device_of_queue, true);
	if (NT_SUCCESS(status))
		status = vmm_hw_destroy_queue(call.device, handle);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTSubmitCommandToHwQueue(const D3DKMT_SUBMITCOMMANDTOHWQUEUE *pData)
{
	struct vmm_kmt_call call;
	void *private_data = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSubmitCommandToHwQueue",
				      "the argument pointer is NULL");
	D3DKMT_SUBMITCOMMANDTOHWQUEUE args = *pData;
	struct vmm_hw_command command = {.queue = args.hHwQueue,
					 .id = args.HwQueueProgressFenceId,
					 .address = args.CommandBuffer,
					 .bytes = args.CommandLength,
					 .private_bytes = args.PrivateDriverDataSize,
					 .primaries = args.NumPrimaries};
	NTSTATUS status = enter(&call, args.hHwQueue, vmm_hw_device_of_queue, false);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				     VMM_HW_PRIVATE_BYTES_MAX, 1, &private_data);
	command.private_data = private_data;
	if (NT_SUCCESS(status))
		status = vmm_hw_submit(call.device, &command);
	vmm_free(private_data);
	return vmm_kmt_leave(&call, status, args.hHwQueue, 1,
			     (uint32_t)args.HwQueueProgressFenceId);
}

struct copies {
	void *queues, *objects, *values;
};

static NTSTATUS copy_objects(const D3DKMT_HANDLE *objects, const UINT64 *values, uint32_t count,
			     struct copies *copies)
{
	NTSTATUS status =
		vmm_copy_in(objects, count, VMM_HW_OBJECTS_MAX, sizeof(*objects), &copies->objects);

	if (NT_SUCCESS(status))
		status = vmm_copy_in(values, count, VMM_HW_OBJECTS_MAX, sizeof(*values),
				     &copies->values);
	return status;
}

static void free_copies(const struct copies *copies)
{
	vmm_free(copies->queues);
	vmm_free(copies->objects);
	vmm_free(copies->values);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSubmitWaitForSyncObjectsToHwQueue(const D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE *pData)
{
	struct vmm_kmt_call call;
	struct copies copies = {0};

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSubmitWaitForSyncObjectsToHwQueue",
				      "the argument pointer is NULL");
	D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE args = *pData;
	struct vmm_hw_sync_request request = {
		.queues = &args.hHwQueue, .queue_count = 1, .count = args.ObjectCount};
	NTSTATUS status = enter(&call, args.hHwQueue, vmm_hw_device_of_queue, false);
	if (NT_SUCCESS(status) && args.ObjectCount <= VMM_HW_OBJECTS_MAX)
		status = copy_objects(args.ObjectHandleArray, args.FenceValueArray,
				      args.ObjectCount, &copies);
	request.objects = copies.objects;
	request.values = copies.values;
	if (NT_SUCCESS(status))
		status = vmm_hw_submit_sync(call.device, &request);
	free_copies(&copies);
	return vmm_kmt_leave(&call, status, args.hHwQueue, args.ObjectCount, 0);
}

/* Without a queue there is no device for the call. */
static NTSTATUS refuse_count(uint32_t queues)
{
	const struct vmm_process *process = vmm_kmt_process();

	if (!process)
		return STATUS_UNSUCCESSFUL;
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, "SYN-34",
			       process->id, 0,
			       "signal on hardware queues: %u queues, which must be 1 to %u",
			       queues, VMM_HW_BROADCAST_MAX);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSubmitSignalSyncObjectsToHwQueue(const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE *pData)
{
	struct vmm_kmt_call call = {0};
	struct copies copies = {0};

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSubmitSignalSyncObjectsToHwQueue",
				      "the argument pointer is NULL");
	D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = *pData;
	uint32_t queues = args.BroadcastHwQueueCount;

	if (!queues || queues > VMM_HW_BROADCAST_MAX)
		return refuse_count(queues);
	NTSTATUS status = vmm_copy_in(args.BroadcastHwQueueArray, queues, VMM_HW_BROADCAST_MAX,
				      sizeof(D3DKMT_HANDLE), &copies.queues);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_hw_sync_request request = {.signal = true,
					      .flags = args.Flags.Value,
					      .queues = copies.queues,
					      .queue_count = queues,
					      .count = args.ObjectCount};
	status = enter(&call, request.queues[0], vmm_hw_device_of_queue, false);
	if (NT_SUCCESS(status) && args.ObjectCount <= VMM_HW_OBJECTS_MAX)
		status = copy_objects(args.ObjectHandleArray, args.FenceValueArray,
				      args.ObjectCount, &copies);
	request.objects = copies.objects;
	request.values = copies.values;
	if (NT_SUCCESS(status))
		status = vmm_hw_submit_sync(call.device, &request);
	uint32_t first = request.queues[0];
	free_copies(&copies);
	return vmm_kmt_leave(&call, status, first, args.ObjectCount, args.Flags.Value);
}
