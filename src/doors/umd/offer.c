/* SPDX-License-Identifier: MIT */
/*
 * Offers and reclaims: pfnOfferAllocationsCb, pfnReclaimAllocationsCb, and those of WDDM 2.x with a
 * paging queue or flags.
 */
#include "umd_calls.h"

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

NTSTATUS vmm_umd_offer(const struct vmm_umd_call *call, const struct vmm_umd_set *given,
		       uint32_t priority, uint32_t flags)
{
	const struct vmm_offer_request request = {.priority = priority, .flags = flags};
	struct set_copy copy;
	NTSTATUS status = copy_set(&copy, given->resources, given->handles, given->count);

	if (NT_SUCCESS(status))
		status = vmm_memory_offer(call->device, &copy.set, &request);
	copy_set_done(&copy);
	return status;
}

_Static_assert(sizeof(D3DDDI_RECLAIM_RESULT) == sizeof(int32_t), "results are copied as numbers");

NTSTATUS vmm_umd_reclaim(const struct vmm_umd_call *call, const struct vmm_umd_set *given,
			 int32_t *answers, bool boolean, struct vmm_reclaim_request *request)
{
	struct set_copy copy;
	uint32_t local[64] = {0}, *results = NULL;
	NTSTATUS status = copy_set(&copy, given->resources, given->handles, given->count);

	/* Only with a list: its copy has checked the count. */
	if (NT_SUCCESS(status) && answers && given->count && (given->resources || given->handles)) {
		results = given->count <= VMM_ARRAY_LENGTH(local)
				  ? local
				  : vmm_calloc(given->count, sizeof(*results));
		if (!results)
			status = STATUS_NO_MEMORY;
	}
	request->set = copy.set;
	request->results = results;
	if (NT_SUCCESS(status))
		status = vmm_memory_reclaim(call->device, request);
	for (uint32_t i = 0; NT_SUCCESS(status) && results && i < given->count; i++)
		answers[i] = boolean ? results[i] != 0 : (int32_t)results[i];
	vmm_umd_copy_done(results, local);
	copy_set_done(&copy);
	return status;
}
