/* SPDX-License-Identifier: MIT */
/*
 * Split DMA buffers (SPL): where one may be split, what stays bound there, and the way from one portion to the next.
 *
 * Each portion but the last is submitted as vmm_dma.part, with a fence of its own; the buffer itself stays at the head
 * of the prepare queue, which keeps everything that was queued later behind it (SPL-09), until that portion is done.
 * What it held in memory may then leave, except what the resource table still has at the split point (SPL-05): that
 * stays `active` and so is nobody's victim. On its timeline the buffer completes once, with its last portion (SPL-07).
 */
#include "sched/sched_private.h"

#define SLOTS_PER_WORD 64u

uint32_t vmm_split_group(const struct vmm_dma *dma, uint32_t patch)
{
	uint32_t offset = dma->patches[patch].SplitOffset;

	while (patch > dma->patch_start && dma->patches[patch - 1].SplitOffset == offset)
		patch--;
	return patch;
}

uint32_t vmm_split_group_end(const struct vmm_dma *dma, uint32_t patch)
{
	uint32_t offset = dma->patches[patch].SplitOffset;

	while (patch < dma->patch_count && dma->patches[patch].SplitOffset == offset)
		patch++;
	return patch;
}

void vmm_split_end_at(struct vmm_dma *dma, uint32_t patch)
{
	vmm_assert(patch > dma->patch_start && patch <= dma->patch_count);
	dma->patch_end = patch;
	dma->end = patch < dma->patch_count ? dma->patches[patch].SplitOffset : dma->used_bytes;
	vmm_assert(dma->end >= dma->start && dma->end <= dma->used_bytes);
}

/* SPL-03: the rest begins where the portion ends. */
static void go_on(struct vmm_dma *dma)
{
	dma->split = true;
	dma->patch_start = dma->patch_end;
	dma->start = dma->end;
	vmm_split_end_at(dma, dma->patch_count);
}

/* As a submission of the buffer or of a copy of it. */
static void send_part(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_packet *part = &dma->part;

	part->portion = true;
	part->node = dma->packet.node;
	part->timeline = dma->packet.timeline;
	part->sequence = dma->packet.sequence;
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_dma_buffer(dma)->parts_busy++;
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	vmm_queue_ready(sched, part);
}

void vmm_split_send(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	dma->part_patch_start = dma->patch_start;
	atomic_fetch_add(&sched->splits, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_SPLIT, dma->context->device->process->id,
		  dma->context->handle, 0, dma->end, dma->patch_end, 0, 0);
	go_on(dma);
	vmm_broadcast_follow(dma);
	send_part(sched, dma);
	vmm_list_for_each (link, &dma->copies)
		send_part(sched, vmm_copy_of(link));
}

/* PAT-07: without a number of slots each element of the allocation list is a slot of its own. */
static uint32_t slot_of(const struct vmm_sched *sched, const D3DDDI_PATCHLOCATIONLIST *e)
{
	return sched->caps->slot_count ? e->SlotId : e->AllocationIndex;
}

/* All slots unseen: each DMA buffer begins with an empty table (PAT-06). Large enough for the largest slot that the buffer names. */
static vmm_status clear_slots(struct vmm_sched *sched, const struct vmm_dma *dma)
{
	uint32_t last = 0;

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

static bool see_first(struct vmm_sched *sched, uint32_t slot)
{
	uint64_t bit = (uint64_t)1 << slot % SLOTS_PER_WORD,
		 *word = &sched->slots[slot / SLOTS_PER_WORD];
	bool first = !(*word & bit);

	*word |= bit;
	return first;
}

/* The portion is done, and with it everything before it on the timeline. */
static void let_go(struct vmm_dma *dma)
{
	uint32_t t = dma->packet.timeline;

	for (uint32_t i = 0; i < dma->list_count; i++)
		if (dma->instances[i] && vmm_split_is_bound(dma, dma->instances[i]))
			atomic_store_explicit(&dma->instances[i]->active[t],
					      dma->packet.sequence - 1, memory_order_relaxed);
}

/* SPL-14: with preemption nothing may stay bound from one portion to the next. */
VMM_COLD static vmm_status leaks(struct vmm_sched *sched, const struct vmm_dma *dma, uint32_t patch)
{
	const D3DDDI_PATCHLOCATIONLIST *e = &dma->patches[patch];
	const struct vmm_context *context = dma->context;

	vmm_finding(
		sched->adapter->observe, "SPL-14", context->device->process->id, context->handle,
		"a DMA buffer of context 0x%08x is split at offset %u, where slot %u still holds allocation list entry %u "
		"(patch location %u): a preemption-aware miniport reprograms or unbinds every slot at a split point. The "
		"device is in error",
		context->handle, dma->start, slot_of(sched, e), e->AllocationIndex, patch);
	return STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE;
}

/*
 * The rows of the resource table at the split point. Backwards, the first look at a slot finds what it holds; those that
 * are programmed anew at the split point itself are not bound from before (SPL-06), and what a NULL element or another
 * allocation has replaced is not either (PAT-08, PAT-09).
 */
static vmm_status hold_bound(struct vmm_sched *sched, struct vmm_dma *dma)
{
	bool leak_checked = sched->caps->preemption_aware && !sched->caps->no_dma_patching;

	for (uint32_t p = vmm_split_group_end(dma, dma->patch_start); p-- > 0;) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (!see_first(sched, slot_of(sched, &dma->patches[p])) || !instance ||
		    p >= dma->patch_start)
			continue;
		if (leak_checked)
			return leaks(sched, dma, p);
		atomic_store_explicit(&instance->active[dma->packet.timeline], dma->packet.sequence,
				      memory_order_relaxed);
	}
	return VMM_OK;
}

vmm_status vmm_split_resume(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	bool busy = dma->parts_busy != 0;
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	if (busy)
		return VMM_PENDING;
	vmm_status status = clear_slots(sched, dma);
	if (status != VMM_OK)
		return status;
	let_go(dma);
	return hold_bound(sched, dma);
}
