/* SPDX-License-Identifier: MIT */
/*
 * DDIs of preemption and of timeout recovery. PreemptCommand and CancelCommand belong to the
 * scheduler class. The resets are level three: the thread that closed the call gate makes them
 * (gate.c).
 */
#include "port/port_internal.h"

#define DEBUG_BYTES 4096u /* size of the buffer for the miniport's debug information */

NTSTATUS vmm_port_preempt(struct vmm_port *port, uint32_t node, UINT fence)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	const DXGKARG_PREEMPTCOMMAND args = {.PreemptionFenceId = fence,
					     .NodeOrdinal = ordinals.node,
					     .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;
	NTSTATUS status;
	uint32_t irql;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter_any(port, VIDMM_DDI_PREEMPT_COMMAND);
	irql = vmm_nt_raise_of(port->nt, call.own->slot, "preempt_command", VMM_NT_DISPATCH);
	status = port->ddi.DxgkDdiPreemptCommand(port->adapter, &args);
	if (vmm_nt_irql_of(call.own->slot) != VMM_NT_DISPATCH)
		vmm_port_wrong_irql(port, "preempt_command", VMM_NT_DISPATCH);
	vmm_port_scheduler_leave(port);
	vmm_port_ddi_event(port, VIDMM_DDI_PREEMPT_COMMAND, status, fence, node, 0);
	vmm_nt_lower_of(port->nt, call.own->slot, "preempt_command", irql);
	vmm_port_leave_any(&call);
	vmm_port_end(port);
	if (status < 0) {
		vmm_port_wrong_status(port, "PRE-01", VIDMM_DDI_PREEMPT_COMMAND, status);
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_SUBMIT,
			       (uint32_t)status, fence);
		return STATUS_DEVICE_REMOVED;
	}
	return STATUS_SUCCESS;
}

NTSTATUS vmm_port_cancel(struct vmm_port *port, const DXGKARG_CANCELCOMMAND *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter(port, VIDMM_DDI_CANCEL_COMMAND);
	status = port->ddi.DxgkDdiCancelCommand(port->adapter, args);
	vmm_port_leave(port, &call, VIDMM_DDI_CANCEL_COMMAND);
	vmm_port_scheduler_leave(port);
	vmm_port_ddi_event(port, VIDMM_DDI_CANCEL_COMMAND, status,
			   args->DmaBufferSubmissionStartOffset, args->DmaBufferSubmissionEndOffset,
			   0);
	vmm_port_end(port);
	if (status < 0) {
		vmm_port_wrong_status(port, "TDR-12", VIDMM_DDI_CANCEL_COMMAND, status);
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_CANCEL,
			       (uint32_t)status, 0);
		return STATUS_DEVICE_REMOVED;
	}
	return STATUS_SUCCESS;
}

void vmm_port_collect_dbg_info(struct vmm_port *port, UINT reason)
{
	DXGKARG_COLLECTDBGINFO_EXT extension = {0};
	DXGKARG_COLLECTDBGINFO args = {
		.Reason = reason, .BufferSize = DEBUG_BYTES, .pExtension = &extension};
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_begin(port))
		return;
	args.pBuffer = vmm_calloc(1, DEBUG_BYTES);
	if (!args.pBuffer)
		args.BufferSize = 0; /* TDR-03: the reset does not depend on this call */
	call = vmm_port_enter(port, VIDMM_DDI_COLLECT_DBG_INFO);
	status = port->ddi.DxgkDdiCollectDbgInfo(port->adapter, &args);
	vmm_port_leave(port, &call, VIDMM_DDI_COLLECT_DBG_INFO);
	vmm_port_ddi_event(port, VIDMM_DDI_COLLECT_DBG_INFO, status, reason, 0, 0);
	vmm_free(args.pBuffer);
	vmm_port_end(port);
}

NTSTATUS vmm_port_query_dependent_engines(struct vmm_port *port, uint32_t node, ULONGLONG *mask)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	DXGKARG_QUERYDEPENDENTENGINEGROUP args = {.NodeOrdinal = ordinals.node,
						  .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter(port, VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP);
	status = port->ddi.DxgkDdiQueryDependentEngineGroup(port->adapter, &args);
	vmm_port_leave(port, &call, VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP);
	vmm_port_scheduler_leave(port);
	vmm_port_ddi_event(port, VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP, status, node,
			   args.DependentNodeOrdinalMask, 0);
	vmm_port_end(port);
	/* The dependent engines belong to the same adapter of the link. */
	*mask = args.DependentNodeOrdinalMask << ordinals.engine * port->caps.nodes_each;
	return status;
}

NTSTATUS vmm_port_reset_engine(struct vmm_port *port, uint32_t node, UINT *last_aborted)
{
	const struct vmm_port_ordinals ordinals = vmm_port_ordinals_of(port, node);
	DXGKARG_RESETENGINE args = {.NodeOrdinal = ordinals.node, .EngineOrdinal = ordinals.engine};
	struct vmm_port_call call;
	NTSTATUS status;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter(port, VIDMM_DDI_RESET_ENGINE);
	status = port->ddi.DxgkDdiResetEngine(port->adapter, &args);
	vmm_port_leave(port, &call, VIDMM_DDI_RESET_ENGINE);
	vmm_port_scheduler_leave(port);
	vmm_port_ddi_event(port, VIDMM_DDI_RESET_ENGINE, status, node, args.LastAbortedFenceId, 0);
	vmm_port_end(port);
	*last_aborted = args.LastAbortedFenceId;
	return status;
}

/* PNP-08: nothing is recovered once the device has been removed. */
static bool begin_recovery(struct vmm_port *port, struct vmm_port_call *call, enum vidmm_ddi ddi)
{
	if (atomic_load(&port->device_removed))
		return false;
	*call = vmm_port_enter(port, ddi);
	return true;
}

/* TDR-08: a failed reset or restart is fatal. */
static NTSTATUS end_recovery(struct vmm_port *port, const struct vmm_port_call *call,
			     enum vidmm_ddi ddi, NTSTATUS status)
{
	vmm_port_leave(port, call, ddi);
	vmm_port_ddi_event(port, ddi, status, 0, 0, 0);
	if (status >= 0)
		return STATUS_SUCCESS;
	vmm_port_wrong_status(port, "TDR-08", ddi, status);
	vmm_port_fatal(port, VMM_PORT_FATAL_TDR, (uint64_t)ddi, (uint32_t)status, 0);
	return STATUS_DEVICE_REMOVED;
}

NTSTATUS vmm_port_reset_from_timeout(struct vmm_port *port)
{
	struct vmm_port_call call;

	if (!begin_recovery(port, &call, VIDMM_DDI_RESET_FROM_TIMEOUT))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiResetFromTimeout(port->adapter);
	return end_recovery(port, &call, VIDMM_DDI_RESET_FROM_TIMEOUT, status);
}

NTSTATUS vmm_port_restart_from_timeout(struct vmm_port *port)
{
	struct vmm_port_call call;

	if (!begin_recovery(port, &call, VIDMM_DDI_RESTART_FROM_TIMEOUT))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiRestartFromTimeout(port->adapter);
	return end_recovery(port, &call, VIDMM_DDI_RESTART_FROM_TIMEOUT, status);
}
