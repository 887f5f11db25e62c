/* SPDX-License-Identifier: MIT */
/*
 * Hardware contexts and hardware queues of a user-mode driver (SUB-27, SCH-10). Their HANDLEs have
 * the numbers of D3DKMT handles.
 */
#include "umd_calls.h"
#include "sched/hw_sched.h"

#define PRIVATE_LOCAL 256u

HRESULT APIENTRY vmm_umd_submit_command_to_hw_queue(HANDLE device,
						    const D3DDDICB_SUBMITCOMMANDTOHWQUEUE *data)
{
	struct vmm_umd_call call;
	char local[PRIVATE_LOCAL];
	void *private_data = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_SUBMITCOMMANDTOHWQUEUE args = *data;
	if (args.Flags) {
		vmm_finding(call.device->adapter->observe, "Q-60", call.device->process->id,
			    vmm_umd_number(args.hHwQueue),
			    "pfnSubmitCommandToHwQueueCb: flags 0x%x are reserved", args.Flags);
		return vmm_umd_leave(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	}
	status = vmm_umd_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				 VMM_HW_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &private_data);
	struct vmm_hw_command command = {.queue = vmm_umd_number(args.hHwQueue),
					 .id = args.HwQueueProgressFenceId,
					 .address = args.Commands,
					 .bytes = args.CommandLength,
					 .private_data = private_data,
					 .private_bytes = args.PrivateDriverDataSize,
					 .primaries = args.NumPrimaries};
	if (NT_SUCCESS(status))
		status = vmm_hw_submit(call.device, &command);
	vmm_umd_copy_done(private_data, local);
	return vmm_umd_leave(&call, status, command.queue, 1, (uint32_t)command.id);
}

/* Counts beyond the limits of SYN-34 are not read here; the core reports them. */
static NTSTATUS submit_sync(struct vmm_umd_call *call, struct vmm_hw_sync_request *request,
			    const D3DKMT_HANDLE *objects, const UINT64 *values)
{
	uint32_t handles[VMM_HW_OBJECTS_MAX];
	uint64_t numbers[VMM_HW_OBJECTS_MAX];

	if (request->count <= VMM_HW_OBJECTS_MAX) {
		if (request->count && (!objects || !values))
			return STATUS_INVALID_PARAMETER;
		for (uint32_t i = 0; i < request->count; i++) {
			handles[i] = objects[i];
			numbers[i] = values[i];
		}
	}
	request->objects = handles;
	request->values = numbers;
	return vmm_hw_submit_sync(call->device, request);
}

NTSTATUS vmm_umd_submit_wait(struct vmm_umd_call *call,
			     const D3DDDICB_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE *args,
			     struct vmm_hw_sync_request *request)
{
	uint32_t queue = vmm_umd_number(args->hHwQueue);

	request->queues = &queue;
	return submit_sync(call, request, args->ObjectHandleArray, args->FenceValueArray);
}

HRESULT APIENTRY vmm_umd_submit_signal(HANDLE device,
				       const D3DDDICB_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE *data)
{
	struct vmm_umd_call call;
	uint32_t queues[VMM_HW_BROADCAST_MAX] = {0};
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	struct vmm_hw_sync_request request = {.signal = true,
					      .flags = data->Flags.Value,
					      .queues = queues,
					      .queue_count = data->BroadcastHwQueueCount,
					      .count = data->ObjectCount};
	if (request.queue_count <= VMM_HW_BROADCAST_MAX) {
		if (request.queue_count && !data->BroadcastHwQueueArray)
			return vmm_umd_leave(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
		for (uint32_t i = 0; i < request.queue_count; i++)
			queues[i] = vmm_umd_number(data->BroadcastHwQueueArray[i]);
	}
	status = submit_sync(&call, &request, data->ObjectHandleArray, data->FenceValueArray);
	return vmm_umd_leave(&call, status, queues[0], request.count, request.flags);
}
