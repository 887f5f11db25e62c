/* SPDX-License-Identifier: MIT */
/*
 * Packets of lost devices, which will never run (TDR-12): DxgkDdiCancelCommand, and the marks by
 * which they complete in their turn.
 */
#include "sched/resets/resets.h"

static DXGKARG_CANCELCOMMAND cancel_of(const struct vmm_dma *dma, const struct vmm_context *owner)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	return (DXGKARG_CANCELCOMMAND){
		.hContext = dma->context->kmd_context,
		.pDmaBuffer = dma->memory.backing.address,
		.DmaBufferSize = owner->dma_bytes,
		.DmaBufferSubmissionStartOffset = dma->start,
		.DmaBufferSubmissionEndOffset = dma->end,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = owner->dma_private_bytes,
		.DmaBufferPrivateDataSubmissionEndOffset = dma->private_used,
		.pAllocationList = dma->list,
		.AllocationListSize = dma->list_count,
		.pPatchLocationList = dma->patches,
		.PatchLocationListSize = dma->patch_count,
		.PatchLocationListSubmissionStart = dma->patch_start,
		.PatchLocationListSubmissionLength = dma->patch_end - dma->patch_start,
	};
}

void vmm_cancel_packet(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_dma *dma = vmm_dma_of(packet);
	DXGKARG_CANCELCOMMAND args = cancel_of(dma, vmm_dma_buffer(dma)->context);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (!sched->caps->cancel_command_aware || dma->kind->in_turn)
		return;
	if (packet->portion) { /* the rest of the buffer gets a separate call */
		args.DmaBufferSubmissionStartOffset = packet->submit.DmaBufferSubmissionStartOffset;
		args.DmaBufferSubmissionEndOffset = packet->submit.DmaBufferSubmissionEndOffset;
		args.PatchLocationListSubmissionStart = dma->part_patch_start;
		args.PatchLocationListSubmissionLength = dma->patch_start - dma->part_patch_start;
	}
	(void)!NT_SUCCESS(vmm_port_cancel(sched->adapter->port, &args));
}

/*
 * Marks the next ready packet of a lost device as canceled and returns it; NULL: there is none.
 * The packet completes in its turn, when a holder of the paging lock next drains the queue.
 */
static struct vmm_packet *mark_lost(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_packet *found = NULL;
	struct vmm_list *link, *at;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	vmm_list_for_each (link, &node->contexts) {
		const struct vmm_context *context =
			vmm_container_of(link, struct vmm_context, turn.link);

		if (found || !vmm_device_lost(context->device))
			continue;
		vmm_list_for_each (at, &context->turn.ready) {
			struct vmm_packet *packet = vmm_container_of(at, struct vmm_packet, link);

			if (!found && !packet->cancelled)
				found = packet;
		}
	}
	if (found) {
		found->cancelled = true;
		node->cancelled++;
	}
	vmm_state_unlock(sched->adapter);
	return found;
}

void vmm_cancel_lost(struct vmm_sched *sched)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t n = 0; n < sched->adapter->node_count; n++) {
		struct vmm_packet *packet;

		while ((packet = mark_lost(sched, &sched->node[n])) != NULL)
			vmm_cancel_packet(sched, packet);
	}
}
