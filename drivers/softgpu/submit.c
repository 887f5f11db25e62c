/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiSubmitCommand, DxgkDdiPreemptCommand, DxgkDdiQueryCurrentFence: the doorbell of the engines. Runs at
 * DISPATCH: allocates nothing, blocks nowhere, and takes an engine's spin lock seldom.
 */
#include "softgpu_private.h"

/* SUB-18: a paging submission may come without a context; from 1.2 on the node is then an argument. */
static uint32_t node_of(const struct softgpu_adapter *adapter, const DXGKARG_SUBMITCOMMAND *submit)
{
	const struct softgpu_context *context = submit->hContext;

	if (context)
		return context->node;
	if (adapter->settings.interface_version >= DXGKDDI_INTERFACE_VERSION_WIN8)
		return submit->NodeOrdinal;
	return adapter->settings.paging_node;
}

/* The kernel address of the portion, from the private data that Render and Patch left. */
static int locate(const DXGKARG_SUBMITCOMMAND *submit, struct softgpu_packet *packet)
{
	const struct softgpu_dma_private *private_data = submit->pDmaBufferPrivateData;
	uint32_t start = submit->DmaBufferSubmissionStartOffset,
		 end = submit->DmaBufferSubmissionEndOffset;

	if (start > end || end > submit->DmaBufferSize)
		return 0;
	/* SUB-20, SUB-22: an empty packet and null rendering only signal the fence. */
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
 * What runs cannot be preempted: the answer waits its turn behind it, and behind what was submitted before unless
 * PreemptionAware is set (PRE-06).
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
 * The fence is published before its interrupt, so a fence seen here never lacks one that is not under way; but for the one that
 * got lost, which comes now (SUB-14).
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
