/* SPDX-License-Identifier: MIT */
/*
 * Offers and reclaims: pfnOfferAllocationsCb, pfnReclaimAllocationsCb, and those of WDDM 2.x with a
 * paging queue or flags.
 */
#include "doors/umd/umd_private.h"

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
	/* An empty array counts as given (OFR-02). */
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

struct offer {
	const HANDLE *resources;
	const D3DKMT_HANDLE *handles;
	uint32_t count, priority, flags;
};

static HRESULT offer(struct vmm_umd_call *call, const struct offer *o)
{
	const struct vmm_offer_request request = {.priority = o->priority, .flags = o->flags};
	struct set_copy copy;
	NTSTATUS status = copy_set(&copy, o->resources, o->handles, o->count);

	if (NT_SUCCESS(status))
		status = vmm_memory_offer(call->device, &copy.set, &request);
	copy_set_done(&copy);
	return vmm_umd_leave(call, status, 0, o->count, o->priority);
}

static HRESULT APIENTRY offer1(HANDLE device, const D3DDDICB_OFFERALLOCATIONS *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OFFER, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	const struct offer o = {data->pResources, data->HandleList, data->NumAllocations,
				(uint32_t)data->Priority, 0};
	return offer(&call, &o);
}

/* The caller's arguments. `results` is an array of BOOL or D3DDDI_RECLAIM_RESULT, both 32 bits. */
struct reclaim {
	const HANDLE *resources;
	const D3DKMT_HANDLE *handles;
	uint32_t count, queue;
	int32_t *results;
	bool boolean, queued, needs_results;
};

static HRESULT reclaim(struct vmm_umd_call *call, const struct reclaim *given, UINT64 *fence)
{
	struct set_copy copy;
	uint32_t local[64] = {0}, *results = NULL;
	NTSTATUS status = copy_set(&copy, given->resources, given->handles, given->count);

	/* Only with a list: its copy has checked the count. */
	if (NT_SUCCESS(status) && given->results && given->count &&
	    (given->resources || given->handles)) {
		results = given->count <= VMM_ARRAY_LENGTH(local)
				  ? local
				  : vmm_calloc(given->count, sizeof(*results));
		if (!results)
			status = STATUS_NO_MEMORY;
	}
	struct vmm_reclaim_request request = {.set = copy.set,
					      .results = results,
					      .queue = given->queue,
					      .queued = given->queued,
					      .needs_results = given->needs_results};
	if (NT_SUCCESS(status))
		status = vmm_memory_reclaim(call->device, &request);
	for (uint32_t i = 0; NT_SUCCESS(status) && results && i < given->count; i++)
		given->results[i] = given->boolean ? results[i] != 0 : (int32_t)results[i];
	if (NT_SUCCESS(status) && fence)
		*fence = request.fence_value;
	vmm_umd_copy_done(results, local);
	copy_set_done(&copy);
	return vmm_umd_leave(call, status, given->queue, given->count, 0);
}

static HRESULT APIENTRY reclaim1(HANDLE device, const D3DDDICB_RECLAIMALLOCATIONS *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_RECLAIM, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	const struct reclaim given = {.resources = data->pResources,
				      .handles = data->HandleList,
				      .count = data->NumAllocations,
				      .results = data->pDiscarded,
				      .boolean = true};
	return reclaim(&call, &given, NULL);
}

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0

/* With a paging queue. (OFR-12) */
static HRESULT reclaim_queued(HANDLE device, const struct reclaim *given, UINT64 *fence)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_RECLAIM, false);

	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, given->queue, given->count, 0);
	return reclaim(&call, given, fence);
}

static HRESULT APIENTRY reclaim2(HANDLE device, D3DDDICB_RECLAIMALLOCATIONS2 *data)
{
	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_RECLAIM);
	const struct reclaim given = {.resources = data->pResources,
				      .handles = data->HandleList,
				      .count = data->NumAllocations,
				      .queue = data->PagingQueue,
				      .queued = true,
				      .results = data->pDiscarded,
				      .boolean = true};
	return reclaim_queued(device, &given, &data->PagingFenceValue);
}

#endif

#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_2

_Static_assert(sizeof(D3DDDI_RECLAIM_RESULT) == sizeof(int32_t), "results are copied as numbers");

static HRESULT APIENTRY offer2(HANDLE device, const D3DDDICB_OFFERALLOCATIONS2 *data)
{
	struct vmm_umd_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_OFFER, false);

	if (NT_SUCCESS(status) && !data)
		status = STATUS_INVALID_PARAMETER;
	if (!NT_SUCCESS(status))
		return vmm_umd_leave(&call, status, 0, 0, 0);
	const struct offer o = {data->pResources, data->HandleList, data->NumAllocations,
				(uint32_t)data->Priority, data->Flags.Value};
	return offer(&call, &o);
}

static HRESULT APIENTRY reclaim3(HANDLE device, D3DDDICB_RECLAIMALLOCATIONS3 *data)
{
	if (!data)
		return vmm_umd_no_argument(device, VIDMM_DOOR_RECLAIM);
	const struct reclaim given = {.resources = data->pResources,
				      .handles = data->HandleList,
				      .count = data->NumAllocations,
				      .queue = data->PagingQueue,
				      .queued = true,
				      .results = (int32_t *)data->pResults,
				      .needs_results = true};
	return reclaim_queued(device, &given, &data->PagingFenceValue);
}

#endif

void vmm_umd_fill_offer(D3DDDI_DEVICECALLBACKS *table)
{
	table->pfnOfferAllocationsCb = offer1;
	table->pfnReclaimAllocationsCb = reclaim1;
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_0
	table->pfnReclaimAllocations2Cb = reclaim2;
#endif
#if D3D_UMD_INTERFACE_VERSION >= D3D_UMD_INTERFACE_VERSION_WDDM2_1_2
	table->pfnOfferAllocations2Cb = offer2;
	table->pfnReclaimAllocations3Cb = reclaim3;
#endif
}
