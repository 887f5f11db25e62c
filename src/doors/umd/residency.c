/* SPDX-License-Identifier: MIT */
/*
 * Residency of WDDM 2.x: paging queues, pfnMakeResidentCb, pfnEvictCb,
 * pfnUpdateAllocationPropertyCb; Lock2 and Unlock2.
 */
#include "doors/umd/umd_private.h"

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0

static HRESULT APIENTRY create_paging_queue(HANDLE device, D3DDDICB_CREATEPAGINGQUEUE *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_CREATE_PAGING_QUEUE, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	struct vmm_paging_queue_request request = {
		.priority = data->Priority,
		.physical_adapter = data->PhysicalAdapterIndex,
	};
	status = vmm_paging_queue_create(call.device, &request);
	if (NT_SUCCESS(status)) {
		data->hPagingQueue = request.queue;
		data->hSyncObject = request.fence;
		data->FenceValueCPUVirtualAddress = request.fence_address;
	}
	return vmm_umd_leave(&call, status, request.queue, 1, 0);
}

static HRESULT APIENTRY destroy_paging_queue(HANDLE device, const D3DDDI_DESTROYPAGINGQUEUE *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_DESTROY_PAGING_QUEUE, true);
	uint32_t queue = data ? data->hPagingQueue : 0;

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (NT_SUCCESS(status))
		status = vmm_paging_queue_destroy(call.device, queue);
	return vmm_umd_leave(&call, status, queue, 1, 0);
}

static HRESULT APIENTRY make_resident(HANDLE device, D3DDDI_MAKERESIDENT *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *handles = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_MAKE_RESIDENT, false);

	if (!data)
		return vmm_umd_leave(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	D3DDDI_MAKERESIDENT args = *data;
	struct vmm_residency_request request = {
		.queue = args.hPagingQueue,
		.count = args.NumAllocations,
		.flags = args.Flags.Value,
	};
	if (NT_SUCCESS(status))
		status = vmm_umd_copy_in(args.AllocationList, args.NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local,
					 sizeof(local), &handles);
	request.handles = handles;
	if (NT_SUCCESS(status))
		status = vmm_memory_make_resident(call.device, &request);
	vmm_umd_copy_done(handles, local);
	data->NumAllocations = NT_SUCCESS(status) ? args.NumAllocations : 0; /* RES-02 */
	data->NumBytesToTrim = request.bytes_to_trim;
	data->PagingFenceValue = request.fence_value;
	return vmm_umd_leave(&call, status, args.hPagingQueue, args.NumAllocations,
			     args.Flags.Value);
}

static HRESULT APIENTRY evict(HANDLE device, D3DDDICB_EVICT *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *handles = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_EVICT, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_EVICT args = *data;
	struct vmm_residency_request request = {
		.count = args.NumAllocations,
		.flags = args.Flags.Value,
	};
	status = vmm_umd_copy_in(args.AllocationList, args.NumAllocations, VMM_UMD_HANDLES_MAX,
				 sizeof(uint32_t), local, sizeof(local), &handles);
	request.handles = handles;
	if (NT_SUCCESS(status))
		status = vmm_memory_evict(call.device, &request);
	vmm_umd_copy_done(handles, local);
	if (NT_SUCCESS(status))
		data->NumBytesToTrim = request.bytes_to_trim;
	return vmm_umd_leave(&call, status, 0, args.NumAllocations, args.Flags.Value);
}

static HRESULT APIENTRY lock2(HANDLE device, D3DDDICB_LOCK2 *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter_inline(&call, device, VIDMM_DOOR_LOCK2, false);

	if (!data)
		return vmm_umd_leave_inline(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	struct vmm_lock_request request = {.handle = data->hAllocation, .flags = data->Flags.Value};
	if (NT_SUCCESS(status))
		status = vmm_memory_lock2(call.device, &request);
	if (vmm_unlikely(status == STATUS_PENDING))
		status = vmm_memory_lock_outside(&call.device, &call.guard, &request,
						 vmm_memory_lock2);
	data->pData = NT_SUCCESS(status) ? request.data : NULL;
	return vmm_umd_leave_inline(&call, status, request.handle, 1, request.flags);
}

static HRESULT APIENTRY unlock2(HANDLE device, const D3DDDICB_UNLOCK2 *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter_inline(&call, device, VIDMM_DOOR_UNLOCK2, true);
	uint32_t handle = data ? data->hAllocation : 0;

	if (NT_SUCCESS(status))
		status = data ? vmm_memory_unlock(call.device, &handle, 1)
			      : STATUS_INVALID_PARAMETER;
	return vmm_umd_leave_inline(&call, status, handle, 1, 0);
}

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_1
static HRESULT APIENTRY update_property(HANDLE device, D3DDDI_UPDATEALLOCPROPERTY *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OTHER, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	struct vmm_property_request request = {.queue = data->hPagingQueue,
					       .allocation = data->hAllocation,
					       .set = data->SupportedSegmentSet,
					       .preferred = data->PreferredSegment.Value,
					       .flags = data->Flags.Value,
					       .mask = data->PropertyMaskValue};
	status = vmm_memory_update_property(call.device, &request);
	if (NT_SUCCESS(status))
		data->PagingFenceValue = request.fence_value;
	return vmm_umd_leave(&call, status, request.allocation, 1, request.mask);
}
#endif

void vmm_umd_fill_residency(D3DDDI_DEVICECALLBACKS *table)
{
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_1
	table->pfnUpdateAllocationPropertyCb = update_property;
#endif
	table->pfnLock2Cb = lock2;
	table->pfnUnlock2Cb = unlock2;
	table->pfnMakeResidentCb = make_resident;
	table->pfnEvictCb = evict;
	table->pfnCreatePagingQueueCb = create_paging_queue;
	table->pfnDestroyPagingQueueCb = destroy_paging_queue;
}

#else

void vmm_umd_fill_residency(D3DDDI_DEVICECALLBACKS *table)
{
	(void)table;
}

#endif
