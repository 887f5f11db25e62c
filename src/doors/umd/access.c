/* SPDX-License-Identifier: MIT */
/* pfnLockCb, pfnUnlockCb, pfnOfferAllocationsCb, pfnReclaimAllocationsCb, pfnSetPriorityCb, pfnQueryResidencyCb. */
#include "doors/umd/umd_private.h"

#include <string.h>

HRESULT APIENTRY vmm_umd_lock(HANDLE device, D3DDDICB_LOCK *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *pages = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_LOCK, false);

	if (!data)
		return vmm_umd_leave(&call, STATUS_INVALID_PARAMETER, 0, 0, 0);
	D3DDDICB_LOCK args = *data;
	struct vmm_lock_request request = {
		.handle = args.hAllocation,
		.flags = args.Flags.Value,
		.private_data = args.PrivateDriverData,
		.page_count = args.NumPages,
		.page_list_given = args.pPages != NULL,
	};
	if (NT_SUCCESS(status) && args.pPages)
		status = vmm_umd_copy_in(args.pPages, args.NumPages, VMM_UMD_PAGES_MAX,
					 sizeof(uint32_t), local, sizeof(local), &pages);
	request.pages = pages;
	if (NT_SUCCESS(status))
		status = vmm_memory_lock(call.device, &request);
	vmm_umd_copy_done(pages, local);
	data->pData = NT_SUCCESS(status) ? request.data : NULL;
	if (NT_SUCCESS(status))
		data->hAllocation =
			request.handle; /* GpuVirtualAddress is not ours to write (LOCK-39) */
	return vmm_umd_leave(&call, status, args.hAllocation, args.NumPages, args.Flags.Value);
}

HRESULT APIENTRY vmm_umd_unlock(HANDLE device, const D3DDDICB_UNLOCK *data)
{
	struct vmm_umd_call call;
	uint32_t local[64];
	void *handles = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_UNLOCK, true);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_UNLOCK args = *data;
	status = vmm_umd_copy_in(args.phAllocations, args.NumAllocations, VMM_UMD_HANDLES_MAX,
				 sizeof(uint32_t), local, sizeof(local), &handles);
	if (NT_SUCCESS(status))
		status = vmm_memory_unlock(call.device, handles, args.NumAllocations);
	uint32_t first = handles ? ((const uint32_t *)handles)[0] : 0;
	vmm_umd_copy_done(handles, local);
	return vmm_umd_leave(&call, status, first, args.NumAllocations, 0);
}

struct set_copy {
	uint32_t handles[64];
	void *resources[16];
	void *handle_copy, *resource_copy;
	struct vmm_handle_set set;
};

static NTSTATUS copy_set(struct set_copy *copy, const HANDLE *resources,
			 const D3DKMT_HANDLE *handles, uint32_t count)
{
	NTSTATUS status = STATUS_SUCCESS;

	copy->handle_copy = copy->resource_copy = NULL;
	if (resources)
		status = vmm_umd_copy_in(resources, count, VMM_UMD_HANDLES_MAX, sizeof(void *),
					 copy->resources, sizeof(copy->resources),
					 &copy->resource_copy);
	if (NT_SUCCESS(status) && handles)
		status = vmm_umd_copy_in(handles, count, VMM_UMD_HANDLES_MAX, sizeof(uint32_t),
					 copy->handles, sizeof(copy->handles), &copy->handle_copy);
	/* An empty array is still one of the two (OFR-02). */
	copy->set.resources =
		resources ? (copy->resource_copy ? copy->resource_copy : copy->resources) : NULL;
	copy->set.allocations =
		handles ? (copy->handle_copy ? copy->handle_copy : copy->handles) : NULL;
	copy->set.count = count;
	return status;
}

static void copy_set_done(struct set_copy *copy)
{
	vmm_umd_copy_done(copy->handle_copy, copy->handles);
	vmm_umd_copy_done(copy->resource_copy, copy->resources);
}

HRESULT APIENTRY vmm_umd_offer(HANDLE device, const D3DDDICB_OFFERALLOCATIONS *data)
{
	struct vmm_umd_call call;
	struct set_copy copy;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OFFER, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_OFFERALLOCATIONS args = *data;
	status = copy_set(&copy, args.pResources, args.HandleList, args.NumAllocations);
	if (NT_SUCCESS(status))
		status = vmm_memory_offer(call.device, &copy.set, (uint32_t)args.Priority);
	copy_set_done(&copy);
	return vmm_umd_leave(&call, status, 0, args.NumAllocations, (uint64_t)args.Priority);
}

HRESULT APIENTRY vmm_umd_reclaim(HANDLE device, const D3DDDICB_RECLAIMALLOCATIONS *data)
{
	struct vmm_umd_call call;
	struct set_copy copy;
	int32_t local[64] = {0};
	int32_t *discarded = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_RECLAIM, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_RECLAIMALLOCATIONS args = *data;
	status = copy_set(&copy, args.pResources, args.HandleList, args.NumAllocations);
	/* Only with a list, whose copy bounds the count. */
	if (NT_SUCCESS(status) && args.pDiscarded && args.NumAllocations &&
	    (args.pResources || args.HandleList)) {
		discarded = args.NumAllocations <= VMM_ARRAY_LENGTH(local)
				    ? local
				    : vmm_calloc(args.NumAllocations, sizeof(*discarded));
		if (!discarded)
			status = STATUS_NO_MEMORY;
	}
	if (NT_SUCCESS(status))
		status = vmm_memory_reclaim(call.device, &copy.set, discarded);
	if (NT_SUCCESS(status) && discarded)
		memcpy(args.pDiscarded, discarded, args.NumAllocations * sizeof(*discarded));
	vmm_umd_copy_done(discarded, local);
	copy_set_done(&copy);
	return vmm_umd_leave(&call, status, 0, args.NumAllocations, 0);
}

/* A list of no entries is still a list, which a resource excludes (PRI-03, PRI-04). */
static struct vmm_shape shape_of(void *resource, const D3DKMT_HANDLE *given, const uint32_t *copy,
				 uint32_t count)
{
	return (struct vmm_shape){
		.resource = resource, .handles = copy ? copy : given, .count = count};
}

HRESULT APIENTRY vmm_umd_set_priority(HANDLE device, const D3DDDICB_SETPRIORITY *data)
{
	struct vmm_umd_call call;
	uint32_t local_handles[64], local_values[64];
	void *handles = NULL, *values = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_SET_PRIORITY, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_SETPRIORITY args = *data;
	if (args.HandleList)
		status = vmm_umd_copy_in(args.HandleList, args.NumAllocations, VMM_UMD_HANDLES_MAX,
					 sizeof(uint32_t), local_handles, sizeof(local_handles),
					 &handles);
	if (NT_SUCCESS(status) && args.pPriorities)
		status = vmm_umd_copy_in(args.pPriorities, args.hResource ? 1 : args.NumAllocations,
					 VMM_UMD_HANDLES_MAX, sizeof(uint32_t), local_values,
					 sizeof(local_values), &values);
	struct vmm_shape shape =
		shape_of(args.hResource, args.HandleList, handles, args.NumAllocations);
	if (NT_SUCCESS(status))
		status = vmm_memory_set_priority(call.device, &shape, values);
	vmm_umd_copy_done(handles, local_handles);
	vmm_umd_copy_done(values, local_values);
	return vmm_umd_leave(&call, status, 0, args.NumAllocations, 0);
}

HRESULT APIENTRY vmm_umd_query_residency(HANDLE device, const D3DDDICB_QUERYRESIDENCY *data)
{
	struct vmm_umd_call call;
	uint32_t local_handles[64], local_values[64] = {0};
	uint32_t *values = local_values;
	void *handles = NULL;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_QUERY_RESIDENCY, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	D3DDDICB_QUERYRESIDENCY args = *data;
	uint32_t count = args.hResource ? 1 : args.NumAllocations;
	if (args.HandleList)
		status = vmm_umd_copy_in(args.HandleList, args.NumAllocations, VMM_UMD_HANDLES_MAX,
					 sizeof(uint32_t), local_handles, sizeof(local_handles),
					 &handles);
	if (NT_SUCCESS(status) && handles && count > VMM_ARRAY_LENGTH(local_values)) {
		values = vmm_calloc(count, sizeof(*values));
		status = values ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	struct vmm_shape shape =
		shape_of(args.hResource, args.HandleList, handles, args.NumAllocations);
	if (NT_SUCCESS(status))
		status = vmm_memory_query_residency(call.device, &shape,
						    args.pResidencyStatus ? values : NULL);
	for (uint32_t i = 0; NT_SUCCESS(status) && i < count; i++)
		args.pResidencyStatus[i] = (D3DDDI_RESIDENCYSTATUS)values[i];
	vmm_umd_copy_done(handles, local_handles);
	vmm_umd_copy_done(values, local_values);
	return vmm_umd_leave(&call, status, 0, args.NumAllocations, 0);
}
