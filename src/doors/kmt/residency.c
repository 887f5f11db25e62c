/* SPDX-License-Identifier: MIT */
/* Residency and Lock2 of WDDM 2.x for a D3DKMT client, with the rules of the device callbacks. */
#include "doors/kmt/kmt_private.h"

KMT_API NTSTATUS APIENTRY D3DKMTCreatePagingQueue(D3DKMT_CREATEPAGINGQUEUE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreatePagingQueue", "the argument pointer is NULL");
	D3DKMT_CREATEPAGINGQUEUE args = *pData;
	struct vmm_paging_queue_request request = {
		.priority = args.Priority,
		.physical_adapter = args.PhysicalAdapterIndex,
	};
	NTSTATUS status =
		vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_CREATE_PAGING_QUEUE, false);
	if (NT_SUCCESS(status))
		status = vmm_paging_queue_create(call.device, &request);
	if (NT_SUCCESS(status)) {
		pData->hPagingQueue = request.queue;
		pData->hSyncObject = request.fence;
		pData->FenceValueCPUVirtualAddress = request.fence_address;
	}
	return vmm_kmt_leave(&call, status, request.queue, 1, 0);
}

NTSTATUS vmm_kmt_enter_queue(struct vmm_kmt_call *call, D3DKMT_HANDLE queue, uint32_t door,
			     bool cleaning)
{
	NTSTATUS status = vmm_kmt_begin(call, door);

	return NT_SUCCESS(status)
		       ? vmm_kmt_enter_hazard(call, vmm_paging_queue_device(call->process, queue),
					      cleaning)
		       : status;
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyPagingQueue(D3DDDI_DESTROYPAGINGQUEUE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyPagingQueue", "the argument pointer is NULL");
	D3DKMT_HANDLE queue = pData->hPagingQueue;
	NTSTATUS status = vmm_kmt_enter_queue(&call, queue, VIDMM_DOOR_DESTROY_PAGING_QUEUE, true);
	if (NT_SUCCESS(status))
		status = vmm_paging_queue_destroy(call.device, queue);
	return vmm_kmt_leave(&call, status, queue, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTMakeResident(D3DDDI_MAKERESIDENT *pData)
{
	struct vmm_kmt_call call;
	void *handles = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTMakeResident", "the argument pointer is NULL");
	D3DDDI_MAKERESIDENT args = *pData;
	struct vmm_residency_request request = {
		.queue = args.hPagingQueue,
		.count = args.NumAllocations,
		.flags = args.Flags.Value,
	};
	NTSTATUS status =
		vmm_kmt_enter_queue(&call, args.hPagingQueue, VIDMM_DOOR_MAKE_RESIDENT, false);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.AllocationList, args.NumAllocations, VMM_KMT_HANDLES_MAX,
				     sizeof(uint32_t), &handles);
	request.handles = handles;
	if (NT_SUCCESS(status))
		status = vmm_memory_make_resident(call.device, &request);
	vmm_free(handles);
	pData->NumAllocations = NT_SUCCESS(status) ? args.NumAllocations : 0; /* RES-02 */
	pData->NumBytesToTrim = request.bytes_to_trim;
	pData->PagingFenceValue = request.fence_value;
	return vmm_kmt_leave(&call, status, args.hPagingQueue, args.NumAllocations,
			     args.Flags.Value);
}

KMT_API NTSTATUS APIENTRY D3DKMTUpdateAllocationProperty(D3DDDI_UPDATEALLOCPROPERTY *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTUpdateAllocationProperty",
				      "the argument pointer is NULL");
	struct vmm_property_request request = {.queue = pData->hPagingQueue,
					       .allocation = pData->hAllocation,
					       .set = pData->SupportedSegmentSet,
					       .preferred = pData->PreferredSegment.Value,
					       .flags = pData->Flags.Value,
					       .mask = pData->PropertyMaskValue};
	NTSTATUS status = vmm_kmt_enter_queue(&call, request.queue, VIDMM_DOOR_OTHER, false);
	if (NT_SUCCESS(status))
		status = vmm_memory_update_property(call.device, &request);
	if (NT_SUCCESS(status))
		pData->PagingFenceValue = request.fence_value;
	return vmm_kmt_leave(&call, status, request.allocation, 1, request.mask);
}

KMT_API NTSTATUS APIENTRY D3DKMTEvict(D3DKMT_EVICT *pData)
{
	struct vmm_kmt_call call;
	void *handles = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTEvict", "the argument pointer is NULL");
	D3DKMT_EVICT args = *pData;
	struct vmm_residency_request request = {
		.count = args.NumAllocations,
		.flags = args.Flags.Value,
	};
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_EVICT, false);
	if (NT_SUCCESS(status))
		status = vmm_copy_in(args.AllocationList, args.NumAllocations, VMM_KMT_HANDLES_MAX,
				     sizeof(uint32_t), &handles);
	request.handles = handles;
	if (NT_SUCCESS(status))
		status = vmm_memory_evict(call.device, &request);
	vmm_free(handles);
	if (NT_SUCCESS(status))
		pData->NumBytesToTrim = request.bytes_to_trim;
	return vmm_kmt_leave(&call, status, args.hDevice, args.NumAllocations, args.Flags.Value);
}

KMT_API NTSTATUS APIENTRY D3DKMTLock2(D3DKMT_LOCK2 *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTLock2", "the argument pointer is NULL");
	struct vmm_lock_request request = {.handle = pData->hAllocation,
					   .flags = pData->Flags.Value};
	NTSTATUS status =
		vmm_kmt_enter_device_inline(&call, pData->hDevice, VIDMM_DOOR_LOCK2, false);
	if (NT_SUCCESS(status))
		status = vmm_memory_lock2(call.device, &request);
	if (vmm_unlikely(status == STATUS_PENDING))
		status = vmm_memory_lock_outside(&call.device, &call.guard, &request,
						 vmm_memory_lock2);
	pData->pData = NT_SUCCESS(status) ? request.data : NULL;
	return vmm_kmt_leave_inline(&call, status, request.handle, 1, request.flags);
}

KMT_API NTSTATUS APIENTRY D3DKMTUnlock2(const D3DKMT_UNLOCK2 *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTUnlock2", "the argument pointer is NULL");
	uint32_t handle = pData->hAllocation;
	NTSTATUS status =
		vmm_kmt_enter_device_inline(&call, pData->hDevice, VIDMM_DOOR_UNLOCK2, true);
	if (NT_SUCCESS(status))
		status = vmm_memory_unlock(call.device, &handle, 1);
	return vmm_kmt_leave_inline(&call, status, handle, 1, 0);
}
