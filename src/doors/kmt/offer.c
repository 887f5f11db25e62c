/* SPDX-License-Identifier: MIT */
/* Steps (src/doors/README.md) of the D3DKMT functions that offer and reclaim allocations. (OFR) */
#include "kmt_calls.h"

NTSTATUS vmm_kmt_resource_keys(const struct vmm_door_call *call, const uint32_t *handles,
			       uint32_t count, void ***keys)
{
	NTSTATUS status = STATUS_SUCCESS;

	*keys = NULL;
	if (!handles)
		return STATUS_SUCCESS;
	*keys = vmm_calloc((size_t)count + 1, sizeof(**keys));
	if (!*keys)
		return STATUS_NO_MEMORY;
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		status = vmm_kmt_resource_key(call, handles[i], &(*keys)[i]);
		if (NT_SUCCESS(status) && !(*keys)[i])
			status = STATUS_INVALID_PARAMETER; /* handle 0 is not a resource */
	}
	return status;
}

enum { OFFER_IMMEDIATELY = 0x1, ALLOW_DECOMMIT = 0x2 }; /* D3DKMT_OFFER_FLAGS */

NTSTATUS vmm_kmt_offer_flags(const struct vmm_door_call *call, uint32_t given,
			     struct vmm_offer_request *request)
{
	request->flags = given & ALLOW_DECOMMIT ? 0x1 : 0; /* the bit of D3DDDI_OFFER_FLAGS */
	request->immediately = given & OFFER_IMMEDIATELY;
	if (given & ~(uint32_t)(OFFER_IMMEDIATELY | ALLOW_DECOMMIT))
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "OFR-14",
				       call->process->id, call->device->handle,
				       "D3DKMTOfferAllocations with reserved flags 0x%x", given);
	return STATUS_SUCCESS;
}
