/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiSubmitCommand, DxgkDdiPreemptCommand, DxgkDdiQueryCurrentFence: the doorbells of the
 * engines. Run at DISPATCH_LEVEL: they allocate nothing, do not block, and rarely take an engine's
 * spin lock.
 */
#include "softgpu_private.h"

/* A paging submission may have no context; from 1.2 on the node is an argument then (SUB-18). */
static uint32_t node_of(const struct softgpu_adapter *adapter, const DXGKARG_SUBMITCOMMAND *submit)
{
	const struct softgpu_context *context = submit->hContext;

	if (context)
		return context->node;
	if (adapter->settings.interface_version >= DXGKDDI_INTERFACE_VERSION_WIN8)
		return submit->NodeOrdinal;
	return adapter->settings.paging_node;
}

/* Finds the kernel address of the portion in the private data that Render and Patch stored. */
static int locate(const DXGKARG_SUBMITCOMMAND *submit, struct softgpu_packet *packet)
{
	const struct softgpu_dma_private *private_data = submit->pDmaBufferPrivateData;
	uint32_t start = submit->DmaBufferSubmissionStartOffset,
		 end = submit->DmaBufferSubmissionEndOffset;

	if (start > end || end > submit->DmaBufferSize)
		return 0;
	/* An empty packet and null rendering only signal the fence (SUB-20, SUB-22). */
	if (start == end || submit->Flags.NullRendering)
		return 1;
	if (!private_data || submit->DmaBufferPrivateDataSize < sizeof(*private_data) ||
	    !private_data->kernel_address)
		return 0;
	packet->commands = (const char *)(uintptr_t)private_data->kernel_address + start;
	packet->length = end - start;
	return 1;
}

NTSTATUS APIENTRY softgpu_submit_command(IN_CONST_HANDLE hAdapter,
					 IN_CONST_PDXGKARG_SUBMITCOMMAND pSubmitCommand)
{
	struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_engine *engine = softgpu_engine_of(adapter, node_of(adapter, pSubmitCommand),
							  pSubmitCommand->EngineOrdinal);
	struct softgpu_packet packet = {
		.fence = pSubmitCommand->SubmissionFenceId,
		.is_paging = pSubmitCommand->Flags.Paging,
		.source = pSubmitCommand->VidPnSourceId,
	};

	if (!engine || !locate(pSubmitCommand, &packet))
		return STATUS_INVALID_PARAMETER;
	return softgpu_engine_submit(engine, &packet);
}

/*
 * The running packet cannot be preempted. The answer comes after it, and also after all packets
 * submitted before unless PreemptionAware is set (PRE-06).
 */
NTSTATUS APIENTRY softgpu_preempt_command(IN_CONST_HANDLE hAdapter,
					  IN_CONST_PDXGKARG_PREEMPTCOMMAND pPreemptCommand)
{
	struct softgpu_engine *engine = softgpu_engine_of(hAdapter, pPreemptCommand->NodeOrdinal,
							  pPreemptCommand->EngineOrdinal);
	struct softgpu_packet packet = {.fence = pPreemptCommand->PreemptionFenceId,
					.is_preemption = 1};

	return engine ? softgpu_engine_submit(engine, &packet) : STATUS_INVALID_PARAMETER;
}

/*
 * A fence is published before its interrupt, so the interrupt of the fence returned here has been
 * raised or is about to be. If it was lost (LOSE_INTERRUPT), it is raised now (SUB-14).
 */
NTSTATUS APIENTRY softgpu_query_current_fence(IN_CONST_HANDLE hAdapter,
					      INOUT_PDXGKARG_QUERYCURRENTFENCE pCurrentFence)
{
	struct softgpu_engine *engine = softgpu_engine_of(hAdapter, pCurrentFence->NodeOrdinal,
							  pCurrentFence->EngineOrdinal);
	uint32_t lost;
	KIRQL irql;

	if (!engine)
		return STATUS_INVALID_PARAMETER;
	KeAcquireSpinLock(&engine->lock, &irql);
	pCurrentFence->CurrentFence = engine->completed_fence;
	lost = engine->lost_fence;
	engine->lost_fence = 0;
	KeReleaseSpinLock(&engine->lock, irql);
	if (lost)
		softgpu_raise_completed(engine, lost);
	return STATUS_SUCCESS;
}
