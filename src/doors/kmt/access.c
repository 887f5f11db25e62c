/* SPDX-License-Identifier: MIT */
/*
 * CPU access, priorities and residency queries of a D3DKMT client. The rules are those of the
 * device callbacks.
 */
#include "doors/kmt/kmt_private.h"

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

static NTSTATUS copy_shape(const struct vmm_kmt_call *call, D3DKMT_HANDLE resource,
			   const D3DKMT_HANDLE *list, uint32_t count, struct vmm_shape *shape,
			   void **handles)
{
	NTSTATUS status = vmm_kmt_resource_key(call, resource, &shape->resource);

	*handles = NULL;
	shape->count = count;
	if (NT_SUCCESS(status) && list)
		status = vmm_copy_in(list, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t), handles);
	/* An empty list is still a list, and excludes a resource. */
	shape->handles = *handles ? *handles : list;
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTSetAllocationPriority(const D3DKMT_SETALLOCATIONPRIORITY *pData)
{
	struct vmm_kmt_call call;
	struct vmm_shape shape = {0};
	void *handles = NULL, *values = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSetAllocationPriority",
				      "the argument pointer is NULL");
	D3DKMT_SETALLOCATIONPRIORITY args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_SET_PRIORITY, false);
	if (NT_SUCCESS(status))
		status = copy_shape(&call, args.hResource, args.phAllocationList,
				    args.AllocationCount, &shape, &handles);
	if (NT_SUCCESS(status) && args.pPriorities)
		status = vmm_copy_in(args.pPriorities, args.hResource ? 1 : args.AllocationCount,
				     VMM_KMT_HANDLES_MAX, sizeof(uint32_t), &values);
	if (NT_SUCCESS(status))
		status = vmm_memory_set_priority(call.device, &shape, values);
	vmm_free(handles);
	vmm_free(values);
	return vmm_kmt_leave(&call, status, args.hResource, args.AllocationCount, 0);
}

/* A query for one resource or for a list of allocations. */
struct query {
	struct vmm_kmt_call call;
	struct vmm_shape shape;
	void *handles;
	/* NULL if the caller gave no output array; the core refuses that. */
	uint32_t *values;
	uint32_t count;
};

static NTSTATUS prepare_query(struct query *q, D3DKMT_HANDLE resource, const D3DKMT_HANDLE *list,
			      uint32_t count, bool wanted)
{
	NTSTATUS status = copy_shape(&q->call, resource, list, count, &q->shape, &q->handles);

	q->count = resource ? 1 : count;
	if (!NT_SUCCESS(status) || !wanted || q->count > VMM_KMT_HANDLES_MAX)
		return status;
	q->values = vmm_calloc(q->count + 1, sizeof(*q->values));
	return q->values ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS end_query(struct query *q, NTSTATUS status, uint32_t *answers,
			  D3DKMT_HANDLE resource)
{
	if (NT_SUCCESS(status))
		memcpy(answers, q->values, q->count * sizeof(*answers));
	vmm_free(q->values);
	vmm_free(q->handles);
	return vmm_kmt_leave(&q->call, status, resource, q->shape.count, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTGetAllocationPriority(const D3DKMT_GETALLOCATIONPRIORITY *pData)
{
	struct query q = {0};

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetAllocationPriority",
				      "the argument pointer is NULL");
	D3DKMT_GETALLOCATIONPRIORITY args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&q.call, args.hDevice, VIDMM_DOOR_OTHER, false);
	if (NT_SUCCESS(status))
		status = prepare_query(&q, args.hResource, args.phAllocationList,
				       args.AllocationCount, args.pPriorities != NULL);
	if (NT_SUCCESS(status))
		status = vmm_memory_query_priority(q.call.device, &q.shape, q.values);
	return end_query(&q, status, args.pPriorities, args.hResource);
}

_Static_assert(sizeof(D3DKMT_ALLOCATIONRESIDENCYSTATUS) == sizeof(uint32_t), "copied as numbers");

KMT_API NTSTATUS APIENTRY
D3DKMTQueryAllocationResidency(const D3DKMT_QUERYALLOCATIONRESIDENCY *pData)
{
	struct query q = {0};

	if (!pData)
		return vmm_kmt_refuse("D3DKMTQueryAllocationResidency",
				      "the argument pointer is NULL");
	D3DKMT_QUERYALLOCATIONRESIDENCY args = *pData;
	NTSTATUS status =
		vmm_kmt_enter_device(&q.call, args.hDevice, VIDMM_DOOR_QUERY_RESIDENCY, false);
	if (NT_SUCCESS(status))
		status = prepare_query(&q, args.hResource, args.phAllocationList,
				       args.AllocationCount, args.pResidencyStatus != NULL);
	if (NT_SUCCESS(status))
		status = vmm_memory_query_residency(q.call.device, &q.shape, q.values);
	return end_query(&q, status, (uint32_t *)args.pResidencyStatus, args.hResource);
}
