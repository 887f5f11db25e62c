/* SPDX-License-Identifier: MIT */
/*
 * DDIs of GPU virtual addressing: processes, root page tables, submissions by virtual address.
 * Updates of page tables go through DxgkDdiBuildPagingBuffer like other paging operations.
 */
#include "port/port_internal.h"

NTSTATUS vmm_port_create_process(struct vmm_port *port, const struct vmm_port_process *process,
				 HANDLE *kmd_process)
{
	DXGKARG_CREATEPROCESS args = {.hDxgkProcess = process->handle};
	struct vmm_port_call call;
	NTSTATUS status;

	args.Flags.SystemProcess = process->system;
	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_CREATE_PROCESS))
		return STATUS_DEVICE_REMOVED;
	vmm_port_lock(port);
	port->creating = process;
	port->creator = vmm_os_thread_self(port->os);
	vmm_port_unlock(port);
	status = port->ddi.DxgkDdiCreateProcess(port->adapter, &args);
	vmm_port_lock(port);
	port->creating = NULL;
	vmm_port_unlock(port);
	vmm_port_call_end(port, &call, VIDMM_DDI_CREATE_PROCESS, status, 0, 0, 0);
	if (status == STATUS_SUCCESS)
		*kmd_process = args.hKmdProcess;
	return vmm_port_finish_create(port, "VA-01", VIDMM_DDI_CREATE_PROCESS, status,
				      STATUS_SUCCESS);
}

void vmm_port_destroy_process(struct vmm_port *port, HANDLE kmd_process)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_call_begin_object(port, &call, true, VIDMM_DDI_DESTROY_PROCESS))
		return;
	status = port->ddi.DxgkDdiDestroyProcess(port->adapter, kmd_process);
	vmm_port_call_end(port, &call, VIDMM_DDI_DESTROY_PROCESS, status, 0, 0, 0);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "PNP-03", VIDMM_DDI_DESTROY_PROCESS, status);
}

NTSTATUS vmm_port_root_table_size(struct vmm_port *port, uint32_t *entries, uint64_t *bytes)
{
	DXGKARG_GETROOTPAGETABLESIZE args = {.NumberOfPte = *entries};
	struct vmm_port_call call;
	uint64_t size;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE))
		return STATUS_DEVICE_REMOVED;
	size = port->ddi.DxgkDdiGetRootPageTableSize(port->adapter, &args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_GET_ROOT_PAGE_TABLE_SIZE, STATUS_SUCCESS,
				    *entries, args.NumberOfPte, size);
	if (size && size <= VMM_PORT_ROOT_TABLE_BYTES_MAX && size % VMM_PAGE_SIZE == 0 &&
	    args.NumberOfPte >= *entries) {
		*entries = args.NumberOfPte;
		*bytes = size;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(
		port->observe, STATUS_INVALID_PARAMETER, "VA-11", 0, 0,
		"DxgkDdiGetRootPageTableSize returned %u entries in %llu bytes for %u entries: a "
		"root table needs at least as many entries, in whole pages",
		args.NumberOfPte, (unsigned long long)size, *entries);
}

void vmm_port_set_root(struct vmm_port *port, const DXGKARG_SETROOTPAGETABLE *args)
{
	struct vmm_port_call call;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_SET_ROOT_PAGE_TABLE))
		return;
	port->ddi.DxgkDdiSetRootPageTable(port->adapter, args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_SET_ROOT_PAGE_TABLE, STATUS_SUCCESS,
				    args->Address.SegmentId, args->Address.SegmentOffset,
				    args->NumEntries);
}

NTSTATUS vmm_port_submit_virtual(struct vmm_port *port, const DXGKARG_SUBMITCOMMANDVIRTUAL *args)
{
	struct vmm_port_call call;
	NTSTATUS status;
	uint32_t irql;

	if (vmm_port_dead(port) || !vmm_port_begin(port))
		return STATUS_DEVICE_REMOVED;
	vmm_port_scheduler_enter(port);
	call = vmm_port_enter_any(port, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL);
	irql = vmm_nt_raise_of(port->nt, call.own->slot, "submit_command_virtual", VMM_NT_DISPATCH);
	status = port->ddi.DxgkDdiSubmitCommandVirtual(port->adapter, args);
	if (vmm_unlikely(vmm_nt_irql_of(call.own->slot) != VMM_NT_DISPATCH))
		vmm_port_wrong_irql(port, "submit_command_virtual", VMM_NT_DISPATCH);
	vmm_port_scheduler_leave(port);
	/* The event comes before the DPC of a miniport that completes at once. */
	vmm_port_ddi_event(port, VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, status, args->SubmissionFenceId,
			   args->DmaBufferVirtualAddress, args->DmaBufferSize);
	vmm_nt_lower_of(port->nt, call.own->slot, "submit_command_virtual", irql);
	vmm_port_leave_any(&call);
	vmm_port_end(port);
	if (status >= 0 || status == STATUS_INVALID_PARAMETER)
		return status;
	vmm_port_wrong_status(port, "SUB-23", VIDMM_DDI_SUBMIT_COMMAND_VIRTUAL, status);
	vmm_port_fatal(port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_SUBMIT, (uint32_t)status,
		       args->SubmissionFenceId);
	return STATUS_DEVICE_REMOVED;
}

NTSTATUS vmm_port_validate_command(struct vmm_port *port, DXGKARG_VALIDATESUBMITCOMMAND *args)
{
	struct vmm_port_call call;

	if (vmm_likely(!port->ddi.DxgkDdiValidateSubmitCommand))
		return STATUS_SUCCESS;
	if (!vmm_port_call_begin(port, &call, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiValidateSubmitCommand(port->adapter, args);
	return vmm_port_call_end(port, &call, VIDMM_DDI_VALIDATE_SUBMIT_COMMAND, status,
				 args->Commands, args->CommandLength, args->UmdPrivateDataSize);
}

/* ---- DxgkCbReserveGpuVirtualAddressRange ---- */

NTSTATUS vmm_port_cb_reserve(HANDLE handle, DXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE *args)
{
	struct vmm_port *port = vmm_port_of_thread();
	const struct vmm_port_process *process = NULL;
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	if (!port || !args)
		return vmm_port_cb_not_built(handle, "DxgkCbReserveGpuVirtualAddressRange");
	vmm_port_lock(port);
	if (port->creating && port->creator == vmm_os_thread_self(port->os))
		process = port->creating;
	vmm_port_unlock(port);
	if (!process || process->handle != args->hDxgkProcess)
		vmm_finding(port->observe, "VA-15", 0, 0,
			    "DxgkCbReserveGpuVirtualAddressRange(0x%llx bytes) for process %p: "
			    "allowed only inside DxgkDdiCreateProcess of that process",
			    (unsigned long long)args->SizeInBytes, args->hDxgkProcess);
	else
		status = process->reserve(process, args);
	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return status;
}
