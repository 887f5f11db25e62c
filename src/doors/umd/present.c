/* SPDX-License-Identifier: MIT */
/*
 * pfnPresentCb, and the presents on hardware queues. On Windows the application tells the runtime what to present and how; the driver
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

/* ---- on a hardware queue (PRS-10) ---- */

/* Without a destination it would be a flip, which the core refuses. */
static NTSTATUS present_on_queue(const struct vmm_door_call *call,
				 struct vmm_present_request *request,
				 struct vmm_hw_present_request *hw)
{
	DXGK_PRESENTFLAGS flags = {0};

	flags.Blt = request->destination != 0;
	flags.Flip = !flags.Blt;
	request->flags = flags.Value;
	request->interval = D3DDDI_FLIPINTERVAL_ONE;
	hw->present = request;
	return vmm_hw_present(call->device, hw);
}

NTSTATUS vmm_umd_present_blt(const struct vmm_door_call *call,
			     const D3DDDICB_SUBMITPRESENTBLTTOHWQUEUE *args,
			     const void *private_data)
{
	struct vmm_present_request request = {.source = args->hSrcAllocation,
					      .destination = args->hDstAllocation,
					      .private_data = private_data,
					      .private_bytes = args->PrivateDriverDataSize};
	struct vmm_hw_present_request hw = {.queue = vmm_umd_number(args->hHwQueue),
					    .id = args->HwQueueProgressFenceId};

	return present_on_queue(call, &request, &hw);
}

static NTSTATUS check_queue_count(const struct vmm_door_call *call, uint32_t count)
{
	if (!count)
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "Q-342",
				       call->process->id, 0,
				       "pfnSubmitPresentToHwQueueCb: BroadcastHwQueueCount is 0, "
				       "but it counts every queue");
	return count == 1 ? STATUS_SUCCESS
			  : vmm_refuse_reason(call->observe, STATUS_NOT_SUPPORTED,
					      call->process->id, 0,
					      "Q-342: pfnSubmitPresentToHwQueueCb: a present on %u "
					      "hardware queues is not built",
					      count);
}

/* the argument has no id, so the library chooses the next one. */
NTSTATUS vmm_umd_present_to_queue(const struct vmm_door_call *call,
				  const D3DDDICB_SUBMITPRESENTTOHWQUEUE *args,
				  const struct vmm_umd_present_arrays *arrays, uint32_t *queue)
{
	NTSTATUS status = check_queue_count(call, args->BroadcastHwQueueCount);

	if (!NT_SUCCESS(status))
		return status;
	struct vmm_present_request request = {
		.source = arrays->sources[0],
		.destination = arrays->destinations ? arrays->destinations[0] : 0,
		.private_data = arrays->private_data,
		.private_bytes = args->PrivateDriverDataSize};
	struct vmm_hw_present_request hw = {
		.queue = vmm_umd_number((HANDLE)(uintptr_t)arrays->queues[0]), .next = true};

	*queue = hw.queue;
	return present_on_queue(call, &request, &hw);
}
