/* SPDX-License-Identifier: MIT */
/* Devices and contexts of a D3DKMT client, and its render calls. */
#include "kmt_calls.h"
#include "object/stopped.h"

NTSTATUS vmm_kmt_create_device(const struct vmm_door_call *call, struct vmm_adapter *adapter,
			       const D3DKMT_CREATEDEVICE *args, D3DKMT_HANDLE *handle)
{
	struct vmm_process *process = call->process;
	struct vmm_device *device;

	if (args->Flags.Reserved)
		return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "HND-11",
				       process->id, 0,
				       "D3DKMTCreateDevice: reserved flags 0x%x are set",
				       (unsigned)args->Flags.Reserved);
	if (args->Flags.LegacyMode || args->Flags.DisableGpuTimeout)
		return vmm_refuse_reason(adapter->observe, STATUS_NOT_SUPPORTED, process->id, 0,
					 "D3DKMTCreateDevice: %s is not built",
					 args->Flags.LegacyMode ? "LegacyMode"
								: "DisableGpuTimeout");
	if (atomic_load(&adapter->closed))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = vmm_sched_create_device(process, adapter, &device);
	if (NT_SUCCESS(status))
		*handle = device->handle;
	return status;
}

NTSTATUS vmm_kmt_destroy_device(struct vmm_door_call *call, const D3DKMT_DESTROYDEVICE *args)
{
	void *hazard = vmm_kmt_live_device(call->process, args->hDevice);
	struct vmm_device *device = vmm_device_end(hazard);

	if (device)
		vmm_sched_destroy_device(device);
	else if (!vmm_stopped_device_end(hazard))
		return STATUS_INVALID_PARAMETER;
	return STATUS_SUCCESS;
}

static D3DKMT_DEVICEEXECUTION_STATE execution_state(const struct vmm_device *device)
{
	switch (atomic_load(&device->error)) {
	case VMM_DEVICE_OK:
		return D3DKMT_DEVICEEXECUTION_ACTIVE;
	case VMM_DEVICE_HUNG:
		return D3DKMT_DEVICEEXECUTION_HUNG;
	case VMM_DEVICE_RESET:
		return D3DKMT_DEVICEEXECUTION_RESET;
	case VMM_DEVICE_OUT_OF_MEMORY:
		return D3DKMT_DEVICEEXECUTION_ERROR_OUTOFMEMORY;
	case VMM_DEVICE_PAGE_FAULT:
	case VMM_DEVICE_PAGE_FAULT_RESET:
		return D3DKMT_DEVICEEXECUTION_ERROR_DMAPAGEFAULT;
	default:
		return D3DKMT_DEVICEEXECUTION_ERROR_DMAFAULT;
	}
}

/* Zeros if there was no page fault. (TDR-19) */
static D3DKMT_DEVICEPAGEFAULT_STATE page_fault_state(const struct vmm_device *device)
{
	struct vmm_page_fault_record r;
	D3DKMT_DEVICEPAGEFAULT_STATE state = {0};

	vmm_sched_page_fault(device, &r);
	state.FaultedPrimitiveAPISequenceNumber = r.sequence_number;
	state.FaultedPipelineStage = (DXGK_RENDER_PIPELINE_STAGE)r.stage;
	state.FaultedBindTableEntry = r.bind_table_entry;
	state.PageFaultFlags = (DXGK_PAGE_FAULT_FLAGS)r.flags;
	state.FaultErrorCode.IsDeviceSpecificCode = r.device_specific & 1;
	state.FaultErrorCode.GeneralErrorCode = r.code & 0x7FFFFFFF;
	state.FaultedVirtualAddress = r.virtual_address;
	return state;
}

NTSTATUS vmm_kmt_device_state(const struct vmm_door_call *call, const D3DKMT_GETDEVICESTATE *args,
			      union vmm_kmt_device_state *state)
{
	if (args->StateType == D3DKMT_DEVICESTATE_EXECUTION)
		state->execution = execution_state(call->device);
	else if (args->StateType == D3DKMT_DEVICESTATE_PAGE_FAULT)
		state->page_fault = page_fault_state(call->device);
	else
		return vmm_refuse_reason(call->observe, STATUS_NOT_SUPPORTED, call->process->id,
					 args->hDevice,
					 "D3DKMTGetDeviceState: state type %u is not built",
					 (unsigned)args->StateType);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_check_running(struct vmm_door_call *call, NTSTATUS status)
{
	call->on_stopped = false; /* it destroys nothing */
	return NT_SUCCESS(status) && atomic_load(&call->device->adapter->closed)
		       ? STATUS_DEVICE_REMOVED
		       : status;
}

/* TDRS-15 */
NTSTATUS vmm_kmt_check_reason(struct vmm_door_call *call, const D3DKMT_MARKDEVICEASERROR *args)
{
	if (args->Reason == D3DKMT_DEVICE_ERROR_REASON_GENERIC ||
	    args->Reason == D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "TDRS-15",
			       call->process->id, args->hDevice,
			       "D3DKMTMarkDeviceAsError: unknown Reason 0x%08x",
			       (unsigned)args->Reason);
}

/* ---- contexts ---- */

NTSTATUS vmm_kmt_destroy_context(struct vmm_door_call *call, const D3DKMT_DESTROYCONTEXT *args)
{
	void *device = NULL;
	void *hazard = vmm_kmt_live_context(call->process, args->hContext, &device);
	NTSTATUS status = vmm_kmt_enter_hazard(call, device, true);

	return NT_SUCCESS(status) ? vmm_sched_destroy_context(call->device, hazard) : status;
}

/* The array is read once, and only if it is used. (DMA-10) */
VMM_COLD static NTSTATUS broadcast(struct vmm_context *context, const D3DKMT_RENDER *data,
				   uint32_t count, struct vmm_render_request *request)
{
	uint32_t numbers[VMM_BROADCAST_MAX] = {0};
	const struct vmm_broadcast_names names = {.count = count, .number = numbers};

	for (uint32_t i = 0; i < count && i < VMM_BROADCAST_MAX; i++)
		numbers[i] = data->BroadcastContext[i];
	return vmm_sched_render_to(context, &names, request);
}

KMT_API NTSTATUS APIENTRY D3DKMTRender(D3DKMT_RENDER *pData)
{
	struct vmm_door_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_no_argument(VIDMM_DOOR_RENDER, "D3DKMTRender");
	/* Only the members in use are read, each once. */
	struct vmm_render_request request = {
		.command_length = pData->CommandLength,
		.command_offset = pData->CommandOffset,
		.allocation_count = pData->AllocationCount,
		.patch_count = pData->PatchLocationCount,
		.flags = vmm_kmt_bits(&pData->Flags),
	};
	D3DKMT_HANDLE handle = pData->hContext;
	uint32_t others = pData->BroadcastContextCount;

	NTSTATUS status = vmm_kmt_enter_context(&call, handle, VIDMM_DOOR_RENDER, &context);
	if (NT_SUCCESS(status))
		status = vmm_unlikely(others) ? broadcast(context, pData, others, &request)
					      : vmm_sched_render(context, &request);
	/* After success and failure: the buffers to use next. (DMA-11) */
	if (context)
		VMM_STORE_CONTEXT_BUFFERS(pData, New, vmm_sched_context_buffers(context));
	if (NT_SUCCESS(status))
		pData->QueuedBufferCount = request.queued;
	return vmm_kmt_leave(&call, status, handle, request.allocation_count, request.flags);
}
