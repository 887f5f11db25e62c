/* SPDX-License-Identifier: MIT */
/*
 * DDIs of the submission path: Render, Patch, SubmitCommand, QueryCurrentFence. Each call costs one
 * event. Nothing is allocated, and Render, Patch and SubmitCommand take no lock.
 */
#include "port/port_internal.h"

/* The failures that DxgkDdiRender documents (DMA-31). */
static bool is_render_failure(NTSTATUS status)
{
	switch (status) {
	case STATUS_NO_MEMORY:
	case STATUS_PRIVILEGED_INSTRUCTION:
	case STATUS_ILLEGAL_INSTRUCTION:
	case STATUS_INVALID_PARAMETER:
	case STATUS_INVALID_USER_BUFFER:
	case STATUS_INVALID_HANDLE:
	case STATUS_GRAPHICS_DRIVER_MISMATCH:
	case STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE:
		return true;
	default:
		return false;
	}
}

VMM_COLD static NTSTATUS out_of_bounds(struct vmm_port *port, const struct vmm_port_limits *limits,
				       const struct vmm_port_outputs *before,
				       const struct vmm_port_outputs *after)
{
	uint64_t commands = (uintptr_t)after->commands - (uintptr_t)before->commands;
	uint64_t private_data = (uintptr_t)after->private_data - (uintptr_t)before->private_data;
	uint64_t patches = (uintptr_t)after->patches - (uintptr_t)before->patches;

	vmm_finding(port->observe, "DMA-28", 0, 0,
		    "%s moved pDmaBuffer by %lld of %u bytes, private data by %lld of %u, "
		    "pPatchLocationListOut by %lld of %llu",
		    limits->function, (long long)commands, limits->command_bytes,
		    (long long)private_data, limits->private_bytes, (long long)patches,
		    (unsigned long long)limits->patch_bytes);
	vmm_port_overflow(port, limits->ddi, commands, limits->command_bytes, private_data,
			  limits->private_bytes);
	return STATUS_DEVICE_REMOVED;
}

NTSTATUS vmm_port_check_outputs(struct vmm_port *port, const struct vmm_port_limits *limits,
				const struct vmm_port_outputs *before,
				const struct vmm_port_outputs *after)
{
	if (vmm_likely(vmm_port_advanced(before->commands, after->commands, limits->command_bytes,
					 1) &&
		       vmm_port_advanced(before->private_data, after->private_data,
					 limits->private_bytes, 1) &&
		       vmm_port_advanced(before->patches, after->patches, limits->patch_bytes,
					 sizeof(D3DDDI_PATCHLOCATIONLIST))))
		return STATUS_SUCCESS;
	return out_of_bounds(port, limits, before, after);
}

NTSTATUS vmm_port_render(struct vmm_port *port, HANDLE context, DXGKARG_RENDER *args)
{
	const DXGKARG_RENDER before = *args;
	const struct vmm_port_limits limits =
		VMM_PORT_LIMITS("DxgkDdiRender", VIDMM_DDI_RENDER, &before);
	const struct vmm_port_outputs from = VMM_PORT_OUTPUTS(&before);
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_unlikely(!port->ddi.DxgkDdiRender || !port->ddi.DxgkDdiPatch))
		return vmm_port_lacks(port,
				      port->ddi.DxgkDdiRender ? "DxgkDdiPatch" : "DxgkDdiRender");
	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_RENDER))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiRender(context, args);
	if (vmm_unlikely(port->verify))
		vmm_port_verify_outputs(port, &limits, &from);
	vmm_port_call_end(
		port, &call, VIDMM_DDI_RENDER, status, before.CommandLength,
		(uintptr_t)args->pDmaBuffer - (uintptr_t)before.pDmaBuffer,
		((uintptr_t)args->pPatchLocationListOut - (uintptr_t)before.pPatchLocationListOut) /
			sizeof(*before.pPatchLocationListOut));
	if (vmm_unlikely(status != STATUS_SUCCESS &&
			 status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER))
		return vmm_port_failed(port, "DMA-31", VIDMM_DDI_RENDER, status,
				       is_render_failure(status));
	const struct vmm_port_outputs to = VMM_PORT_OUTPUTS(args);
	NTSTATUS checked = vmm_port_check_outputs(port, &limits, &from, &to);
	return checked == STATUS_SUCCESS ? status : checked;
}

VMM_COLD static void verify_patched(struct vmm_port *port, const DXGKARG_PATCH *args)
{
	const struct vmm_port_limits limits = {
		"DxgkDdiPatch", VIDMM_DDI_PATCH, args->DmaBufferSize,
		args->pDmaBufferPrivateData ? args->DmaBufferPrivateDataSize : 0, 0};
	const struct vmm_port_outputs buffers = {args->pDmaBuffer, args->pDmaBufferPrivateData,
						 NULL};

	vmm_port_verify_outputs(port, &limits, &buffers);
}

NTSTATUS vmm_port_patch(struct vmm_port *port, const DXGKARG_PATCH *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_unlikely(vmm_port_dead(port)))
		return STATUS_DEVICE_REMOVED;
	vmm_assert(args->DmaBufferSubmissionStartOffset <= args->DmaBufferSubmissionEndOffset &&
		   args->DmaBufferSubmissionEndOffset <= args->DmaBufferSize);
	/* PAT-17: a paging buffer has no lists. */
	vmm_assert(!args->Flags.Paging ||
		   (!args->pAllocationList && !args->AllocationListSize &&
		    !args->pPatchLocationList && !args->PatchLocationListSize &&
		    !args->PatchLocationListSubmissionStart &&
		    !args->PatchLocationListSubmissionLength));
	/* PAT-17: only paging buffers get here without Render and Patch. They need no patching. */
	if (vmm_unlikely(!port->ddi.DxgkDdiPatch)) {
		vmm_assert(args->Flags.Paging);
		return STATUS_SUCCESS;
	}
	if (!vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter(port, VIDMM_DDI_PATCH);
	status = port->ddi.DxgkDdiPatch(port->adapter, args);
	if (vmm_unlikely(port->verify))
		verify_patched(port, args);
	vmm_port_leave(port, &call, VIDMM_DDI_PATCH);
	vmm_port_scheduler_leave(port);
	vmm_port_end(port);
	vmm_port_ddi_event(port, VIDMM_DDI_PATCH, status, args->SubmissionFenceId,
			   args->DmaBufferSubmissionStartOffset,
			   args->PatchLocationListSubmissionLength);
	if (vmm_unlikely(status < 0)) {
		vmm_port_wrong_status(port, "PAT-18", VIDMM_DDI_PATCH, status);
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_PATCH, (uint32_t)status,
			       args->SubmissionFenceId);
		return STATUS_DEVICE_REMOVED;
	}
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_submit(struct vmm_port *port, const DXGKARG_SUBMITCOMMAND *args)
{
	struct vmm_port_call call;
	NTSTATUS status;
	uint32_t irql;

	if (vmm_unlikely(vmm_port_dead(port)))
		return STATUS_DEVICE_REMOVED;
	vmm_assert(args->SubmissionFenceId); /* SUB-01 */
	if (!vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter_any(port, VIDMM_DDI_SUBMIT_COMMAND);
	irql = vmm_nt_raise_of(port->nt, call.own->slot, "submit_command", VMM_NT_DISPATCH);
	status = port->ddi.DxgkDdiSubmitCommand(port->adapter, args);
	if (vmm_unlikely(vmm_nt_irql_of(call.own->slot) != VMM_NT_DISPATCH))
		vmm_port_wrong_irql(port, "submit_command", VMM_NT_DISPATCH);
	vmm_port_scheduler_leave(port);
	/* The event is emitted before the DPC of a miniport that completes the packet at once. */
	vmm_port_ddi_event(port, VIDMM_DDI_SUBMIT_COMMAND, status, args->SubmissionFenceId,
			   args->DmaBufferSubmissionStartOffset,
			   args->DmaBufferSubmissionEndOffset);
	vmm_nt_lower_of(port->nt, call.own->slot, "submit_command", irql);
	vmm_port_leave_any(&call);
	vmm_port_end(port);
	if (vmm_unlikely(status < 0)) {
		vmm_port_wrong_status(port, "SUB-05", VIDMM_DDI_SUBMIT_COMMAND, status);
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_SUBMIT,
			       (uint32_t)status, args->SubmissionFenceId);
		return STATUS_DEVICE_REMOVED;
	}
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_query_current_fence(struct vmm_port *port, uint32_t node, UINT *fence)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	DXGKARG_QUERYCURRENTFENCE args = {.NodeOrdinal = ordinals.node,
					  .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;
	NTSTATUS status;

	/* A ComputeOnly miniport reports every completion, or its packet times out. */
	if (!port->ddi.DxgkDdiQueryCurrentFence)
		return STATUS_NOT_SUPPORTED;
	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_QUERY_CURRENT_FENCE))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiQueryCurrentFence(port->adapter, &args);
	vmm_port_call_end(port, &call, VIDMM_DDI_QUERY_CURRENT_FENCE, status, node,
			  args.CurrentFence, 0);
	if (status == STATUS_SUCCESS)
		*fence = args.CurrentFence;
	else
		vmm_port_wrong_status(port, "SUB-14", VIDMM_DDI_QUERY_CURRENT_FENCE, status);
	return status;
}
