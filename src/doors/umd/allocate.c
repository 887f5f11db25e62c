/* SPDX-License-Identifier: MIT */
/* pfnAllocateCb, pfnDeallocateCb, pfnDeallocate2Cb. */
#include "umd_calls.h"

NTSTATUS vmm_umd_allocate(const struct vmm_door_call *call, const D3DDDICB_ALLOCATE *args,
			  D3DKMT_HANDLE *first, D3DKMT_HANDLE *resource)
{
	const struct vmm_door_infos infos = {(char *)args->pAllocationInfo,
					     sizeof(*args->pAllocationInfo), args->NumAllocations};
	struct vmm_allocate_request request = {.runtime_resource = args->hResource,
					       .private_bytes = args->PrivateDriverDataSize};
	struct vmm_door_item one;

	if (infos.count > VMM_DOOR_ALLOCATIONS_MAX || (infos.count && !infos.first))
		return vmm_door_copied(call, STATUS_INVALID_PARAMETER, "pAllocationInfo",
				       infos.count);
	NTSTATUS status =
		vmm_door_copy_infos(call, &infos, args->pPrivateDriverData, &request, &one);
	if (NT_SUCCESS(status))
		status = vmm_memory_allocate(call->device, &request);
	if (NT_SUCCESS(status))
		vmm_door_return_infos(&infos, &request);
	*first = NT_SUCCESS(status) && request.count ? request.items[0].handle : 0;
	*resource = request.resource_handle;
	vmm_door_free_request(&request, &one);
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
	status = vmm_door_copied(call, status, "HandleList", count);
	if (NT_SUCCESS(status))
		status = vmm_memory_deallocate(call->device, resource, handles,
					       resource ? 0 : count, flags);
	vmm_door_copy_done(handles, local);
	return status;
}
