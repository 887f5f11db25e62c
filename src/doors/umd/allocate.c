/* SPDX-License-Identifier: MIT */
/* pfnAllocateCb, pfnDeallocateCb, pfnDeallocate2Cb. */
#include "umd_calls.h"

#include <string.h>

/* Storage on the stack for the usual request: one allocation with little private data. */
struct single_item {
	struct vmm_allocate_item item;
	_Alignas(16) unsigned char private_data[128];
};

static void free_items(struct vmm_allocate_request *request, const struct single_item *one)
{
	for (uint32_t i = 0; request->items && i < request->count; i++)
		vmm_door_copy_done(request->items[i].private_data, one->private_data);
	vmm_door_copy_done(request->items, &one->item);
	vmm_free((void *)(uintptr_t)request->private_data);
}

static NTSTATUS copy_request(const D3DDDICB_ALLOCATE *args, struct vmm_allocate_request *request,
			     struct single_item *one)
{
	size_t local_bytes = args->NumAllocations == 1 ? sizeof(one->private_data) : 0;
	void *blob;
	NTSTATUS status;

	if (args->NumAllocations > VMM_DOOR_ALLOCATIONS_MAX ||
	    (args->NumAllocations && !args->pAllocationInfo))
		return STATUS_INVALID_PARAMETER;
	one->item = (struct vmm_allocate_item){0};
	request->items = local_bytes
				 ? &one->item
				 : vmm_calloc(args->NumAllocations + 1, sizeof(*request->items));
	if (!request->items)
		return STATUS_NO_MEMORY;
	request->runtime_resource = args->hResource;
	status = vmm_door_copy_in(args->pPrivateDriverData, args->PrivateDriverDataSize,
				  VMM_DOOR_PRIVATE_BYTES_MAX, 1, NULL, 0, &blob);
	request->private_data = blob;
	request->private_bytes = args->PrivateDriverDataSize;
	for (uint32_t i = 0; i < args->NumAllocations && NT_SUCCESS(status); i++) {
		D3DDDI_ALLOCATIONINFO info = args->pAllocationInfo[i]; /* read once */

		request->count = i + 1;
		request->items[i].system_memory = info.pSystemMem;
		request->items[i].flags = info.Flags.Value;
		request->items[i].source_id = info.VidPnSourceId;
		request->items[i].private_bytes = info.PrivateDriverDataSize;
		status = vmm_door_copy_in(info.pPrivateDriverData, info.PrivateDriverDataSize,
					  VMM_DOOR_PRIVATE_BYTES_MAX, 1, one->private_data,
					  local_bytes, &request->items[i].private_data);
	}
	return status;
}

/* Copies out the handles, and the private data, which the miniport may have changed (ALF-34). */
static void copy_out(const struct vmm_allocate_request *request, const D3DDDICB_ALLOCATE *args)
{
	for (uint32_t i = 0; i < request->count; i++) {
		D3DDDI_ALLOCATIONINFO *info = &args->pAllocationInfo[i];

		info->hAllocation = request->items[i].handle;
		if (request->items[i].private_bytes && info->pPrivateDriverData)
			memcpy(info->pPrivateDriverData, request->items[i].private_data,
			       request->items[i].private_bytes);
	}
}

NTSTATUS vmm_umd_allocate(const struct vmm_door_call *call, const D3DDDICB_ALLOCATE *args,
			  D3DKMT_HANDLE *first, D3DKMT_HANDLE *resource)
{
	struct vmm_allocate_request request = {0};
	struct single_item one;
	NTSTATUS status = copy_request(args, &request, &one);

	if (NT_SUCCESS(status))
		status = vmm_memory_allocate(call->device, &request);
	if (NT_SUCCESS(status))
		copy_out(&request, args);
	*first = NT_SUCCESS(status) && request.count ? request.items[0].handle : 0;
	*resource = request.resource_handle;
	free_items(&request, &one);
	return status;
}

NTSTATUS vmm_umd_deallocate(const struct vmm_door_call *call, HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags)
{
	uint32_t local[64];
	void *handles = NULL;
	NTSTATUS status = STATUS_SUCCESS;

	if (!resource) /* with a resource the list is not read (ALF-36) */
		status = vmm_door_copy_in(list, count, VMM_DOOR_HANDLES_MAX, sizeof(uint32_t),
					  local, sizeof(local), &handles);
	if (NT_SUCCESS(status))
		status = vmm_memory_deallocate(call->device, resource, handles,
					       resource ? 0 : count, flags);
	vmm_door_copy_done(handles, local);
	return status;
}
