/* SPDX-License-Identifier: MIT */
/*
 * Interrupts. The software device has no interrupt line. Instead, an engine's thread runs the
 * notification at device IRQL, synchronized with the interrupt routine.
 */
#include "softgpu_private.h"

struct notification {
	struct softgpu_adapter *adapter;
	DXGKARGCB_NOTIFY_INTERRUPT_DATA data;
};

/* Runs at device IRQL. The DPC is queued before the simulated interrupt returns (SUB-08). */
static BOOLEAN notify_at_device_irql(PVOID context)
{
	struct notification *notification = context;
	struct softgpu_adapter *adapter = notification->adapter;

	adapter->dxgk.DxgkCbNotifyInterrupt(adapter->dxgk.DeviceHandle, &notification->data);
	adapter->dxgk.DxgkCbQueueDpc(adapter->dxgk.DeviceHandle);
	return TRUE;
}

static void raise(struct notification *notification)
{
	DXGKRNL_INTERFACE *dxgk = &notification->adapter->dxgk;
	BOOLEAN result;

	/* Fails only if no interrupt is connected any more; then no thread waits for a fence. */
	(void)dxgk->DxgkCbSynchronizeExecution(dxgk->DeviceHandle, notify_at_device_irql,
					       notification, 0, &result);
}

void softgpu_raise_completed(struct softgpu_engine *engine, uint32_t fence)
{
	struct notification notification = {.adapter = engine->adapter};

	notification.data.InterruptType = DXGK_INTERRUPT_DMA_COMPLETED;
	notification.data.DmaCompleted.SubmissionFenceId = fence;
	notification.data.DmaCompleted.NodeOrdinal = engine->node;
	notification.data.DmaCompleted.EngineOrdinal = engine->adapter->link_index;
	raise(&notification);
}

void softgpu_raise_faulted(struct softgpu_engine *engine, uint32_t fence, NTSTATUS status)
{
	struct notification notification = {.adapter = engine->adapter};

	notification.data.InterruptType = DXGK_INTERRUPT_DMA_FAULTED;
	notification.data.DmaFaulted.FaultedFenceId = fence;
	notification.data.DmaFaulted.Status = status;
	notification.data.DmaFaulted.NodeOrdinal = engine->node;
	notification.data.DmaFaulted.EngineOrdinal = engine->adapter->link_index;
	raise(&notification);
}

/* The engine goes on with the next packet: no reset is required (TDR-19). */
void softgpu_raise_page_faulted(struct softgpu_engine *engine, uint32_t fence,
				const struct softgpu_fault *fault)
{
	struct notification notification = {.adapter = engine->adapter};
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *data = &notification.data;

	data->InterruptType = DXGK_INTERRUPT_DMA_PAGE_FAULTED;
	data->DmaPageFaulted.FaultedFenceId = fence;
	data->DmaPageFaulted.FaultedPipelineStage = DXGK_RENDER_PIPELINE_STAGE_UNKNOWN;
	data->DmaPageFaulted.PageFaultFlags =
		(DXGK_PAGE_FAULT_FLAGS)(fault->is_write ? DXGK_PAGE_FAULT_WRITE : 0);
	data->DmaPageFaulted.FaultedVirtualAddress = fault->address;
	data->DmaPageFaulted.NodeOrdinal = engine->node;
	data->DmaPageFaulted.EngineOrdinal = engine->adapter->link_index;
	data->DmaPageFaulted.PageTableLevel = fault->level;
	data->DmaPageFaulted.FaultErrorCode.GeneralErrorCode =
		fault->is_instruction ? DXGK_GENERAL_ERROR_INVALID_INSTRUCTION
				      : DXGK_GENERAL_ERROR_PAGE_FAULT;
	raise(&notification);
}

/* The engine executes no hardware queue until it is reset (TDR-21). */
void softgpu_raise_hw_page_faulted(struct softgpu_engine *engine,
				   const struct softgpu_packet *packet,
				   const struct softgpu_fault *fault)
{
	struct notification notification = {.adapter = engine->adapter};
	DXGKARGCB_NOTIFY_INTERRUPT_DATA *data = &notification.data;
	uint32_t flags = DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED;

	if (fault->is_write)
		flags |= DXGK_PAGE_FAULT_WRITE;
	data->InterruptType = DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED;
	data->HwQueuePageFaulted.FaultedFenceId = packet->progress_id;
	data->HwQueuePageFaulted.FaultedVirtualAddress = fault->address;
	data->HwQueuePageFaulted.FaultedHwQueue = packet->hw;
	data->HwQueuePageFaulted.NodeOrdinal = engine->node;
	data->HwQueuePageFaulted.EngineOrdinal = engine->adapter->link_index;
	data->HwQueuePageFaulted.FaultedPipelineStage = DXGK_RENDER_PIPELINE_STAGE_UNKNOWN;
	data->HwQueuePageFaulted.PageFaultFlags = (DXGK_PAGE_FAULT_FLAGS)flags;
	data->HwQueuePageFaulted.PageTableLevel = fault->level;
	data->HwQueuePageFaulted.FaultErrorCode.GeneralErrorCode =
		fault->is_instruction ? DXGK_GENERAL_ERROR_INVALID_INSTRUCTION
				      : DXGK_GENERAL_ERROR_PAGE_FAULT;
	raise(&notification);
}

void softgpu_raise_suspended(struct softgpu_engine *engine, struct softgpu_context *context,
			     uint64_t fence)
{
	struct notification notification = {.adapter = engine->adapter};

	notification.data.InterruptType = DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED;
	notification.data.SuspendContextCompleted.hContext = context;
	notification.data.SuspendContextCompleted.ContextSuspendFence = fence;
	raise(&notification);
}

void softgpu_raise_fence_signaled(struct softgpu_engine *engine)
{
	struct notification notification = {.adapter = engine->adapter};

	notification.data.InterruptType = DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED;
	notification.data.MonitoredFenceSignaled.NodeOrdinal = engine->node;
	notification.data.MonitoredFenceSignaled.EngineOrdinal = engine->adapter->link_index;
	raise(&notification);
}

void softgpu_raise_preempted(struct softgpu_engine *engine, uint32_t preemption_fence,
			     uint32_t last_completed)
{
	struct notification notification = {.adapter = engine->adapter};

	notification.data.InterruptType = DXGK_INTERRUPT_DMA_PREEMPTED;
	notification.data.DmaPreempted.PreemptionFenceId = preemption_fence;
	notification.data.DmaPreempted.LastCompletedFenceId = last_completed;
	notification.data.DmaPreempted.NodeOrdinal = engine->node;
	notification.data.DmaPreempted.EngineOrdinal = engine->adapter->link_index;
	raise(&notification);
}

/* The device asserts no interrupt line, so an interrupt that arrives is another device's. */
BOOLEAN softgpu_interrupt_routine(IN_CONST_PVOID MiniportDeviceContext, IN_ULONG MessageNumber)
{
	(void)MiniportDeviceContext;
	(void)MessageNumber;
	return FALSE;
}

VOID softgpu_dpc_routine(IN_CONST_PVOID MiniportDeviceContext)
{
	struct softgpu_adapter *adapter = MiniportDeviceContext;

	softgpu_display_dpc(&adapter->display);
	adapter->dxgk.DxgkCbNotifyDpc(adapter->dxgk.DeviceHandle);
}
