/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses (VA): pfnMapGpuVirtualAddressCb, pfnReserveGpuVirtualAddressCb,
 * pfnFreeGpuVirtualAddressCb, pfnUpdateGpuVirtualAddressCb. Contexts by address:
 * pfnCreateContextVirtualCb, pfnSubmitCommandCb.
 */
#include "doors/umd/umd_private.h"

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0

static NTSTATUS enter(struct vmm_umd_call *call, HANDLE device, const void *data, bool cleaning)
{
	NTSTATUS status = vmm_umd_enter(call, device, VIDMM_DOOR_GPU_VIRTUAL_ADDRESS, cleaning);

	return NT_SUCCESS(status) && !data ? STATUS_INVALID_PARAMETER : status;
}

static HRESULT APIENTRY map(HANDLE device, D3DDDI_MAPGPUVIRTUALADDRESS *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = enter(&call, device, data, false);

	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDI_MAPGPUVIRTUALADDRESS args = *data;
	struct vmm_va_map_request request = vmm_va_map_request_of(&args);
	status = vmm_va_map(call.device, &request);
	if (NT_SUCCESS(status)) {
		data->VirtualAddress = request.address;
		data->PagingFenceValue = request.fence_value;
	}
	return vmm_umd_leave(&call, status, args.hAllocation, 1, args.Protection.Value);
}

static HRESULT APIENTRY reserve(HANDLE device, D3DDDI_RESERVEGPUVIRTUALADDRESS *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = enter(&call, device, data, false);

	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = *data;
	struct vmm_va_reserve_request request = vmm_va_reserve_request_of(&args);
	status = vmm_va_reserve(call.device, &request);
	if (NT_SUCCESS(status)) {
		data->VirtualAddress = request.address;
		data->PagingFenceValue = request.fence_value;
	}
	return vmm_umd_leave(&call, status, args.hPagingQueue, args.Size, request.type);
}

static HRESULT APIENTRY free_address(HANDLE device, const D3DDDICB_FREEGPUVIRTUALADDRESS *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = enter(&call, device, data, true);

	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_FREEGPUVIRTUALADDRESS args = *data;
	status = vmm_va_free(call.device->adapter, call.device->process, args.BaseAddress,
			     args.Size);
	return vmm_umd_leave(&call, status, 0, args.Size, args.BaseAddress);
}

/* Refuses a call because of `member`, which is not a live context of the call's device. */
static NTSTATUS refuse_context(const struct vmm_umd_call *call, const char *rule,
			       const char *member)
{
	return vmm_refuse_rule(call->device->adapter->observe, STATUS_INVALID_PARAMETER, rule,
			       call->device->process->id, call->device->handle,
			       "%s is not a live context of device 0x%08x", member,
			       call->device->handle);
}

static HRESULT APIENTRY update(HANDLE device, const D3DDDICB_UPDATEGPUVIRTUALADDRESS *data)
{
	struct vmm_umd_call call;
	struct vmm_context *context = NULL;
	HANDLE handle = data ? data->hContext : NULL;
	NTSTATUS status = vmm_umd_enter_context(&call, device, handle,
						VIDMM_DOOR_GPU_VIRTUAL_ADDRESS, &context);

	if (!call.device || !data)
		return vmm_umd_leave(&call, call.device ? STATUS_INVALID_PARAMETER : status, 0, 0,
				     0);
	D3DDDICB_UPDATEGPUVIRTUALADDRESS args = *data;
	struct vmm_address_request request = {.count = args.NumOperations,
					      .flags = args.Flags.Value,
					      .fence = args.hFenceObject,
					      .value = args.FenceValue};
	if (NT_SUCCESS(status) && !context)
		status = refuse_context(&call, "VA-10", "update GPU virtual address: hContext");
	if (NT_SUCCESS(status))
		status = vmm_va_operations_copy(args.Operations, args.NumOperations,
						&request.operations);
	if (NT_SUCCESS(status))
		status = vmm_sched_update_addresses(context, &request);
	return vmm_umd_leave(&call, status, args.hFenceObject, args.NumOperations, args.FenceValue);
}

/* ---- contexts whose commands have GPU virtual addresses ---- */

static HRESULT APIENTRY create_context(HANDLE device, D3DDDICB_CREATECONTEXTVIRTUAL *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_CREATE_CONTEXT, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_CREATECONTEXTVIRTUAL args = *data;
	struct vmm_context_request request = {.node = args.NodeOrdinal,
					      .affinity = args.EngineAffinity,
					      .flags = args.Flags.Value,
					      .by_address = true,
					      .private_data = args.pPrivateDriverData,
					      .private_bytes = args.PrivateDriverDataSize};
	status = vmm_sched_create_context(call.device, &request);
	if (NT_SUCCESS(status))
		data->hContext = request.handle;
	return vmm_umd_leave(&call, status, 0, args.NodeOrdinal, args.Flags.Value);
}

/* Only the members in use are read, each once. */
static NTSTATUS submit(struct vmm_context *context, const D3DDDICB_SUBMITCOMMAND *data)
{
	struct vmm_command_request request = {.commands = data->Commands,
					      .length = data->CommandLength,
					      .flags = data->Flags.Value,
					      .private_bytes = data->PrivateDriverDataSize,
					      .primary_count = data->NumPrimaries};
	uint64_t local[32];
	void *copy = NULL;

	for (uint32_t i = 0; i < VMM_PRIMARIES_MAX; i++)
		request.primaries[i] = data->WrittenPrimaries[i];
	NTSTATUS status =
		vmm_umd_copy_in(data->pPrivateDriverData, request.private_bytes,
				VMM_UMD_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &copy);
	request.private_data = copy;
	if (NT_SUCCESS(status))
		status = vmm_sched_submit_command(context, &request);
	vmm_umd_copy_done(copy, local);
	return status;
}

static HRESULT APIENTRY submit_command(HANDLE device, const D3DDDICB_SUBMITCOMMAND *data)
{
	struct vmm_umd_call call;
	struct vmm_context *context = NULL;
	HANDLE handle = data ? data->BroadcastContext[0] : NULL;
	NTSTATUS status = vmm_umd_enter_context(&call, device, handle, VIDMM_DOOR_RENDER, &context);

	if (!call.device || !data)
		return vmm_umd_leave(&call, call.device ? STATUS_INVALID_PARAMETER : status, 0, 0,
				     0);
	NTSTATUS counted = vmm_sched_check_command_contexts(
		call.device->adapter->observe, call.device->process->id, call.device->handle,
		data->BroadcastContextCount);
	if (NT_SUCCESS(counted) && !context)
		counted = refuse_context(&call, "SUB-26", "submit command: BroadcastContext[0]");
	if (NT_SUCCESS(status))
		status = counted;
	if (NT_SUCCESS(status))
		status = submit(context, data);
	return vmm_umd_leave(&call, status, 0, data->NumPrimaries, data->Commands);
}

void vmm_umd_fill_gpu_address(D3DDDI_DEVICECALLBACKS *table)
{
	table->pfnCreateContextVirtualCb = create_context;
	table->pfnSubmitCommandCb = submit_command;
	table->pfnMapGpuVirtualAddressCb = map;
	table->pfnReserveGpuVirtualAddressCb = reserve;
	table->pfnFreeGpuVirtualAddressCb = free_address;
	table->pfnUpdateGpuVirtualAddressCb = update;
}

#else

void vmm_umd_fill_gpu_address(D3DDDI_DEVICECALLBACKS *table)
{
	(void)table;
}

#endif
