/* SPDX-License-Identifier: MIT */
/* Creating and destroying allocations and resources. */
#include "kmt_calls.h"

enum {
	CREATE_RESOURCE = 0x1,
	CREATE_SHARED = 0x2,
	NON_SECURE = 0x4,
	EXISTING_SYSMEM = 0x20,
	NT_SECURITY = 0x40,
	CROSS_ADAPTER = 0x800,
	STANDARD_ALLOCATION = 0x10000,
	EXISTING_SECTION = 0x20000,
	RESERVED = 0xFFC00000,
	/*
	 * NonSecure restricts which processes may open a shared resource; here every process may.
	 */
	BUILT = CREATE_RESOURCE | CREATE_SHARED | NON_SECURE | EXISTING_SYSMEM | NT_SECURITY |
		CROSS_ADAPTER | STANDARD_ALLOCATION | EXISTING_SECTION,
};

static NTSTATUS refuse_create(const struct vmm_door_call *call, const char *rule, const char *what,
			      uint32_t value)
{
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, rule, call->process->id,
			       call->device->handle, "create allocation: %s (0x%x)", what, value);
}

/* hResource is no input, whatever it contains. (ALC-05) */
static NTSTATUS check_no_resource(const struct vmm_door_call *call, D3DKMT_HANDLE resource)
{
	void *key;

	if (!resource)
		return STATUS_SUCCESS;
	if (!NT_SUCCESS(vmm_kmt_resource_key(call, resource, &key)))
		return STATUS_INVALID_HANDLE;
	return refuse_create(call, "ALC-05", "a resource cannot be extended, hResource must be 0",
			     resource);
}

static NTSTATUS check_create(const struct vmm_door_call *call, const D3DKMT_CREATEALLOCATION *args,
			     uint32_t flags)
{
	NTSTATUS status = check_no_resource(call, args->hResource);

	if (!NT_SUCCESS(status))
		return status;
	if (flags & (uint32_t)RESERVED)
		return refuse_create(call, "ALC-01", "reserved flags are set", flags);
	if ((flags & CREATE_SHARED) && !(flags & CREATE_RESOURCE))
		return refuse_create(call, "ALC-04", "CreateShared without CreateResource", flags);
	if ((flags & NT_SECURITY) && !(flags & CREATE_SHARED))
		return refuse_create(call, "ALC-04", "NtSecuritySharing without CreateShared",
				     flags);
	if ((flags & CROSS_ADAPTER) && (!(flags & CREATE_SHARED) || args->NumAllocations != 1))
		return refuse_create(call, "ALF-39",
				     "a cross-adapter resource is CreateShared and one allocation",
				     flags);
	if (!args->NumAllocations && !(flags & CREATE_RESOURCE))
		return refuse_create(call, "ALC-01", "no allocation and no resource", flags);
	if (args->NumAllocations > VMM_DOOR_ALLOCATIONS_MAX ||
	    (args->NumAllocations && !args->pAllocationInfo))
		return refuse_create(call, "ALC-01", "allocations without an array, or too many",
				     args->NumAllocations);
	if ((flags & CROSS_ADAPTER) && vmm_kmt_is_standard(flags))
		return vmm_refuse_reason(
			call->observe, STATUS_NOT_SUPPORTED, call->process->id, 0,
			"ALF-38: an existing heap shared with other adapters is not built");
	if (flags & ~(uint32_t)BUILT)
		return vmm_refuse_reason(call->observe, STATUS_NOT_SUPPORTED, call->process->id, 0,
					 "create allocation: flags 0x%x: only 0x%x are built",
					 flags, BUILT);
	return STATUS_SUCCESS;
}

static NTSTATUS create(const struct vmm_door_call *call, uint32_t flags,
		       struct vmm_allocate_request *request, uint32_t *global)
{
	NTSTATUS status = STATUS_SUCCESS;

	*global = 0;
	request->cross_adapter = flags & CROSS_ADAPTER;
	request->nt_security = flags & NT_SECURITY;
	if (flags & CREATE_RESOURCE)
		status = vmm_resource_create(call->device, flags & CREATE_SHARED,
					     &request->runtime_resource);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_memory_allocate(call->device, request);
	if (NT_SUCCESS(status) && (flags & CREATE_SHARED) && request->count)
		status = vmm_resource_global_handle(call->device, request->resource_handle, global);
	if (!NT_SUCCESS(status) && request->runtime_resource)
		(void)!vmm_memory_deallocate(call->device, request->runtime_resource, NULL, 0, 0);
	return status;
}

NTSTATUS vmm_kmt_create_allocation(const struct vmm_door_call *call,
				   const D3DKMT_CREATEALLOCATION *args, size_t step,
				   struct vmm_kmt_created *created)
{
	const struct vmm_door_infos infos = {(char *)args->pAllocationInfo, step,
					     args->NumAllocations};
	struct vmm_allocate_request request = {.private_bytes = args->PrivateDriverDataSize,
					       .runtime_bytes = args->PrivateRuntimeDataSize};
	struct vmm_door_item one;
	uint32_t flags = created->flags;
	NTSTATUS status = check_create(call, args, flags);

	if (NT_SUCCESS(status) && vmm_kmt_is_standard(flags))
		status = vmm_kmt_standard_check(call, args, flags, &request.heap_bytes);
	if (NT_SUCCESS(status))
		status = vmm_door_copy(call, "pPrivateRuntimeData", args->pPrivateRuntimeData,
				       args->PrivateRuntimeDataSize, VMM_DOOR_PRIVATE_BYTES_MAX, 1,
				       &request.runtime_data);
	if (NT_SUCCESS(status))
		status =
			vmm_door_copy_infos(call, &infos, args->pPrivateDriverData, &request, &one);
	if (NT_SUCCESS(status) && request.heap_bytes) {
		vmm_kmt_standard_drop_data(&request, one.private_data);
		status = vmm_kmt_standard_memory(call, flags, &request);
	}
	if (NT_SUCCESS(status))
		status = create(call, flags, &request, &created->global);
	if (NT_SUCCESS(status)) {
		vmm_door_return_infos(&infos, &request);
		created->resource = request.resource_handle;
		created->first = request.count ? request.items[0].handle : 0;
	}
	vmm_section_put(request.section);
	vmm_free(request.runtime_data);
	vmm_door_free_request(&request, &one);
	return status;
}

NTSTATUS vmm_kmt_deallocate(const struct vmm_door_call *call, D3DKMT_HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags)
{
	void *handles = NULL, *key = NULL;
	NTSTATUS status = vmm_kmt_resource_key(call, resource, &key);

	if (NT_SUCCESS(status) && !key && count) /* ALF-36 */
		status = vmm_door_copy(call, "phAllocationList", list, count, VMM_DOOR_HANDLES_MAX,
				       sizeof(uint32_t), &handles);
	if (NT_SUCCESS(status) &&
	    (key || handles || flags)) /* destroying nothing succeeds (ALC-06) */
		status = vmm_memory_deallocate(call->device, key, handles, key ? 0 : count, flags);
	vmm_free(handles);
	return status;
}
