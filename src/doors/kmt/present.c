/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTPresent and the presents on hardware queues, the limit of queued presents, and the shared
 * primary of a source.
 */
#include "kmt_calls.h"

enum { SUB_RECTS_MAX = 4096, PRIVATE_BYTES_MAX = 1048576 };

/*
 * Returns the part of the request that is not built, NULL if all of it is: blits, fills and flips
 * of a source.
 */
static const char *unbuilt(const D3DKMT_PRESENT *args)
{
	const D3DKMT_PRESENTFLAGS f = args->Flags;

	if (f.FlipDoNotFlip || f.FlipRestart || f.RestrictVidPnSource || f.PresentToBitmap)
		return "FlipDoNotFlip, FlipRestart, RestrictVidPnSource or PresentToBitmap";
	if (f.RedirectedFlip || f.RedirectedBlt || f.PresentHistoryTokenOnly ||
	    f.PresentRegionsValid || f.PresentIndirect)
		return "presenting to a compositor";
	if (f.FlipStereo || f.FlipStereoTemporaryMono || f.FlipStereoPreferRight ||
	    f.BltStereoUseRight)
		return "stereo";
	if (f.PresentDDA || f.ProtectedContentBlankedOut || f.RemoteSession || f.CrossAdapter ||
	    f.DurationValid || f.PresentHMD)
		return "a present of a special kind";
	return args->hWindow ? "a present into a window" : NULL;
}

static uint32_t kernel_flags(D3DKMT_PRESENTFLAGS f)
{
	DXGK_PRESENTFLAGS k = {0};

	k.Blt = f.Blt;
	k.ColorFill = f.ColorFill;
	k.Flip = f.Flip;
	k.SrcColorKey = f.SrcColorKey;
	k.DstColorKey = f.DstColorKey;
	k.LinearToSrgb = f.LinearToSrgb;
	k.Rotate = f.Rotate;
	return k.Value;
}

NTSTATUS vmm_kmt_present_in(const struct vmm_door_call *call, const char *function,
			    const D3DKMT_PRESENT *args, struct vmm_context *context,
			    struct vmm_hw_present_request *hw)
{
	const char *what = unbuilt(args);
	const uint32_t object = hw ? hw->queue : args->hContext;
	struct vmm_present_request request = {
		.source = args->hSource,
		.destination = args->hDestination,
		.source_id = args->VidPnSourceId,
		.flags = kernel_flags(args->Flags),
		.color = args->Color,
		.source_rect_valid = args->Flags.SrcRectValid,
		.destination_rect_valid = args->Flags.DstRectValid,
		.source_rect = args->SrcRect,
		.destination_rect = args->DstRect,
		.sub_rect_count = args->SubRectCnt,
		.interval = args->FlipInterval,
		.broadcast_count = (uint32_t)args->BroadcastContextCount,
		.do_not_wait = args->Flags.FlipDoNotWait,
		.private_bytes = args->PrivateDriverDataSize,
	};
	void *rects = NULL, *private_data = NULL;

	if (args->Flags.Reserved)
		return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "HND-11",
				       call->process->id, object, "%s: reserved flags (0x%x)",
				       function, (unsigned)args->Flags.Value);
	if (what)
		return vmm_refuse_reason(call->observe, STATUS_NOT_SUPPORTED, call->process->id,
					 object, "%s: %s is not built (flags 0x%x)", function, what,
					 (unsigned)args->Flags.Value);
	NTSTATUS status = vmm_door_copy(call, "pSrcSubRects", args->pSrcSubRects, args->SubRectCnt,
					SUB_RECTS_MAX, sizeof(RECT), &rects);
	request.sub_rects = rects;
	if (NT_SUCCESS(status))
		status = vmm_door_copy(call, "pPrivateDriverData", args->pPrivateDriverData,
				       request.private_bytes, PRIVATE_BYTES_MAX, 1, &private_data);
	request.private_data = private_data;
	if (hw)
		hw->present = &request;
	if (NT_SUCCESS(status))
		status = hw ? vmm_hw_present(call->device, hw)
			    : vmm_sched_present(context, &request);
	vmm_free(private_data);
	vmm_free(rects);
	return status;
}

/* the argument has no id, so the library chooses the next one. */
KMT_API NTSTATUS APIENTRY D3DKMTSubmitPresentToHwQueue(D3DKMT_SUBMITPRESENTTOHWQUEUE *pData)
{
	struct vmm_door_call call = {0};

	if (!pData)
		return vmm_kmt_no_argument(VIDMM_DOOR_HW_QUEUE, "D3DKMTSubmitPresentToHwQueue");
	D3DKMT_SUBMITPRESENTTOHWQUEUE args = *pData;
	if (!args.hHwQueues)
		return vmm_kmt_refuse(VIDMM_DOOR_HW_QUEUE, "D3DKMTSubmitPresentToHwQueue",
				      "the pointer hHwQueues is NULL");
	struct vmm_hw_present_request request = {.queue = *args.hHwQueues, .next = true};
	NTSTATUS status = vmm_kmt_enter_object(&call, request.queue, VIDMM_DOOR_HW_QUEUE,
					       vmm_hw_device_of_queue, false);
	if (NT_SUCCESS(status))
		status = vmm_kmt_present_in(&call, "D3DKMTSubmitPresentToHwQueue",
					    &args.PrivatePresentData, NULL, &request);
	return vmm_kmt_leave(&call, status, request.queue, 1, args.PrivatePresentData.Flags.Value);
}

/* ---- limits and primaries ---- */

/*
 * Sets or gets the limit of queued presents. No published Type names the other member of the union,
 * so the limit of pending flips cannot be set. (SUB-17)
 */
NTSTATUS vmm_kmt_queued_limit(const struct vmm_door_call *call, const D3DKMT_SETQUEUEDLIMIT *args,
			      UINT *limit)
{
	struct vmm_device *device = call->device;

	if (args->Type == D3DKMT_SET_QUEUEDLIMIT_PRESENT) {
		vmm_present_set_limit(device, args->QueuedPresentLimit);
		return STATUS_SUCCESS;
	}
	if (args->Type == D3DKMT_GET_QUEUEDLIMIT_PRESENT) {
		*limit = vmm_present_limit(device);
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "SUB-17",
			       call->process->id, args->hDevice,
			       "D3DKMTSetQueuedLimit: unknown Type %u", (unsigned)args->Type);
}

NTSTATUS vmm_kmt_shared_primary(const struct vmm_door_call *call,
				const D3DKMT_GETSHAREDPRIMARYHANDLE *args, uint32_t *handle)
{
	struct vmm_adapter *adapter = vmm_kmt_adapter(call->process, args->hAdapter);

	if (adapter)
		*handle = vmm_share_primary(adapter, args->VidPnSourceId);
	vmm_adapter_put(adapter);
	if (*handle)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "PRS-02", call->process->id,
			       args->hAdapter,
			       "D3DKMTGetSharedPrimaryHandle: %s (VidPnSourceId %u)",
			       adapter ? "the source has no shared primary" : "no live adapter",
			       (unsigned)args->VidPnSourceId);
}
