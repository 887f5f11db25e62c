/* SPDX-License-Identifier: MIT */
/*
 * The arguments of DxgkDdiSubmitCommand and DxgkDdiPatch for a packet, its fence id, and the
 * patching of a packet that is prepared or has to run under a new id (PAT-11, PAT-13, PAT-14).
 */
#include "sched/completion/completion.h"

/*
 * Fills the arguments of DxgkDdiSubmitCommand for the portion. The caller has set packet->fence.
 * (SUB-22)
 */
static void fill_submit(struct vmm_dma *dma, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_context *owner = vmm_dma_buffer(dma)->context;
	DXGKARG_SUBMITCOMMAND *s = &packet->submit;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	*s = (DXGKARG_SUBMITCOMMAND){
		.hContext = dma->context->kmd_context,
		.DmaBufferSegmentId = dma->place.segment,
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)dma->place.address,
		.DmaBufferSize = owner->dma_bytes,
		.DmaBufferSubmissionStartOffset = dma->start,
		.DmaBufferSubmissionEndOffset = dma->end,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = owner->dma_private_bytes,
		.DmaBufferPrivateDataSubmissionEndOffset = dma->private_used, /* from 0: SUB-19 */
		.SubmissionFenceId = packet->fence,
		.EngineOrdinal = dma->context->engine,
		.NodeOrdinal = dma->context->ordinal,
	};
	s->Flags.NullRendering = dma->null_rendering;
	if (vmm_unlikely(dma->kind->describe != NULL))
		dma->kind->describe(dma, s);
}

DXGKARG_PATCH vmm_patch_of(const DXGKARG_SUBMITCOMMAND *submit, void *dma_buffer)
{
	DXGKARG_PATCH patch = {
		.hContext = submit->hContext,
		.DmaBufferSegmentId = submit->DmaBufferSegmentId,
		.DmaBufferPhysicalAddress = submit->DmaBufferPhysicalAddress,
		.pDmaBuffer = dma_buffer,
		.DmaBufferSize = submit->DmaBufferSize,
		.DmaBufferSubmissionStartOffset = submit->DmaBufferSubmissionStartOffset,
		.DmaBufferSubmissionEndOffset = submit->DmaBufferSubmissionEndOffset,
		.pDmaBufferPrivateData = submit->pDmaBufferPrivateData,
		.DmaBufferPrivateDataSize = submit->DmaBufferPrivateDataSize,
		.DmaBufferPrivateDataSubmissionStartOffset =
			submit->DmaBufferPrivateDataSubmissionStartOffset,
		.DmaBufferPrivateDataSubmissionEndOffset =
			submit->DmaBufferPrivateDataSubmissionEndOffset,
		.SubmissionFenceId = submit->SubmissionFenceId,
		.EngineOrdinal = submit->EngineOrdinal,
	};

	patch.Flags.Paging = submit->Flags.Paging;
	patch.Flags.NullRendering = submit->Flags.NullRendering; /* SUB-22 */
	patch.Flags.Present = submit->Flags.Present;
	return patch;
}

/*
 * Has the miniport patch the packet's locations, from `first` up to but not including `end`.
 * (PAT-13)
 */
static NTSTATUS patch(struct vmm_adapter *adapter, const struct vmm_dma *dma,
		      const struct vmm_packet *packet, uint32_t first, uint32_t end)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	if (vmm_unlikely(dma->context->no_patching)) /* DMA-25 */
		return STATUS_SUCCESS;
	DXGKARG_PATCH args = vmm_patch_of(&packet->submit, dma->memory.backing.address);
	args.pAllocationList = dma->list;
	args.AllocationListSize = dma->list_count;
	args.pPatchLocationList = dma->patches;
	args.PatchLocationListSize = dma->patch_count;
	args.PatchLocationListSubmissionStart = first; /* PAT-16 */
	args.PatchLocationListSubmissionLength = end - first;
	return vmm_port_patch(adapter->port, &args);
}

/*
 * Gives a preempted packet a new id, and has it patched again. Nothing else of it changes.
 * (PRE-07, PRE-08)
 */
bool vmm_packet_renew(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_dma *dma = vmm_dma_of(packet);
	uint32_t first = packet->portion ? dma->part_patch_start : dma->patch_start,
		 end = packet->portion ? dma->patch_start : dma->patch_end;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_device_lost(dma->context->device))
		return false;
	packet->fence = vmm_fence_next(sched);
	packet->submit.SubmissionFenceId = packet->fence;
	/*
	 * A failure of patching is fatal (PAT-18). A packet that was refused because of a reset is
	 * canceled instead of submitted (TDR-12).
	 */
	(void)!NT_SUCCESS(patch(sched->adapter, dma, packet, first, end));
	if (vmm_unlikely(sched->adapter->verify))
		vmm_broadcast_verify(sched, dma, &packet->submit);
	return true;
}

/*
 * Makes one submission of the portion: sets its fence id and the arguments of Submit, and has it
 * patched. `needed`: the paging packet that must complete before it.
 */
NTSTATUS vmm_portion_launch(struct vmm_sched *sched, struct vmm_dma *dma, uint64_t needed)
{
	const struct vmm_adapter *adapter = sched->adapter;
	struct vmm_packet *packet =
		vmm_likely(dma->end == dma->used_bytes) ? &dma->packet : &dma->part;

	vmm_assert_held(&sched->adapter->paging_lock);
	packet->paging_needed = needed;
	/* On the same node the order of submission is enough (SUB-03) */
	if (dma->context->node == adapter->paging_node && adapter->physical_adapters == 1)
		packet->paging_needed = 0;
	packet->fence = vmm_fence_next(sched);
	fill_submit(dma, packet);
	NTSTATUS status = patch(sched->adapter, dma, packet, dma->patch_start, dma->patch_end);
	if (vmm_unlikely(adapter->verify) && NT_SUCCESS(status))
		vmm_broadcast_verify(sched, dma, &packet->submit);
	return status;
}
