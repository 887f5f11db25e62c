/* SPDX-License-Identifier: MIT */
/* Creating and destroying allocations and resources. */
#include "doors/kmt/kmt_private.h"

#include <string.h>

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

/*
 * An array of D3DDDI_ALLOCATIONINFO or D3DDDI_ALLOCATIONINFO2. Common members have the same
 * offsets; the newer form has a larger step.
 */
struct info_array {
	char *first;
	size_t step;
};

static D3DDDI_ALLOCATIONINFO2 read_info(const struct info_array *array, uint32_t index)
{
	D3DDDI_ALLOCATIONINFO2 info = {0};

	memcpy(&info, array->first + index * array->step, array->step);
	return info;
}

_Static_assert(offsetof(D3DDDI_ALLOCATIONINFO, hAllocation) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, hAllocation) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, pSystemMem) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, pSystemMem) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, pPrivateDriverData) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, pPrivateDriverData) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, Flags) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, Flags),
	       "the older form is the beginning of the newer one");

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

static NTSTATUS copy_request(const D3DKMT_CREATEALLOCATION *args, const struct info_array *array,
			     struct vmm_allocate_request *request)
{
	void *blob = NULL;
	NTSTATUS status;

	request->items = vmm_calloc(args->NumAllocations + 1, sizeof(*request->items));
	if (!request->items)
		return STATUS_NO_MEMORY;
	request->private_bytes = args->PrivateDriverDataSize;
	status = vmm_copy_in(args->pPrivateDriverData, args->PrivateDriverDataSize,
			     VMM_DOOR_PRIVATE_BYTES_MAX, 1, &blob);
	request->private_data = blob;
	if (NT_SUCCESS(status)) {
		request->runtime_bytes = args->PrivateRuntimeDataSize;
		status = vmm_copy_in(args->pPrivateRuntimeData, args->PrivateRuntimeDataSize,
				     VMM_DOOR_PRIVATE_BYTES_MAX, 1, &request->runtime_data);
	}
	for (uint32_t i = 0; i < args->NumAllocations && NT_SUCCESS(status); i++) {
		D3DDDI_ALLOCATIONINFO2 info = read_info(array, i); /* read once */
		struct vmm_allocate_item *item = &request->items[i];

		request->count = i + 1;
		item->system_memory = info.pSystemMem;
		item->flags = info.Flags.Value;
		item->source_id = info.VidPnSourceId;
		item->newer = array->step == sizeof(info);
		item->priority = item->newer ? info.Priority : 0;
		item->private_bytes = info.PrivateDriverDataSize;
		status = vmm_copy_in(info.pPrivateDriverData, info.PrivateDriverDataSize,
				     VMM_DOOR_PRIVATE_BYTES_MAX, 1, &item->private_data);
	}
	return status;
}

static void free_request(struct vmm_allocate_request *request)
{
	vmm_section_put(request->section);
	for (uint32_t i = 0; request->items && i < request->count; i++)
		vmm_free(request->items[i].private_data);
	vmm_free(request->items);
	vmm_free(request->runtime_data);
	vmm_free((void *)(uintptr_t)request->private_data);
}

/* Copies out the handles, and the private data, which the miniport may have changed (ALF-34). */
static void copy_out(const struct vmm_allocate_request *request, const struct info_array *array)
{
	for (uint32_t i = 0; i < request->count; i++) {
		const struct vmm_allocate_item *item = &request->items[i];
		D3DDDI_ALLOCATIONINFO2 info = read_info(array, i);

		memcpy(array->first + i * array->step, &item->handle, sizeof(item->handle));
		/* the data is the miniport's, and the caller has no buffer for it */
		if (request->standard)
			continue;
		if (item->private_bytes && info.pPrivateDriverData)
			memcpy(info.pPrivateDriverData, item->private_data, item->private_bytes);
	}
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

static NTSTATUS create_allocation(D3DKMT_CREATEALLOCATION *pData, const char *function, size_t step)
{
	struct vmm_allocate_request request = {0};
	struct vmm_door_call call;
	uint32_t flags, global = 0;

	if (!pData)
		return vmm_kmt_refuse(function, "the argument pointer is NULL");
	D3DKMT_CREATEALLOCATION args = *pData;
	const struct info_array array = {(char *)args.pAllocationInfo, step};
	memcpy(&flags, &args.Flags, sizeof(flags));
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_ALLOCATE, false);
	if (NT_SUCCESS(status))
		status = check_create(&call, &args, flags);
	if (NT_SUCCESS(status) && vmm_kmt_is_standard(flags))
		status = vmm_kmt_standard_check(&call, &args, flags, &request.heap_bytes);
	if (NT_SUCCESS(status))
		status = copy_request(&args, &array, &request);
	if (NT_SUCCESS(status) && request.heap_bytes)
		status = vmm_kmt_standard_memory(&call, flags, &request);
	if (NT_SUCCESS(status))
		status = create(&call, flags, &request, &global);
	if (NT_SUCCESS(status)) { /* no other member of the argument is written (ALC-07) */
		copy_out(&request, &array);
		pData->hResource = request.resource_handle;
		pData->hGlobalShare = global;
	}
	uint32_t first = NT_SUCCESS(status) && request.count ? request.items[0].handle : 0;
	free_request(&request);
	return vmm_kmt_leave(&call, status, first, args.NumAllocations, flags);
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateAllocation(D3DKMT_CREATEALLOCATION *pData)
{
	return create_allocation(pData, "D3DKMTCreateAllocation", sizeof(D3DDDI_ALLOCATIONINFO));
}

KMT_API NTSTATUS APIENTRY D3DKMTCreateAllocation2(D3DKMT_CREATEALLOCATION *pData)
{
	return create_allocation(pData, "D3DKMTCreateAllocation2", sizeof(D3DDDI_ALLOCATIONINFO2));
}

NTSTATUS vmm_kmt_deallocate(const struct vmm_door_call *call, D3DKMT_HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, uint32_t flags)
{
	void *handles = NULL, *key = NULL;
	NTSTATUS status = vmm_kmt_resource_key(call, resource, &key);

	if (NT_SUCCESS(status) && !key && count) /* ALF-36 */
		status = vmm_copy_in(list, count, VMM_DOOR_HANDLES_MAX, sizeof(uint32_t), &handles);
	if (NT_SUCCESS(status) &&
	    (key || handles || flags)) /* destroying nothing succeeds (ALC-06) */
		status = vmm_memory_deallocate(call->device, key, handles, key ? 0 : count, flags);
	vmm_free(handles);
	return status;
}
