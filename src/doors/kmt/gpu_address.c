/* SPDX-License-Identifier: MIT */
/* GPU virtual addresses for a D3DKMT client (VA). The rules are those of the device callbacks. */
#include "doors/kmt/kmt_private.h"

KMT_API NTSTATUS APIENTRY D3DKMTMapGpuVirtualAddress(D3DDDI_MAPGPUVIRTUALADDRESS *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTMapGpuVirtualAddress", "no argument");
	D3DDDI_MAPGPUVIRTUALADDRESS args = *pData;
	struct vmm_va_map_request request = {.queue = args.hPagingQueue,
					     .allocation = args.hAllocation,
					     .base = args.BaseAddress,
					     .minimum = args.MinimumAddress,
					     .maximum = args.MaximumAddress,
					     .offset_pages = args.OffsetInPages,
					     .size_pages = args.SizeInPages,
					     .protection = args.Protection.Value,
					     .driver_protection = args.DriverProtection,
					     .reserved = args.Reserved0 | args.Reserved1};
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

/* The first member names a paging queue, or, as it did before there were any, the adapter. */
static bool is_queue(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_os_mutex_lock(&process->lock);
	bool queue = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE) != NULL;
	vmm_os_mutex_unlock(&process->lock);
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
		return vmm_kmt_refuse("D3DKMTReserveGpuVirtualAddress", "no argument");
	D3DDDI_RESERVEGPUVIRTUALADDRESS args = *pData;
	struct vmm_va_reserve_request request = {.queue = args.hPagingQueue,
						 .base = args.BaseAddress,
						 .minimum = args.MinimumAddress,
						 .maximum = args.MaximumAddress,
						 .size = args.Size,
						 .type = (uint32_t)args.ReservationType,
						 .driver_protection = args.DriverProtection};
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_GPU_VIRTUAL_ADDRESS);
	if (NT_SUCCESS(status) && !is_queue(call.process, args.hPagingQueue)) {
		status = reserve_on_adapter(&call, args.hAdapter, &request);
	} else if (NT_SUCCESS(status)) {
		status = vmm_kmt_enter_live(
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
		return vmm_kmt_refuse("D3DKMTFreeGpuVirtualAddress", "no argument");
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
