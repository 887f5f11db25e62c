/* SPDX-License-Identifier: MIT */
/* Offers and reclaims of a D3DKMT client. The rules are those of the device callbacks. */
#include "kmt_calls.h"

/* Copies of the caller's arrays. memory.h knows resources by their keys. */
struct set_copy {
	void *handles;
	void **keys;
	struct vmm_handle_set set;
};

static NTSTATUS copy_keys(const struct vmm_kmt_call *call, const D3DKMT_HANDLE *resources,
			  uint32_t count, struct set_copy *copy)
{
	void *handles = NULL;
	NTSTATUS status =
		vmm_copy_in(resources, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t), &handles);

	if (NT_SUCCESS(status)) {
		copy->keys = vmm_calloc(count + 1, sizeof(*copy->keys));
		status = copy->keys ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		status = vmm_kmt_resource_key(call, ((uint32_t *)handles)[i], &copy->keys[i]);
		if (NT_SUCCESS(status) && !copy->keys[i])
			status = STATUS_INVALID_PARAMETER; /* handle 0 is not a resource */
	}
	vmm_free(handles);
	copy->set.resources = copy->keys;
	return status;
}

static NTSTATUS copy_set(const struct vmm_kmt_call *call, const D3DKMT_HANDLE *resources,
			 const D3DKMT_HANDLE *handles, uint32_t count, struct set_copy *copy)
{
	NTSTATUS status = STATUS_SUCCESS;

	copy->set.count = count;
	if (resources)
		status = copy_keys(call, resources, count, copy);
	if (NT_SUCCESS(status) && handles) {
		status = vmm_copy_in(handles, count, VMM_KMT_HANDLES_MAX, sizeof(uint32_t),
				     &copy->handles);
		/* An empty array counts as given (OFR-02). */
		copy->set.allocations = copy->handles ? copy->handles : handles;
	}
	return status;
}

static void free_set(struct set_copy *copy)
{
	vmm_free(copy->handles);
	vmm_free(copy->keys);
}

enum { OFFER_IMMEDIATELY = 0x1, ALLOW_DECOMMIT = 0x2 }; /* D3DKMT_OFFER_FLAGS */

/* OFR-14, OFR-16 */
static NTSTATUS offer_flags(const struct vmm_kmt_call *call, uint32_t given,
			    struct vmm_offer_request *request)
{
	struct vmm_observe *observe = call->device->adapter->observe;

	request->flags = given & ALLOW_DECOMMIT ? 0x1 : 0; /* the bit of D3DDDI_OFFER_FLAGS */
	request->immediately = given & OFFER_IMMEDIATELY;
	if (given & ~(uint32_t)(OFFER_IMMEDIATELY | ALLOW_DECOMMIT))
		return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "OFR-14",
				       call->process->id, call->device->handle,
				       "D3DKMTOfferAllocations with reserved flags 0x%x", given);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_offer(struct vmm_kmt_call *call, const D3DKMT_OFFERALLOCATIONS *args)
{
	struct set_copy copy = {0};
	struct vmm_offer_request request = {.priority = (uint32_t)args->Priority};
	NTSTATUS status = offer_flags(call, args->Flags.Value, &request);

	if (NT_SUCCESS(status))
		status = copy_set(call, args->pResources, args->HandleList, args->NumAllocations,
				  &copy);
	if (NT_SUCCESS(status))
		status = vmm_memory_offer(call->device, &copy.set, &request);
	free_set(&copy);
	return status;
}

_Static_assert(sizeof(D3DDDI_RECLAIM_RESULT) == sizeof(int32_t), "results are copied as numbers");

NTSTATUS vmm_kmt_reclaim(const struct vmm_kmt_call *call, const struct vmm_kmt_reclaim *given,
			 struct vmm_reclaim_request *request)
{
	struct set_copy copy = {0};
	uint32_t *results = NULL;
	NTSTATUS status = copy_set(call, given->resources, given->handles, given->count, &copy);

	/* Only with a list: its copy has checked the count. */
	if (NT_SUCCESS(status) && given->results && (given->resources || given->handles)) {
		results = vmm_calloc(given->count + 1, sizeof(*results));
		status = results ? STATUS_SUCCESS : STATUS_NO_MEMORY;
	}
	request->set = copy.set;
	request->results = results;
	if (NT_SUCCESS(status))
		status = vmm_memory_reclaim(call->device, request);
	for (uint32_t i = 0; NT_SUCCESS(status) && results && i < given->count; i++)
		given->results[i] = given->boolean ? results[i] != 0 : (int32_t)results[i];
	vmm_free(results);
	free_set(&copy);
	return status;
}
