/* SPDX-License-Identifier: MIT */
/* CPU locks of several allocations, and arrays of values that a call returns. */
#include "doors/common/allocations.h"

#include <d3dukmdt.h>
#include <string.h>

#define VALUES_LOCAL 64u

NTSTATUS vmm_door_lock_pages(struct vmm_door_call *call, const uint32_t *pages,
			     struct vmm_lock_request *request)
{
	uint32_t local[64];
	void *copy;
	NTSTATUS status = vmm_door_copy_in(pages, request->page_count, VMM_DOOR_PAGES_MAX,
					   sizeof(*pages), local, sizeof(local), &copy);

	request->pages = copy;
	if (NT_SUCCESS(status))
		status = vmm_door_lock(call, NULL, request);
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
