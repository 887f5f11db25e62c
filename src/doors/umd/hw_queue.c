/* SPDX-License-Identifier: MIT */
/*
 * Hardware contexts and hardware queues of a user-mode driver (SUB-27, SCH-10). Their HANDLEs have
 * the numbers of D3DKMT handles.
 */
#include "doors/umd/umd_private.h"
#include "sched/hw_sched.h"

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_2_1

#define PRIVATE_LOCAL 256u

/* The number of a HANDLE; 0, which names no object, if it has more than 32 bits. */
static uint32_t number(HANDLE handle)
{
	return (uintptr_t)handle > UINT32_MAX ? 0 : (uint32_t)(uintptr_t)handle;
}

static HRESULT APIENTRY create_hw_context(HANDLE device, D3DDDICB_CREATEHWCONTEXT *data)
{
	struct vmm_umd_call call;
	char local[PRIVATE_LOCAL];
	void *private_data = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_CREATEHWCONTEXT args = *data;
	status = vmm_umd_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				 VMM_UMD_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &private_data);
	struct vmm_hw_context_request request = {.node = args.NodeOrdinal,
						 .affinity = args.EngineAffinity,
						 .flags = args.Flags.Value,
						 .private_data = private_data,
						 .private_bytes = args.PrivateDriverDataSize};
	if (NT_SUCCESS(status))
		status = vmm_hw_create_context(call.device, &request);
	vmm_umd_copy_done(private_data, local);
	if (NT_SUCCESS(status))
		data->hHwContext = (HANDLE)(uintptr_t)request.handle;
	return vmm_umd_leave(&call, status, request.handle, 1, request.flags);
}

static HRESULT APIENTRY destroy_hw_context(HANDLE device, const D3DDDICB_DESTROYHWCONTEXT *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, true);
	uint32_t handle = data ? number(data->hHwContext) : 0;

	if (NT_SUCCESS(status))
		status = vmm_hw_destroy_context(call.device, handle);
	return vmm_umd_leave(&call, status, handle, 1, 0);
}

static HRESULT APIENTRY create_hw_queue(HANDLE device, D3DDDICB_CREATEHWQUEUE *data)
{
	struct vmm_umd_call call;
	char local[PRIVATE_LOCAL];
	void *private_data = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_CREATEHWQUEUE args = *data;
	status = vmm_umd_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				 VMM_UMD_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &private_data);
	struct vmm_hw_queue_request request = {.context = number(args.hHwContext),
					       .flags = args.Flags,
					       .private_data = private_data,
					       .private_bytes = args.PrivateDriverDataSize};
	if (NT_SUCCESS(status))
		status = vmm_hw_create_queue(call.device, &request);
	vmm_umd_copy_done(private_data, local);
	if (NT_SUCCESS(status)) {
		data->hHwQueue = (HANDLE)(uintptr_t)request.handle;
		data->hHwQueueProgressFence = request.fence;
		data->HwQueueProgressFenceCPUVirtualAddress = request.fence_address;
		data->HwQueueProgressFenceGPUVirtualAddress = 0; /* no GPU virtual addresses */
	}
	return vmm_umd_leave(&call, status, request.handle, 1, args.Flags.Value);
}

static HRESULT APIENTRY destroy_hw_queue(HANDLE device, const D3DDDICB_DESTROYHWQUEUE *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, true);
	uint32_t handle = data ? number(data->hHwQueue) : 0;

	if (NT_SUCCESS(status))
		status = vmm_hw_destroy_queue(call.device, handle);
	return vmm_umd_leave(&call, status, handle, 1, 0);
}

static HRESULT APIENTRY submit_command_to_hw_queue(HANDLE device,
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
			    number(args.hHwQueue),
			    "pfnSubmitCommandToHwQueueCb: flags 0x%x are reserved", args.Flags);
		return vmm_umd_leave(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	}
	status = vmm_umd_copy_in(args.pPrivateDriverData, args.PrivateDriverDataSize,
				 VMM_HW_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &private_data);
	struct vmm_hw_command command = {.queue = number(args.hHwQueue),
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

static HRESULT APIENTRY submit_wait(HANDLE device,
				    const D3DDDICB_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_HW_QUEUE, false);
	uint32_t queue = data ? number(data->hHwQueue) : 0;
	struct vmm_hw_sync_request request = {
		.queues = &queue, .queue_count = 1, .count = data ? data->ObjectCount : 0};

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (NT_SUCCESS(status))
		status = submit_sync(&call, &request, data->ObjectHandleArray,
				     data->FenceValueArray);
	return vmm_umd_leave(&call, status, queue, request.count, 0);
}

static HRESULT APIENTRY submit_signal(HANDLE device,
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
			queues[i] = number(data->BroadcastHwQueueArray[i]);
	}
	status = submit_sync(&call, &request, data->ObjectHandleArray, data->FenceValueArray);
	return vmm_umd_leave(&call, status, queues[0], request.count, request.flags);
}

void vmm_umd_fill_hw_queue(D3DDDI_DEVICECALLBACKS *table)
{
	table->pfnSubmitWaitForSyncObjectsToHwQueueCb = submit_wait;
	table->pfnSubmitSignalSyncObjectsToHwQueueCb = submit_signal;
	table->pfnCreateHwContextCb = create_hw_context;
	table->pfnDestroyHwContextCb = destroy_hw_context;
	table->pfnCreateHwQueueCb = create_hw_queue;
	table->pfnDestroyHwQueueCb = destroy_hw_queue;
	table->pfnSubmitCommandToHwQueueCb = submit_command_to_hw_queue;
}

#else

void vmm_umd_fill_hw_queue(D3DDDI_DEVICECALLBACKS *table)
{
	(void)table;
}

#endif
