/* SPDX-License-Identifier: MIT */
/*
 * Split DMA buffers (SPL): split points, resources that stay bound across them, and the transition
 * from one portion to the next.
 *
 * Each portion but the last is submitted as vmm_dma.part with a separate fence id. Meanwhile the
 * buffer stays at the head of the prepare queue and holds up all later buffers (SPL-09). Once a
 * portion is complete, its allocations may be evicted, except those that the resource table still
 * references at the split point (SPL-05): these stay `active`, so they are no eviction victims. On
 * its timeline the buffer completes once, with its last portion (SPL-07).
 */
#include "sched/completion/completion.h"

#define SLOTS_PER_WORD 64u

uint32_t vmm_split_group(const struct vmm_dma *dma, uint32_t patch)
{
	uint32_t offset = dma->patches[patch].SplitOffset;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	while (patch > dma->patch_start && dma->patches[patch - 1].SplitOffset == offset)
		patch--;
	return patch;
}

uint32_t vmm_split_group_end(const struct vmm_dma *dma, uint32_t patch)
{
	uint32_t offset = dma->patches[patch].SplitOffset;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	while (patch < dma->patch_count && dma->patches[patch].SplitOffset == offset)
		patch++;
	return patch;
}

void vmm_split_end_at(struct vmm_dma *dma, uint32_t patch)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	vmm_assert(patch > dma->patch_start && patch <= dma->patch_count);
	dma->patch_end = patch;
	dma->end = patch < dma->patch_count ? dma->patches[patch].SplitOffset : dma->used_bytes;
	vmm_assert(dma->end >= dma->start && dma->end <= dma->used_bytes);
}

/* SPL-03: the rest of the buffer begins where the portion ends. */
static void begin_next_portion(struct vmm_dma *dma) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	dma->split = true;
	dma->patch_start = dma->patch_end;
	dma->start = dma->end;
	vmm_split_end_at(dma, dma->patch_count);
}

/* Queues the portion as a submission of the buffer, or of a copy of it. */
static void send_part(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_packet *part = &dma->part;

	vmm_assert_held(&sched->adapter->paging_lock);
	part->portion = true;
	part->node = dma->packet.node;
	part->timeline = dma->packet.timeline;
	part->sequence = dma->packet.sequence;
	part->overdue = 0;
	vmm_state_lock(sched->adapter);
	vmm_dma_buffer(dma)->parts_busy++;
	vmm_state_unlock(sched->adapter);
	vmm_queue_ready(sched, part);
}

/*
 * Queues the portion. The rest stays first in the prepare queue, and may be split again. (SPL-11)
 */
void vmm_split_send(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	dma->part_patch_start = dma->patch_start;
	atomic_fetch_add(&sched->splits, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_SPLIT, dma->context->device->process->id,
		  dma->context->handle, 0, dma->end, dma->patch_end, 0, 0);
	begin_next_portion(dma);
	vmm_broadcast_copy_portion(dma);
	send_part(sched, dma);
	vmm_list_for_each (link, &dma->copies)
		send_part(sched, vmm_copy_of(link));
}

/* PAT-07: if the miniport reports no slot count, each allocation list entry is one slot. */
static uint32_t slot_of(const struct vmm_sched *sched, const D3DDDI_PATCHLOCATIONLIST *e)
{
	return sched->caps->slot_count ? e->SlotId : e->AllocationIndex;
}

/*
 * Clears the set of visited slots: each DMA buffer begins with an empty resource table (PAT-06).
 * Grows the set to the largest slot that the buffer uses.
 */
static vmm_status clear_slots(struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t last = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t p = 0; p < dma->patch_count; p++) {
		uint32_t slot = slot_of(sched, &dma->patches[p]);

		last = slot > last ? slot : last;
	}
	uint32_t words = last / SLOTS_PER_WORD + 1;
	if (words > sched->slot_words) {
		uint64_t *slots = vmm_calloc(words, sizeof(*slots));

		if (!slots)
			return VMM_NO_MEMORY;
		vmm_free(sched->slots);
		sched->slots = slots;
		sched->slot_words = words;
	}
	for (uint32_t i = 0; i < words; i++)
		sched->slots[i] = 0;
	return VMM_OK;
}

static bool visit_slot(struct vmm_sched *sched, uint32_t slot) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t bit = (uint64_t)1 << slot % SLOTS_PER_WORD,
		 *word = &sched->slots[slot / SLOTS_PER_WORD];
	bool first = !(*word & bit);

	vmm_assert_held(&sched->adapter->paging_lock);
	*word |= bit;
	return first;
}

/*
 * The portion is complete, and everything before it on the timeline: its bound allocations are no
 * longer active for it, and one whose slot a later entry took may leave memory (PAT-08).
 */
static void unmark_bound(struct vmm_dma *dma) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t t = dma->packet.timeline;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (dma->instances[i] && vmm_split_is_bound(dma, dma->instances[i]))
			atomic_store_explicit(&dma->instances[i]->active[t],
					      dma->packet.sequence - 1, memory_order_relaxed);
}

/* SPL-14: with preemption no allocation may stay bound from one portion to the next. */
VMM_COLD static vmm_status report_leak(struct vmm_sched *sched, const struct vmm_dma *dma,
				       uint32_t patch)
{
	const D3DDDI_PATCHLOCATIONLIST *e = &dma->patches[patch];
	const struct vmm_context *context = dma->context;

	return vmm_refuse_rule(
		sched->adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, "SPL-14",
		context->device->process->id, context->handle,
		"a DMA buffer of context 0x%08x is split at offset %u, where slot %u still holds "
		"allocation list entry %u (patch location %u): a preemption-aware miniport "
		"reprograms or unbinds every slot at a split point. The device is in error",
		context->handle, dma->start, slot_of(sched, e), e->AllocationIndex, patch);
}

/*
 * Marks the allocations in the resource table at the split point as active. The patch locations are
 * scanned backwards: the first visit of a slot finds its present entry. Slots that are programmed
 * anew at the split point are not bound across it (SPL-06). Neither are entries that a NULL element
 * or another allocation has replaced (PAT-08, PAT-09).
 */
static vmm_status mark_bound(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	bool leak_checked = sched->caps->preemption_aware && !sched->caps->no_dma_patching;

	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t p = vmm_split_group_end(dma, dma->patch_start); p-- > 0;) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (!visit_slot(sched, slot_of(sched, &dma->patches[p])) || !instance ||
		    p >= dma->patch_start)
			continue;
		if (leak_checked)
			return report_leak(sched, dma, p);
		atomic_store_explicit(&instance->active[dma->packet.timeline], dma->packet.sequence,
				      memory_order_relaxed);
	}
	return VMM_OK;
}

vmm_status vmm_split_resume(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	bool busy = dma->parts_busy != 0;
	vmm_state_unlock(sched->adapter);
	if (busy)
		return VMM_PENDING;
	vmm_status status = clear_slots(sched, dma);
	if (status != VMM_OK)
		return status;
	unmark_bound(dma);
	return mark_bound(sched, dma);
}
