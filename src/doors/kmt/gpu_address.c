/* SPDX-License-Identifier: MIT */
/* GPU virtual addresses for a D3DKMT client (VA). The rules are those of the device callbacks. */
#include "doors/kmt/kmt_private.h"

#include <string.h>

KMT_API NTSTATUS APIENTRY D3DKMTMapGpuVirtualAddress(D3DDDI_MAPGPUVIRTUALADDRESS *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTMapGpuVirtualAddress", "the argument pointer is NULL");
	D3DDDI_MAPGPUVIRTUALADDRESS args = *pData;
	struct vmm_va_map_request request = vmm_va_map_request_of(&args);
	NTSTATUS status = vmm_kmt_enter_queue(&call, args.hPagingQueue,
					      VIDMM_DOOR_GPU_VIRTUAL_ADDRESS, false);
	if (NT_SUCCESS(status))
		status = vmm_va_map(call.device, &request);
	if (NT_SUCCESS(status)) {
		pData->VirtualAddress = request.address;
		pData->PagingFenceValue = request.fence_value;
	}
	return vmm_kmt_leave(&call, status, args.hAllocation, 1, args.Protection.Value);
}

/* The first member names a paging queue or, as in the form without paging queues, the adapter. */
static bool is_queue(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	bool queue = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE) != NULL;
	vmm_process_unlock(process);
	return queue;
}

static NTSTATUS reserve_on_adapter(const struct vmm_kmt_call *call, D3DKMT_HANDLE handle,
				   struct vmm_va_reserve_request *request)
{
	struct vmm_adapter *adapter = vmm_kmt_adapter(call->process, handle);
	NTSTATUS status = adapter ? vmm_va_reserve_on(adapter, call->process, request)
				  : STATUS_INVALID_PARAMETER;

	vmm_adapter_put(adapter);
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTReserveGpuVirtualAddress(D3DDDI_RESERVEGPUVIRTUALADDRESS *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTReserveGpuVirtualAddress",
				      "the argument pointer is NULL");
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = *pData;
	struct vmm_va_reserve_request request = vmm_va_reserve_request_of(&args);
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_GPU_VIRTUAL_ADDRESS);
	if (NT_SUCCESS(status) && !is_queue(call.process, args.hPagingQueue)) {
		status = reserve_on_adapter(&call, args.hAdapter, &request);
	} else if (NT_SUCCESS(status)) {
		status = vmm_kmt_enter_hazard(
			&call, vmm_paging_queue_device(call.process, args.hPagingQueue), false);
		if (NT_SUCCESS(status))
			status = vmm_va_reserve(call.device, &request);
	}
	if (NT_SUCCESS(status)) {
		pData->VirtualAddress = request.address;
		pData->PagingFenceValue = request.fence_value;
	}
	return vmm_kmt_leave(&call, status, args.hPagingQueue, args.Size, request.type);
}

KMT_API NTSTATUS APIENTRY D3DKMTFreeGpuVirtualAddress(const D3DKMT_FREEGPUVIRTUALADDRESS *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTFreeGpuVirtualAddress",
				      "the argument pointer is NULL");
	D3DKMT_FREEGPUVIRTUALADDRESS args = *pData;
	struct vmm_adapter *adapter = NULL;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_GPU_VIRTUAL_ADDRESS);
	if (NT_SUCCESS(status)) {
		adapter = vmm_kmt_adapter(call.process, args.hAdapter);
		status = adapter ? vmm_va_free(adapter, call.process, args.BaseAddress, args.Size)
				 : STATUS_INVALID_PARAMETER;
	}
	vmm_adapter_put(adapter);
	return vmm_kmt_leave(&call, status, args.hAdapter, args.Size, args.BaseAddress);
}

KMT_API NTSTATUS APIENTRY D3DKMTUpdateGpuVirtualAddress(const D3DKMT_UPDATEGPUVIRTUALADDRESS *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTUpdateGpuVirtualAddress",
				      "the argument pointer is NULL");
	D3DKMT_UPDATEGPUVIRTUALADDRESS args = *pData;
	struct vmm_address_request request = {.count = args.NumOperations,
					      .flags = args.Flags.Value,
					      .fence = args.hFenceObject,
					      .value = args.FenceValue};
	NTSTATUS status = vmm_kmt_enter_context(&call, args.hContext,
						VIDMM_DOOR_GPU_VIRTUAL_ADDRESS, &context);
	if (NT_SUCCESS(status) && call.device->handle != args.hDevice)
		status = vmm_refuse_rule(
			call.device->adapter->observe, STATUS_INVALID_PARAMETER, "VA-10",
			call.process->id, args.hContext,
			"update GPU virtual address: the context belongs to device 0x%08x, "
			"not to 0x%08x",
			call.device->handle, args.hDevice);
	if (NT_SUCCESS(status))
		status = vmm_va_operations_copy(args.Operations, args.NumOperations,
						&request.operations);
	if (NT_SUCCESS(status))
		status = vmm_sched_update_addresses(context, &request);
	return vmm_kmt_leave(&call, status, args.hFenceObject, args.NumOperations, args.FenceValue);
}

/* ---- contexts whose commands have GPU virtual addresses ---- */

KMT_API NTSTATUS APIENTRY D3DKMTCreateContextVirtual(D3DKMT_CREATECONTEXTVIRTUAL *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateContextVirtual", "the argument pointer is NULL");
	D3DKMT_CREATECONTEXTVIRTUAL args = *pData;
	struct vmm_context_request request = {.node = args.NodeOrdinal,
					      .affinity = args.EngineAffinity,
					      .flags = args.Flags.Value,
					      .by_address = true,
					      .private_data = args.pPrivateDriverData,
					      .private_bytes = args.PrivateDriverDataSize};
	NTSTATUS status =
		vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_CREATE_CONTEXT, false);
	if (NT_SUCCESS(status))
		status = vmm_sched_create_context(call.device, &request);
	if (NT_SUCCESS(status))
		pData->hContext = request.number;
	return vmm_kmt_leave(&call, status, NT_SUCCESS(status) ? request.number : 0,
			     args.NodeOrdinal, args.Flags.Value);
}

static NTSTATUS submit(struct vmm_context *context, const D3DKMT_SUBMITCOMMAND *args)
{
	struct vmm_command_request request = {.commands = args->Commands,
					      .length = args->CommandLength,
					      .private_bytes = args->PrivateDriverDataSize,
					      .primary_count = args->NumPrimaries};
	void *data = NULL;

	memcpy(&request.flags, &args->Flags, sizeof(request.flags));
	for (uint32_t i = 0; i < VMM_PRIMARIES_MAX; i++)
		request.primaries[i] = args->WrittenPrimaries[i];
	NTSTATUS status = vmm_copy_in(args->pPrivateDriverData, args->PrivateDriverDataSize,
				      VMM_KMT_PRIVATE_BYTES_MAX, 1, &data);
	request.private_data = data;
	if (NT_SUCCESS(status))
		status = vmm_sched_submit_command(context, &request);
	vmm_free(data);
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTSubmitCommand(const D3DKMT_SUBMITCOMMAND *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSubmitCommand", "the argument pointer is NULL");
	const D3DKMT_SUBMITCOMMAND args = *pData;
	NTSTATUS status =
		vmm_kmt_enter_context(&call, args.BroadcastContext[0], VIDMM_DOOR_RENDER, &context);
	if (call.process) {
		NTSTATUS counted = vmm_sched_check_command_contexts(call.process->world->observe,
								    call.process->id, 0,
								    args.BroadcastContextCount);

		status = NT_SUCCESS(counted) ? status : counted;
	}
	if (NT_SUCCESS(status))
		status = submit(context, &args);
	return vmm_kmt_leave(&call, status, args.BroadcastContext[0], args.NumPrimaries,
			     args.Commands);
}
