/* SPDX-License-Identifier: MIT */
/*
 * The copies of a buffer that is broadcast (broadcast.c): a vmm_dma for each further context, with
 * packets and an entry in that context's queue, which uses the memory and lists of the buffer.
 * Copies are not in the prepare queue. Every step of preparation is done to the buffer and to its
 * copies together. So a portion has the same content for all of them (SPL-16): memory does not move
 * from their patching until the last of them is complete.
 *
 *   vmm_broadcast_add_copies      attaches copies to a buffer that is being translated
 *   vmm_broadcast_share_locked    the buffer is queued, and its copies with it
 *   vmm_broadcast_copy_portion    copies the portion that is being prepared
 *   retire.c                      frees the buffer when it and all copies are complete
 */
#include "sched/data/data.h"

bool vmm_broadcast_is_held(const struct vmm_context *owner, const struct vmm_broadcast *b)
{
	struct vmm_adapter *adapter = owner->device->adapter;

	vmm_assert_held(&owner->device->adapter->submit_lock);
	vmm_state_lock(adapter);
	uint32_t holding = owner->steps.holding;
	for (uint32_t i = 0; i < b->count; i++)
		holding += b->context[i]->steps.holding;
	vmm_state_unlock(adapter);
	if (holding)
		vmm_reason(
			adapter->observe, STATUS_NOT_SUPPORTED, owner->device->process->id,
			owner->handle,
			"DMA-10: broadcast on context 0x%08x while one of its contexts is behind a "
			"wait that is not satisfied (SUB-28): not built",
			owner->handle);
	return holding != 0;
}

static struct vmm_dma *take_copy(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *copy = NULL;

	vmm_state_lock(adapter);
	if (!vmm_list_empty(&context->free_copies)) {
		copy = vmm_container_of(context->free_copies.next, struct vmm_dma, pool);
		vmm_list_remove(&copy->pool);
	}
	vmm_state_unlock(adapter);
	if (!copy)
		copy = vmm_calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	copy->context = context;
	vmm_dma_init_links(copy);
	return copy;
}

NTSTATUS vmm_broadcast_add_copies(const struct vmm_broadcast *b, struct vmm_dma *dma)
{
	for (uint32_t i = 0; i < b->count; i++) {
		struct vmm_dma *copy = take_copy(b->context[i]);

		if (!copy)
			return STATUS_NO_MEMORY; /* vmm_dma_give_back returns the other copies */
		vmm_list_push_back(&dma->copies, &copy->copy);
	}
	return STATUS_SUCCESS;
}

void vmm_broadcast_release_locked(struct vmm_dma *dma)
{
	vmm_assert_held(&dma->context->device->adapter->state_lock);
	while (!vmm_list_empty(&dma->copies)) {
		struct vmm_dma *copy = vmm_copy_of(dma->copies.next);

		vmm_list_remove(&copy->copy);
		vmm_list_push_back(&copy->context->free_copies, &copy->pool);
	}
}

void vmm_broadcast_free_copies(struct vmm_context *context)
{
	while (!vmm_list_empty(&context->free_copies)) {
		struct vmm_list *link = context->free_copies.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_dma, pool));
	}
}

void vmm_broadcast_share_locked(struct vmm_dma *dma)
{
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->state_lock);
	dma->users = 1;
	atomic_fetch_add(&dma->context->shared_buffers, 1);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		dma->users++;
		copy->owner = dma;
		copy->kind = dma->kind;
		copy->memory.backing = dma->memory.backing;
		copy->private_data = dma->private_data;
		copy->list = dma->list;
		copy->instances = dma->instances;
		copy->uses = dma->uses;
		copy->patches = dma->patches;
		copy->list_count = dma->list_count;
		copy->patch_count = dma->patch_count;
		copy->used_bytes = dma->used_bytes;
		copy->private_used = dma->private_used;
		copy->null_rendering = dma->null_rendering;
		copy->writing = dma->writing;
		copy->work.device = copy->context->device;
		copy->work.instances = copy->instances;
		copy->work.writes = copy->uses;
	}
}

/* ---- preparation ---- */

void vmm_broadcast_copy_portion(struct vmm_dma *dma)
{
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		copy->place = dma->place;
		copy->patch_start = dma->patch_start;
		copy->patch_end = dma->patch_end;
		copy->start = dma->start;
		copy->end = dma->end;
		copy->part_patch_start = dma->part_patch_start;
		copy->split = dma->split;
	}
}

void vmm_broadcast_ready_locked(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_packet *packet = &vmm_copy_of(link)->packet;

		vmm_order_ready_locked(sched, packet);
		VMM_COUNT_PACKETS_LOCKED(sched->ready_count, 1u);
	}
}

/* ---- verification of the content (SPL-16) ---- */

/* FNV-1a: a change of one byte always changes it. */
static uint64_t checksum(const struct vmm_dma *dma, const DXGKARG_SUBMITCOMMAND *submit)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const unsigned char *bytes = (const unsigned char *)dma->memory.backing.address;
	uint64_t sum = 0xCBF29CE484222325u;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	for (uint32_t i = submit->DmaBufferSubmissionStartOffset;
	     i < submit->DmaBufferSubmissionEndOffset; i++)
		sum = (sum ^ bytes[i]) * 0x100000001B3u;
	return sum;
}

void vmm_broadcast_verify(struct vmm_sched *sched, struct vmm_dma *dma,
			  const DXGKARG_SUBMITCOMMAND *submit)
{
	struct vmm_dma *buffer = vmm_dma_buffer(dma);
	const struct vmm_context *context = dma->context;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (!buffer->users || !sched->caps->preemption_aware)
		return;
	uint64_t sum = checksum(buffer, submit);
	uint32_t start = submit->DmaBufferSubmissionStartOffset;

	if (!buffer->sum_valid || buffer->sum_start != start) {
		buffer->sum_valid = true;
		buffer->sum_start = start;
		buffer->sum = sum;
		return;
	}
	if (sum == buffer->sum)
		return;
	buffer->sum = sum; /* reported once */
	vmm_finding(
		sched->adapter->observe, "SPL-16", context->device->process->id, context->handle,
		"bytes [%u, %u) of a DMA buffer that is broadcast to %u contexts differ (checksum "
		"0x%016llx) for context 0x%08x (node %u, engine %u) from the context before: all "
		"must run the same content",
		start, submit->DmaBufferSubmissionEndOffset, buffer->users, (unsigned long long)sum,
		context->handle, context->ordinal, context->engine);
}
