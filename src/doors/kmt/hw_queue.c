/* SPDX-License-Identifier: MIT */
/* Hardware contexts and hardware queues of a D3DKMT client (SUB-27, SCH-10). */
#include "kmt_calls.h"

/* Copies the array of queues. Without a queue there is no device for the call. */
static NTSTATUS copy_queues(struct vmm_door_call *call,
			    const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE *args, void **queues)
{
	uint32_t count = args->BroadcastHwQueueCount;
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_HW_QUEUE);

	if (!NT_SUCCESS(status))
		return status;
	if (!count || count > VMM_HW_BROADCAST_MAX || !args->BroadcastHwQueueArray)
		return vmm_refuse_rule(
			call->observe, STATUS_INVALID_PARAMETER, "SYN-34", call->process->id, 0,
			"signal on hardware queues: %u queues, which must be 1 to %u%s", count,
			VMM_HW_BROADCAST_MAX,
			args->BroadcastHwQueueArray ? "" : ", and BroadcastHwQueueArray is NULL");
	return vmm_copy_in(args->BroadcastHwQueueArray, count, VMM_HW_BROADCAST_MAX,
			   sizeof(D3DKMT_HANDLE), queues);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSubmitSignalSyncObjectsToHwQueue(const D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE *pData)
{
	struct vmm_door_call call = {0};
	void *queues = NULL;

	if (!pData)
		return vmm_kmt_no_argument(VIDMM_DOOR_HW_QUEUE,
					   "D3DKMTSubmitSignalSyncObjectsToHwQueue");
	D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = *pData;
	NTSTATUS status = copy_queues(&call, &args, &queues);

	if (!NT_SUCCESS(status))
		return vmm_kmt_leave(&call, status, 0, 0, 0);
	struct vmm_hw_sync_request request = {.signal = true,
					      .flags = args.Flags.Value,
					      .queues = queues,
					      .queue_count = args.BroadcastHwQueueCount,
					      .count = args.ObjectCount};
	uint32_t first = request.queues[0];
	status = vmm_kmt_enter_object(&call, first, VIDMM_DOOR_HW_QUEUE, vmm_hw_device_of_queue,
				      false);
	if (NT_SUCCESS(status))
		status = vmm_door_submit_sync(&call, args.ObjectHandleArray, args.FenceValueArray,
					      &request);
	vmm_free(queues);
	return vmm_kmt_leave(&call, status, first, args.ObjectCount, args.Flags.Value);
}
