/* SPDX-License-Identifier: MIT */
/* Devices and contexts of a D3DKMT client, and its render calls. */
#include "doors/kmt/kmt_private.h"
#include "object/stopped.h"

#include <string.h>

static NTSTATUS create_device(struct vmm_process *process, struct vmm_adapter *adapter,
			      const D3DKMT_CREATEDEVICE *args, D3DKMT_HANDLE *handle)
{
	struct vmm_device *device;

	if (!adapter)
		return STATUS_INVALID_PARAMETER;
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

KMT_API NTSTATUS APIENTRY D3DKMTCreateDevice(D3DKMT_CREATEDEVICE *pData)
{
	struct vmm_kmt_call call;
	D3DKMT_HANDLE handle = 0;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateDevice", "the argument pointer is NULL");
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_CREATE_DEVICE);
	if (!NT_SUCCESS(status))
		return status;
	D3DKMT_CREATEDEVICE args = *pData;
	struct vmm_adapter *adapter = vmm_kmt_adapter(call.process, args.hAdapter);
	status = create_device(call.process, adapter, &args, &handle);
	vmm_adapter_put(adapter);
	if (NT_SUCCESS(status)) {
		pData->hDevice = handle;
		/* Buffers belong to contexts; a device has them in LegacyMode only. */
		pData->pCommandBuffer = NULL;
		pData->CommandBufferSize = 0;
		pData->pAllocationList = NULL;
		pData->AllocationListSize = 0;
		pData->pPatchLocationList = NULL;
		pData->PatchLocationListSize = 0;
	}
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyDevice(const D3DKMT_DESTROYDEVICE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyDevice", "the argument pointer is NULL");
	D3DKMT_HANDLE handle = pData->hDevice;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_DESTROY_DEVICE);
	if (!NT_SUCCESS(status))
		return status;
	void *hazard = vmm_kmt_live_device(call.process, handle);
	struct vmm_device *device = vmm_device_end(hazard);
	if (device)
		vmm_sched_destroy_device(device);
	else if (!vmm_stopped_device_end(hazard))
		status = STATUS_INVALID_PARAMETER;
	return vmm_kmt_leave(&call, status, handle, 1, 0);
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

KMT_API NTSTATUS APIENTRY D3DKMTGetDeviceState(D3DKMT_GETDEVICESTATE *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetDeviceState", "the argument pointer is NULL");
	D3DKMT_GETDEVICESTATE args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_OTHER, true);
	call.on_stopped = false; /* it destroys nothing */
	if (NT_SUCCESS(status) && atomic_load(&call.device->adapter->closed))
		status = STATUS_DEVICE_REMOVED;
	if (NT_SUCCESS(status) && args.StateType == D3DKMT_DEVICESTATE_EXECUTION) {
		pData->ExecutionState = execution_state(call.device);
	} else if (NT_SUCCESS(status) && args.StateType == D3DKMT_DEVICESTATE_PAGE_FAULT) {
		pData->PageFaultState = page_fault_state(call.device);
	} else if (NT_SUCCESS(status)) {
		status = vmm_refuse_reason(call.device->adapter->observe, STATUS_NOT_SUPPORTED,
					   call.process->id, args.hDevice,
					   "D3DKMTGetDeviceState: state type %u is not built",
					   (unsigned)args.StateType);
	}
	return vmm_kmt_leave(&call, status, args.hDevice, 1, (uint64_t)args.StateType);
}

/* TDRS-15 */
KMT_API NTSTATUS APIENTRY D3DKMTMarkDeviceAsError(D3DKMT_MARKDEVICEASERROR *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTMarkDeviceAsError", "the argument pointer is NULL");
	D3DKMT_MARKDEVICEASERROR args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_OTHER, true);
	call.on_stopped = false; /* it destroys nothing */
	if (NT_SUCCESS(status) && atomic_load(&call.device->adapter->closed))
		status = STATUS_DEVICE_REMOVED;
	if (NT_SUCCESS(status) && args.Reason != D3DKMT_DEVICE_ERROR_REASON_GENERIC &&
	    args.Reason != D3DKMT_DEVICE_ERROR_REASON_DRIVER_ERROR)
		status = vmm_refuse_rule(call.device->adapter->observe, STATUS_INVALID_PARAMETER,
					 "TDRS-15", call.process->id, args.hDevice,
					 "D3DKMTMarkDeviceAsError: unknown Reason 0x%08x",
					 (unsigned)args.Reason);
	if (NT_SUCCESS(status))
		status = vmm_sched_mark_device(call.device, (uint32_t)args.Reason);
	return vmm_kmt_leave(&call, status, args.hDevice, 1, (uint64_t)(uint32_t)args.Reason);
}

/* ---- contexts ---- */

KMT_API NTSTATUS APIENTRY D3DKMTCreateContext(D3DKMT_CREATECONTEXT *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTCreateContext", "the argument pointer is NULL");
	D3DKMT_CREATECONTEXT args = *pData;
	struct vmm_context_request request = {
		.node = args.NodeOrdinal,
		.affinity = args.EngineAffinity,
		.flags = args.Flags.Value,
		.gdi = args.ClientHint == D3DKMT_CLIENTHINT_CDD, /* inferred */
		.private_data = args.pPrivateDriverData,
		.private_bytes = args.PrivateDriverDataSize,
	};
	NTSTATUS status =
		vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_CREATE_CONTEXT, false);
	if (NT_SUCCESS(status))
		status = vmm_sched_create_context(call.device, &request);
	if (NT_SUCCESS(status)) {
		pData->hContext = request.number;
		VMM_STORE_CONTEXT_BUFFERS(pData, , &request.buffers);
	}
	return vmm_kmt_leave(&call, status, NT_SUCCESS(status) ? request.number : 0,
			     args.NodeOrdinal, args.Flags.Value);
}

KMT_API NTSTATUS APIENTRY D3DKMTDestroyContext(const D3DKMT_DESTROYCONTEXT *pData)
{
	struct vmm_kmt_call call;
	void *device = NULL;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTDestroyContext", "the argument pointer is NULL");
	D3DKMT_HANDLE handle = pData->hContext;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_DESTROY_CONTEXT);
	if (!NT_SUCCESS(status))
		return status;
	void *hazard = vmm_kmt_live_context(call.process, handle, &device);
	status = vmm_kmt_enter_hazard(&call, device, true);
	if (NT_SUCCESS(status))
		status = vmm_sched_destroy_context(call.device, hazard);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
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
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTRender", "the argument pointer is NULL");
	/* Only the members in use are read, each once. */
	struct vmm_render_request request = {
		.command_length = pData->CommandLength,
		.command_offset = pData->CommandOffset,
		.allocation_count = pData->AllocationCount,
		.patch_count = pData->PatchLocationCount,
	};
	D3DKMT_HANDLE handle = pData->hContext;
	uint32_t others = pData->BroadcastContextCount;

	memcpy(&request.flags, &pData->Flags, sizeof(request.flags));
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
