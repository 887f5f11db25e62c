/* SPDX-License-Identifier: MIT */
/* CPU locks of several allocations, arrays of values that a call returns, creation. */
#include "doors/common/allocations.h"

#include <d3dukmdt.h>
#include <string.h>

#define VALUES_LOCAL 64u

NTSTATUS vmm_door_lock_pages(struct vmm_door_call *call, const uint32_t *pages,
			     struct vmm_lock_request *request)
{
	uint32_t local[64];
	void *copy;
	NTSTATUS status = vmm_door_copy_in(pages, request->page_count, VMM_LOCK_PAGES_MAX,
					   sizeof(*pages), local, sizeof(local), &copy);

	status = vmm_door_copied(call, status, "pPages", request->page_count);
	request->pages = copy;
	if (NT_SUCCESS(status))
		status = vmm_memory_lock(call->device, request);
	if (status == STATUS_PENDING)
		status = vmm_memory_lock_outside(&call->device, &call->guard, request,
						 vmm_memory_lock_in_full);
	vmm_door_copy_done(copy, local);
	return status;
}

NTSTATUS vmm_door_unlock_list(const struct vmm_door_call *call, const uint32_t *handles,
			      uint32_t count, uint32_t *first)
{
	uint32_t local[64];
	void *copy;
	NTSTATUS status = vmm_door_copy_in(handles, count, VMM_DOOR_HANDLES_MAX, sizeof(*handles),
					   local, sizeof(local), &copy);

	status = vmm_door_copied(call, status, "phAllocations", count);
	*first = copy ? *(const uint32_t *)copy : 0;
	if (NT_SUCCESS(status))
		status = vmm_memory_unlock(call->device, copy, count);
	vmm_door_copy_done(copy, local);
	return status;
}

/* Storage for one value per entry: `local`, if it is large enough. NULL: no memory. */
static uint32_t *values_for(uint32_t count, uint32_t local[VALUES_LOCAL])
{
	return count <= VALUES_LOCAL ? local : vmm_calloc(count, sizeof(*local));
}

NTSTATUS vmm_door_query(const struct vmm_door_call *call, const struct vmm_shape *shape,
			uint32_t *answers, vmm_door_query_fn *query)
{
	uint32_t local[VALUES_LOCAL] = {0}, count = shape->resource ? 1 : shape->count;
	uint32_t *values = NULL;

	/* The core refuses a call without an array, and a count without a list. */
	if (answers && count <= VMM_DOOR_HANDLES_MAX) {
		values = values_for(count, local);
		if (!values)
			return STATUS_NO_MEMORY;
	}
	NTSTATUS status = query(call->device, shape, values);
	if (NT_SUCCESS(status))
		memcpy(answers, values, count * sizeof(*answers));
	vmm_door_copy_done(values, local);
	return status;
}

_Static_assert(sizeof(D3DDDI_RECLAIM_RESULT) == sizeof(int32_t) && sizeof(BOOL) == sizeof(int32_t),
	       "results are copied as numbers");

NTSTATUS vmm_door_reclaim(const struct vmm_door_call *call, struct vmm_reclaim_request *request,
			  void *answers, bool boolean)
{
	uint32_t local[VALUES_LOCAL] = {0}, count = request->set.count;
	int32_t *results = answers;

	/* Only with a list: its copy has checked the count. */
	if (answers && count && (request->set.resources || request->set.allocations)) {
		request->results = values_for(count, local);
		if (!request->results)
			return STATUS_NO_MEMORY;
	}
	NTSTATUS status = vmm_memory_reclaim(call->device, request);
	for (uint32_t i = 0; NT_SUCCESS(status) && request->results && i < count; i++)
		results[i] = boolean ? request->results[i] != 0 : (int32_t)request->results[i];
	vmm_door_copy_done(request->results, local);
	return status;
}

/* ---- creation ---- */

_Static_assert(offsetof(D3DDDI_ALLOCATIONINFO, hAllocation) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, hAllocation) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, pSystemMem) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, pSystemMem) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, pPrivateDriverData) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, pPrivateDriverData) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, PrivateDriverDataSize) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, PrivateDriverDataSize) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, VidPnSourceId) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, VidPnSourceId) &&
		       offsetof(D3DDDI_ALLOCATIONINFO, Flags) ==
			       offsetof(D3DDDI_ALLOCATIONINFO2, Flags),
	       "the older form is the beginning of the newer one");

static D3DDDI_ALLOCATIONINFO2 read_info(const struct vmm_door_infos *infos, uint32_t index)
{
	D3DDDI_ALLOCATIONINFO2 info = {0};

	memcpy(&info, infos->first + index * infos->step, infos->step);
	return info;
}

NTSTATUS vmm_door_copy_infos(const struct vmm_door_call *call, const struct vmm_door_infos *infos,
			     const void *private_data, struct vmm_allocate_request *request,
			     struct vmm_door_item *one)
{
	size_t local_bytes = infos->count == 1 ? sizeof(one->private_data) : 0;
	void *blob = NULL;

	one->item = (struct vmm_allocate_item){0};
	request->items =
		local_bytes ? &one->item : vmm_calloc((size_t)infos->count + 1, sizeof(one->item));
	if (!request->items)
		return STATUS_NO_MEMORY;
	NTSTATUS status =
		vmm_door_copy(call, "pPrivateDriverData", private_data, request->private_bytes,
			      VMM_DOOR_PRIVATE_BYTES_MAX, 1, &blob);
	request->private_data = blob;
	for (uint32_t i = 0; i < infos->count && NT_SUCCESS(status); i++) {
		D3DDDI_ALLOCATIONINFO2 info = read_info(infos, i);
		struct vmm_allocate_item *item = &request->items[i];

		request->count = i + 1;
		item->system_memory = info.pSystemMem;
		item->flags = info.Flags.Value;
		item->source_id = info.VidPnSourceId;
		item->newer = infos->step == sizeof(info);
		item->priority = item->newer ? info.Priority : 0;
		item->private_bytes = info.PrivateDriverDataSize;
		status = vmm_door_copy_in(info.pPrivateDriverData, info.PrivateDriverDataSize,
					  VMM_DOOR_PRIVATE_BYTES_MAX, 1, one->private_data,
					  local_bytes, &item->private_data);
		status = vmm_door_copied(call, status, "pPrivateDriverData of an allocation",
					 item->private_bytes);
	}
	return status;
}

void vmm_door_return_infos(const struct vmm_door_infos *infos,
			   const struct vmm_allocate_request *request)
{
	for (uint32_t i = 0; i < request->count; i++) {
		const struct vmm_allocate_item *item = &request->items[i];
		D3DDDI_ALLOCATIONINFO2 info = read_info(infos, i);

		memcpy(infos->first + i * infos->step, &item->handle, sizeof(item->handle));
		/* of a standard allocation the data is the miniport's, and there is no buffer */
		if (!request->standard && item->private_bytes && info.pPrivateDriverData)
			memcpy(info.pPrivateDriverData, item->private_data, item->private_bytes);
	}
}

void vmm_door_free_request(const struct vmm_allocate_request *request,
			   const struct vmm_door_item *one)
{
	for (uint32_t i = 0; request->items && i < request->count; i++)
		vmm_door_copy_done(request->items[i].private_data, one->private_data);
	vmm_door_copy_done(request->items, &one->item);
	vmm_free((void *)(uintptr_t)request->private_data);
}
