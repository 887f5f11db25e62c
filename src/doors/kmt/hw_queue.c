/* SPDX-License-Identifier: MIT */
/* Hardware contexts and hardware queues of a D3DKMT client (SUB-27, SCH-10). */
#include "kmt_calls.h"

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
	struct vmm_door_call call = {0};
	void *queues = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSubmitSignalSyncObjectsToHwQueue",
				      "the argument pointer is NULL");
	D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE args = *pData;
	uint32_t count = args.BroadcastHwQueueCount;

	if (!count || count > VMM_HW_BROADCAST_MAX)
		return refuse_count(count);
	NTSTATUS status = vmm_copy_in(args.BroadcastHwQueueArray, count, VMM_HW_BROADCAST_MAX,
				      sizeof(D3DKMT_HANDLE), &queues);
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_hw_sync_request request = {.signal = true,
					      .flags = args.Flags.Value,
					      .queues = queues,
					      .queue_count = count,
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
