/* SPDX-License-Identifier: MIT */
/*
 * Broadcast (DMA-10): one DMA buffer for several contexts of a device, each of which gets an independent submission with a
 * fence of its own, in its own order.
 *
 * Besides the buffer, which is the owner's, there is a *copy* for each further context: a vmm_dma that has packets and
 * a place in its context's queue, and whose memory and lists are the buffer's. Copies are not in the prepare queue: whatever is
 * done to the buffer there, is done to them in the same moment. So a portion has one content for all of them (SPL-16):
 * memory stays where it is from their patching until the last of them is done with it.
 *
 *   vmm_sched_render_to   which contexts; none of them goes before it returns
 *   vmm_broadcast_equip   copies for a buffer that is being translated
 *   vmm_broadcast_lend    it is queued: so are they
 *   vmm_broadcast_follow  the portion that is being prepared is theirs, too
 *   vmm_dma_put           the buffer is free again when it and all of them are complete
 */
#include "sched/submission.h"

/* ---- for which contexts ---- */

static NTSTATUS refuse(const struct vmm_context *owner, uint32_t index, const char *why)
{
	vmm_finding(owner->device->adapter->observe, "DMA-10", owner->device->process->id,
		    owner->handle, "broadcast on context 0x%08x refused: BroadcastContext[%u] %s",
		    owner->handle, index, why);
	return STATUS_INVALID_PARAMETER;
}

/* What the callbacks or the D3DKMT functions know a context by; process lock held. */
static struct vmm_context *find_locked(const struct vmm_device *device,
				       const struct vmm_broadcast_names *names, uint32_t index)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &device->contexts) {
		struct vmm_context *context = vmm_container_of(link, struct vmm_context, link);

		if (names->live ? context->live == names->live[index]
				: context->handle == names->number[index])
			return context;
	}
	return NULL;
}

static NTSTATUS add_locked(const struct vmm_context *owner, const struct vmm_broadcast_names *names,
			   struct vmm_broadcast *b)
{
	struct vmm_context *context = find_locked(owner->device, names, b->count);

	if (!context)
		return refuse(owner, b->count, "is not a live context of the same device");
	if (context == owner)
		return refuse(owner, b->count, "is the context that owns the buffer");
	for (uint32_t i = 0; i < b->count; i++)
		if (b->context[i] == context)
			return refuse(owner, b->count, "has been named before");
	if (owner->dma_segment_set && context->engine != owner->engine) {
		vmm_reason(
			owner->device->adapter->observe, STATUS_NOT_SUPPORTED,
			owner->device->process->id, owner->handle,
			"DMA-10: broadcast on context 0x%08x to another adapter of its link: not built "
			"where DMA buffers are in an aperture (DmaBufferSegmentSet 0x%x)",
			owner->handle, owner->dma_segment_set);
		return STATUS_NOT_SUPPORTED;
	}
	atomic_fetch_add(&context->borrowed, 1);
	b->context[b->count++] = context;
	return STATUS_SUCCESS;
}

static void let_go(const struct vmm_context *owner, struct vmm_broadcast *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		atomic_fetch_sub(&b->context[i]->borrowed, 1);
	if (b->count)
		vmm_progress_signal(owner->device->adapter);
}

static NTSTATUS take(const struct vmm_context *owner, const struct vmm_broadcast_names *names,
		     struct vmm_broadcast *b)
{
	struct vmm_process *process = owner->device->process;
	NTSTATUS status = STATUS_SUCCESS;

	b->count = 0;
	if (names->count > VMM_BROADCAST_MAX) {
		vmm_finding(
			owner->device->adapter->observe, "DMA-10", process->id, owner->handle,
			"broadcast on context 0x%08x refused: BroadcastContextCount %u, at most %u",
			owner->handle, names->count, VMM_BROADCAST_MAX);
		return STATUS_INVALID_PARAMETER;
	}
	vmm_os_mutex_lock(&process->lock);
	while (b->count < names->count && NT_SUCCESS(status))
		status = add_locked(owner, names, b);
	vmm_os_mutex_unlock(&process->lock);
	return status;
}

NTSTATUS vmm_sched_render_to(struct vmm_context *context, const struct vmm_broadcast_names *names,
			     struct vmm_render_request *request)
{
	struct vmm_broadcast to;
	NTSTATUS status = take(context, names, &to);

	if (NT_SUCCESS(status)) {
		request->broadcast = &to;
		status = vmm_sched_render(context, request);
		request->broadcast = NULL;
	}
	let_go(context, &to);
	return status;
}

bool vmm_broadcast_is_held(const struct vmm_context *owner, const struct vmm_broadcast *b)
{
	struct vmm_adapter *adapter = owner->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	uint32_t holding = owner->steps.holding;
	for (uint32_t i = 0; i < b->count; i++)
		holding += b->context[i]->steps.holding;
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (holding)
		vmm_reason(
			adapter->observe, STATUS_NOT_SUPPORTED, owner->device->process->id,
			owner->handle,
			"DMA-10: broadcast on context 0x%08x while one of its contexts is behind a "
			"wait that is not satisfied (SUB-28): not built",
			owner->handle);
	return holding != 0;
}

void vmm_broadcast_await_calls(const struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&context->borrowed) ||
		    vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				"a call that broadcasts to a context", 0) == VMM_UNSUCCESSFUL)
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
}

/* ---- copies ---- */

static struct vmm_dma *take_copy(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_dma *copy = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	if (!vmm_list_empty(&context->free_copies)) {
		copy = vmm_container_of(context->free_copies.next, struct vmm_dma, pool);
		vmm_list_remove(&copy->pool);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (!copy)
		copy = vmm_calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	copy->context = context;
	vmm_dma_init_links(copy);
	return copy;
}

NTSTATUS vmm_broadcast_equip(const struct vmm_broadcast *b, struct vmm_dma *dma)
{
	for (uint32_t i = 0; b && i < b->count; i++) {
		struct vmm_dma *copy = take_copy(b->context[i]);

		if (!copy)
			return STATUS_NO_MEMORY; /* vmm_dma_give_back sees to the others */
		vmm_list_push_back(&dma->copies, &copy->copy);
	}
	return STATUS_SUCCESS;
}

void vmm_broadcast_release_locked(struct vmm_dma *dma)
{
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

void vmm_broadcast_lend_locked(struct vmm_dma *dma)
{
	struct vmm_list *link;

	dma->users = 1;
	atomic_fetch_add(&dma->context->lent, 1);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		dma->users++;
		copy->owner = dma;
		copy->backing = dma->backing;
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

void vmm_broadcast_await_copies(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&context->lent))
			return;
		if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			vmm_sched_abandon(adapter);
	}
}

/* ---- preparation ---- */

void vmm_broadcast_follow(struct vmm_dma *dma)
{
	struct vmm_list *link;

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

	vmm_list_for_each (link, &dma->copies) {
		struct vmm_packet *packet = &vmm_copy_of(link)->packet;

		vmm_order_ready_locked(&sched->node[packet->node], packet);
		atomic_fetch_add(&sched->ready_count, 1);
	}
}

/* ---- one content (SPL-16) ---- */

/* FNV-1a: any change of a byte changes it. */
static uint64_t checksum(const struct vmm_dma *dma, const DXGKARG_SUBMITCOMMAND *submit)
{
	const unsigned char *bytes = (const unsigned char *)dma->backing.address;
	uint64_t sum = 0xCBF29CE484222325u;

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

	if (!buffer->users || !sched->caps->preemption_aware)
		return;
	uint64_t sum = checksum(buffer, submit);
	uint32_t start = submit->DmaBufferSubmissionStartOffset;

	if (!buffer->summed || buffer->sum_start != start) {
		buffer->summed = true;
		buffer->sum_start = start;
		buffer->sum = sum;
		return;
	}
	if (sum == buffer->sum)
		return;
	buffer->sum = sum; /* said once */
	vmm_finding(
		sched->adapter->observe, "SPL-16", context->device->process->id, context->handle,
		"bytes [%u, %u) of a DMA buffer that is broadcast to %u contexts have another content (checksum "
		"0x%016llx) for context 0x%08x (node %u, engine %u) than for the one before: they share its memory",
		start, submit->DmaBufferSubmissionEndOffset, buffer->users, (unsigned long long)sum,
		context->handle, context->ordinal, context->engine);
}
