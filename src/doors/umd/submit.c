/* SPDX-License-Identifier: MIT */
/* pfnRenderCb, and a step (README.md) of pfnDestroyContextCb. HANDLEs: object/hazard.h. */
#include "umd_calls.h"

NTSTATUS vmm_umd_destroy_context(struct vmm_door_call *call, const D3DDDICB_DESTROYCONTEXT *args)
{
	NTSTATUS status = vmm_sched_destroy_context(call->device, args->hContext);

	if (!NT_SUCCESS(status))
		vmm_finding(call->observe, "DMA-09", call->process->id, 0,
			    "destroy context: not a live context of device 0x%08x",
			    call->device->handle);
	return status;
}

/* The array is read once, and only if it is used: it has half a kilobyte. (DMA-10) */
VMM_COLD static NTSTATUS broadcast(struct vmm_context *context, const D3DDDICB_RENDER *data,
				   uint32_t count, struct vmm_render_request *request)
{
	HANDLE handles[VMM_BROADCAST_MAX] = {NULL};
	const struct vmm_broadcast_names names = {.count = count, .hazard = handles};

	for (uint32_t i = 0; i < count && i < VMM_BROADCAST_MAX; i++)
		handles[i] = data->BroadcastContext[i];
	return vmm_sched_render_to(context, &names, request);
}

HRESULT APIENTRY vmm_umd_render(HANDLE device, D3DDDICB_RENDER *data)
{
	struct vmm_door_call call;
	struct vmm_context *context;
	HANDLE handle = data ? data->hContext : NULL;
	NTSTATUS status = vmm_umd_enter_context(&call, device, handle, VIDMM_DOOR_RENDER, &context);

	if (!call.device || !data)
		return vmm_umd_leave(&call, vmm_umd_no_argument(&call, status, "pfnRenderCb"), 0, 0,
				     0);
	/* Only the members in use are read, each once. */
	struct vmm_render_request request = {
		.command_length = data->CommandLength,
		.command_offset = data->CommandOffset,
		.allocation_count = data->NumAllocations,
		.patch_count = data->NumPatchLocations,
		.flags = data->Flags.Value,
	};
	uint32_t others = data->BroadcastContextCount;

	if (!context) {
		vmm_finding(
			call.observe, "DMA-09", call.process->id, 0,
			handle ? "render: hContext is not a live context of device 0x%08x"
			       : "render: hContext is NULL, and the first context of device 0x%08x "
				 "has ended, or there was none",
			call.device->handle);
		return vmm_umd_leave(&call, NT_SUCCESS(status) ? STATUS_INVALID_PARAMETER : status,
				     0, 0, 0);
	}
	if (NT_SUCCESS(status))
		status = vmm_unlikely(others) ? broadcast(context, data, others, &request)
					      : vmm_sched_render(context, &request);
	/* After success and failure: the buffers to use next. (DMA-02, DMA-11, DMA-12) */
	VMM_STORE_CONTEXT_BUFFERS(data, New, vmm_sched_context_buffers(context));
	if (NT_SUCCESS(status))
		data->QueuedBufferCount = request.queued;
	return vmm_umd_leave(&call, status, 0, request.allocation_count, request.flags);
}
