/* SPDX-License-Identifier: MIT */
/* GPU virtual addresses (VA): pfnMapGpuVirtualAddressCb, pfnReserveGpuVirtualAddressCb, pfnFreeGpuVirtualAddressCb. */
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
	struct vmm_va_reserve_request request = {.queue = args.hPagingQueue,
						 .base = args.BaseAddress,
						 .minimum = args.MinimumAddress,
						 .maximum = args.MaximumAddress,
						 .size = args.Size,
						 .type = (uint32_t)args.ReservationType,
						 .driver_protection = args.DriverProtection};
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

void vmm_umd_fill_gpu_address(D3DDDI_DEVICECALLBACKS *table)
{
	table->pfnMapGpuVirtualAddressCb = map;
	table->pfnReserveGpuVirtualAddressCb = reserve;
	table->pfnFreeGpuVirtualAddressCb = free_address;
}

#else

void vmm_umd_fill_gpu_address(D3DDDI_DEVICECALLBACKS *table)
{
	(void)table;
}

#endif
