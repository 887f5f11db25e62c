/* SPDX-License-Identifier: MIT */
/*
 * pfnPresentCb. On Windows the application tells the runtime what to present and how; the driver
 * adds the allocations, and the callback's argument contains only those. This file does the same
 * (PRS-08): with a destination, the whole source is copied onto the whole destination. Without one,
 * the source must be a primary and is flipped to at the next vertical sync. D3DKMTPresent offers
 * more.
 */
#include "umd_calls.h"

/* Copies to the destination. Without one the source is flipped to. (PRS-08) */
NTSTATUS vmm_umd_present(struct vmm_door_call *call, struct vmm_context *context,
			 const D3DDDICB_PRESENT *args)
{
	DXGK_PRESENTFLAGS flags = {0};
	struct vmm_present_request request = {.source = args->hSrcAllocation,
					      .destination = args->hDstAllocation,
					      .interval = D3DDDI_FLIPINTERVAL_ONE,
					      .broadcast_count = args->BroadcastContextCount};

	(void)call;
	flags.Blt = args->hDstAllocation != 0;
	flags.Flip = !flags.Blt;
	request.flags = flags.Value;
	if (flags.Flip) {
		NTSTATUS status =
			vmm_present_source_of(context, request.source, &request.source_id);

		if (!NT_SUCCESS(status))
			return status;
	}
	return vmm_sched_present(context, &request);
}

NTSTATUS vmm_umd_check_present(const struct vmm_door_call *call, const struct vmm_context *context,
			       NTSTATUS status)
{
	if (context)
		return status;
	NTSTATUS refused = vmm_umd_refuse_context(call, "DMA-09", 0, "present: hContext");
	return NT_SUCCESS(status) ? refused : status;
}
