/* SPDX-License-Identifier: MIT */
/*
 * DDIs of hardware scheduling: contexts and queues that the GPU schedules itself, priority bands,
 * suspension, reset of a hardware engine. All at PASSIVE_LEVEL. The caller ensures that at most one
 * call for a queue (SUB-27) or a context is in the miniport at a time.
 */
#include "port/port_internal.h"

NTSTATUS vmm_port_create_hw_context(struct vmm_port *port, HANDLE device,
				    DXGKARG_CREATECONTEXT *args)
{
	DXGKARG_CREATECONTEXT copy = *args;
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_CREATE_HW_CONTEXT))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiCreateHwContext(device, &copy);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_HW_CONTEXT, status, args->NodeOrdinal,
			  args->Flags.Value, 0);
	status = vmm_port_finish_create(port, "SCH-10", VIDMM_DDI_CREATE_HW_CONTEXT, status,
					STATUS_SUCCESS);
	if (status == STATUS_SUCCESS)
		*args = copy;
	return status;
}

NTSTATUS vmm_port_create_hw_queue(struct vmm_port *port, HANDLE context,
				  DXGKARG_CREATEHWQUEUE *args)
{
	DXGKARG_CREATEHWQUEUE copy = *args;
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_CREATE_HW_QUEUE))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiCreateHwQueue(context, &copy);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_HW_QUEUE, status, args->Flags.Value, 0, 0);
	status = vmm_port_finish_create(port, "SCH-10", VIDMM_DDI_CREATE_HW_QUEUE, status,
					STATUS_SUCCESS);
	if (status == STATUS_SUCCESS)
		args->hHwQueue = copy.hHwQueue;
	return status;
}

/* An object whose destruction fails counts as destroyed. */
static NTSTATUS destroy(struct vmm_port *port, enum vidmm_ddi ddi,
			NTSTATUS(APIENTRY *entry)(IN_CONST_HANDLE), HANDLE object)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, true, ddi))
		return STATUS_DEVICE_REMOVED;
	status = entry(object);
	vmm_port_call_end(port, &call, ddi, status, 0, 0, 0);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "PNP-03", ddi, status);
	return status;
}

NTSTATUS vmm_port_destroy_hw_context(struct vmm_port *port, HANDLE context)
{
	return destroy(port, VIDMM_DDI_DESTROY_HW_CONTEXT, port->ddi.DxgkDdiDestroyHwContext,
		       context);
}

NTSTATUS vmm_port_destroy_hw_queue(struct vmm_port *port, HANDLE queue)
{
	return destroy(port, VIDMM_DDI_DESTROY_HW_QUEUE, port->ddi.DxgkDdiDestroyHwQueue, queue);
}

/* ---- the caller holds the paging lock at most ---- */

NTSTATUS vmm_port_setup_priority_bands(struct vmm_port *port,
				       const DXGKARG_SETUPPRIORITYBANDS *args)
{
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_SETUP_PRIORITY_BANDS))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiSetupPriorityBands(port->adapter, args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_SETUP_PRIORITY_BANDS, status,
				 args->targetNormalBandPercentage, 0, 0);
}

NTSTATUS vmm_port_submit_to_hw_queue(struct vmm_port *port,
				     const DXGKARG_SUBMITCOMMANDTOHWQUEUE *args)
{
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiSubmitCommandToHwQueue(port->adapter, args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_SUBMIT_COMMAND_TO_HW_QUEUE, status,
				 args->HwQueueProgressFenceId, args->DmaBufferSize, 0);
}

NTSTATUS vmm_port_set_context_scheduling(struct vmm_port *port,
					 const DXGKARG_SETCONTEXTSCHEDULINGPROPERTIES *args)
{
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiSetContextSchedulingProperties(port->adapter, args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_SET_CONTEXT_SCHEDULING_PROPERTIES, status,
				 args->priorityBand, (uint32_t)args->inProcessPriority, 0);
}

NTSTATUS vmm_port_suspend_context(struct vmm_port *port, const DXGKARG_SUSPENDCONTEXT *args)
{
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_SUSPEND_CONTEXT))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiSuspendContext(port->adapter, args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_SUSPEND_CONTEXT, status,
				 args->contextSuspendFence, 0, 0);
}

NTSTATUS vmm_port_resume_context(struct vmm_port *port, HANDLE context)
{
	const DXGKARG_RESUMECONTEXT args = {.hContext = context};
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_RESUME_CONTEXT))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiResumeContext(port->adapter, &args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_RESUME_CONTEXT, status, 0, 0, 0);
}

NTSTATUS vmm_port_reset_hw_engine(struct vmm_port *port, uint32_t node)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	DXGKARG_RESETHWENGINE args = {.NodeOrdinal = ordinals.node,
				      .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_RESET_HW_ENGINE))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiResetHwEngine(port->adapter, &args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_RESET_HW_ENGINE, status, node, 0, 0);
}

NTSTATUS vmm_port_resume_hw_engine(struct vmm_port *port, uint32_t node)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	DXGKARG_RESUMEHWENGINE args = {.NodeOrdinal = ordinals.node,
				       .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;

	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_RESUME_HW_ENGINE))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiResumeHwEngine(port->adapter, &args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_RESUME_HW_ENGINE, status, node, 0, 0);
}
