/* SPDX-License-Identifier: MIT */
/*
 * CPU access, priorities and residency queries of a D3DKMT client. The rules are those of the
 * device callbacks.
 */
#include "kmt_calls.h"

#include <string.h>

/* The rules and statuses of pfnLockCb. (LOCK-41) */
KMT_API NTSTATUS APIENTRY D3DKMTLock(D3DKMT_LOCK *pData)
{
	struct vmm_kmt_call call;
	void *pages = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTLock", "the argument pointer is NULL");
	D3DKMT_LOCK args = *pData;
	struct vmm_lock_request request = {
		.handle = args.hAllocation,
		.flags = args.Flags.Value,
		.private_data = args.PrivateDriverData,
		.page_count = args.NumPages,
		.page_list_given = args.pPages != NULL,
	};
	NTSTATUS status = vmm_kmt_enter_device_inline(&call, args.hDevice, VIDMM_DOOR_LOCK, false);
	if (NT_SUCCESS(status) && args.pPages)
		status = vmm_copy_in(args.pPages, args.NumPages, VMM_KMT_PAGES_MAX,
				     sizeof(uint32_t), &pages);
	request.pages = pages;
	if (NT_SUCCESS(status))
		status = vmm_memory_lock(call.device, &request);
	if (vmm_unlikely(status == STATUS_PENDING))
		status = vmm_memory_lock_outside(&call.device, &call.guard, &request,
						 vmm_memory_lock_in_full);
	if (vmm_unlikely(pages != NULL))
		vmm_free(pages);
	pData->pData = NT_SUCCESS(status) ? request.data : NULL;
	if (NT_SUCCESS(status))
		pData->hAllocation = request.handle;
	return vmm_kmt_leave_inline(&call, status, args.hAllocation, args.NumPages,
				    args.Flags.Value);
}

KMT_API NTSTATUS APIENTRY D3DKMTUnlock(const D3DKMT_UNLOCK *pData)
{
	struct vmm_kmt_call call;
	uint32_t local[16];
	void *handles = local;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTUnlock", "the argument pointer is NULL");
	D3DKMT_UNLOCK args = *pData;
	NTSTATUS status = vmm_kmt_enter_device_inline(&call, args.hDevice, VIDMM_DOOR_UNLOCK, true);
	/* The usual unlock allocates no memory. */
	if (vmm_likely(args.phAllocations && args.NumAllocations == 1))
		local[0] = args.phAllocations[0];
	else if (args.phAllocations && args.NumAllocations <= VMM_ARRAY_LENGTH(local))
		memcpy(local, args.phAllocations, args.NumAllocations * sizeof(uint32_t));
	else if (NT_SUCCESS(status))
		status = vmm_copy_in(args.phAllocations, args.NumAllocations, VMM_KMT_HANDLES_MAX,
				     sizeof(uint32_t), &handles);
	if (NT_SUCCESS(status))
		status = vmm_memory_unlock(call.device, handles, args.NumAllocations);
	if (handles != local)
		vmm_free(handles);
	return vmm_kmt_leave_inline(&call, status, args.hDevice, args.NumAllocations, 0);
}

/* ---- priority and residency: one resource, or a list of allocations (PRI-03, PRI-04) ---- */

NTSTATUS vmm_kmt_copy_shape(const struct vmm_kmt_call *call, D3DKMT_HANDLE resource,
			    const D3DKMT_HANDLE *list, uint32_t count, struct vmm_shape *shape)
{
	void *handles = NULL;
	NTSTATUS status = vmm_kmt_resource_key(call, resource, &shape->resource);

	shape->count = count;
	if (NT_SUCCESS(status) && list)
		status = vmm_copy_in(list, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t), &handles);
	/* An empty list is still a list, and excludes a resource. */
	shape->handles = handles ? handles : list;
	return status;
}

void vmm_kmt_free_shape(const struct vmm_shape *shape, const D3DKMT_HANDLE *list)
{
	if (shape->handles != list)
		vmm_free((void *)(uintptr_t)shape->handles);
}

NTSTATUS vmm_kmt_set_allocation_priority(struct vmm_kmt_call *call,
					 const D3DKMT_SETALLOCATIONPRIORITY *args)
{
	struct vmm_shape shape = {.count = 0};
	void *values = NULL;
	NTSTATUS status = vmm_kmt_copy_shape(call, args->hResource, args->phAllocationList,
					     args->AllocationCount, &shape);

	if (NT_SUCCESS(status) && args->pPriorities)
		status = vmm_copy_in(args->pPriorities, args->hResource ? 1 : args->AllocationCount,
				     VMM_KMT_HANDLES_MAX, sizeof(uint32_t), &values);
	if (NT_SUCCESS(status))
		status = vmm_memory_set_priority(call->device, &shape, values);
	vmm_kmt_free_shape(&shape, args->phAllocationList);
	vmm_free(values);
	return status;
}

_Static_assert(sizeof(D3DKMT_ALLOCATIONRESIDENCYSTATUS) == sizeof(uint32_t), "copied as numbers");

NTSTATUS vmm_kmt_query(const struct vmm_kmt_call *call, const struct vmm_shape *shape,
		       uint32_t count, uint32_t *answers, vmm_kmt_shape_query *query)
{
	/* NULL if the caller gave no output array; the core refuses that. */
	uint32_t *values = NULL;

	if (answers && count <= VMM_KMT_HANDLES_MAX) {
		values = vmm_calloc(count + 1, sizeof(*values));
		if (!values)
			return STATUS_NO_MEMORY;
	}
	NTSTATUS status = query(call->device, shape, values);
	if (NT_SUCCESS(status))
		memcpy(answers, values, count * sizeof(*answers));
	vmm_free(values);
	return status;
}
