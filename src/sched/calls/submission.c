/* SPDX-License-Identifier: MIT */
/*
 * What all submissions have in common; kinds.c says where they differ:
 *
 * 1. Capture the allocation list (capture.c).
 * 2. Have the miniport fill a DMA buffer (translate.c), several if one is too small.
 * 3. Check what the miniport emitted.
 * 4. Queue the DMA buffers.
 *
 * The submit lock is held from capture to queueing. So packets are queued in the order of their
 * numbers, and a captured allocation cannot be deallocated meanwhile.
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

/*
 * Reports what is wrong with a patch location. Returns STATUS_SUCCESS for one that a NULL list
 * element excuses.
 */
VMM_COLD static NTSTATUS bad_patch(const struct vmm_submission *s, const struct vmm_dma *dma,
				   uint32_t p)
{
	const D3DDDI_PATCHLOCATIONLIST *e = &dma->patches[p];
	uint32_t slots = vmm_port_caps(s->adapter->port)->slot_count;
	const char *rule = e->AllocationIndex >= dma->list_count                   ? "PAT-02"
			   : p && e->SplitOffset < dma->patches[p - 1].SplitOffset ? "PAT-04"
			   : slots && e->SlotId >= slots                           ? "PAT-07"
			   : dma->instances[e->AllocationIndex]                    ? "PAT-05"
										   : NULL;

	/* PAT-09: the location unbinds its slot; nothing is patched, so PatchOffset is ignored. */
	if (!rule)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		s->adapter->observe, STATUS_INVALID_PARAMETER, rule,
		s->context->device->process->id, s->context->handle,
		"the miniport emitted patch location %u with AllocationIndex %u (of %u), SlotId "
		"%u (of %u), PatchOffset %u, SplitOffset %u (DMA buffer of %u bytes)",
		p, e->AllocationIndex, dma->list_count, e->SlotId, slots, e->PatchOffset,
		e->SplitOffset, dma->used_bytes);
}

static NTSTATUS check_patches(const struct vmm_submission *s, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	uint32_t slots = vmm_port_caps(s->adapter->port)->slot_count;
	uint32_t slot_end = slots ? slots : UINT32_MAX;
	uint32_t split = 0;

	vmm_assert_held(&s->adapter->submit_lock);
	for (uint32_t p = 0; p < dma->patch_count; p++) {
		const D3DDDI_PATCHLOCATIONLIST *e = &dma->patches[p];

		if (vmm_unlikely((e->AllocationIndex >= dma->list_count) |
				 (e->SplitOffset < split) | (e->SlotId >= slot_end) |
				 (e->SplitOffset > e->PatchOffset) |
				 (e->PatchOffset >= dma->used_bytes))) {
			NTSTATUS status = bad_patch(s, dma, p);

			if (!NT_SUCCESS(status))
				return status;
		}
		split = e->SplitOffset;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_instances(const struct vmm_submission *s, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&s->adapter->submit_lock);
	if (!dma->renamed || !dma->patch_count)
		return STATUS_SUCCESS;
	vmm_paging_lock(s->adapter);
	for (uint32_t p = 0; p < dma->patch_count && NT_SUCCESS(status); p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (instance && instance->allocation->instance_count > 1)
			status = vmm_rename_check(instance, s->serial,
						  s->context->device->process->id);
	}
	vmm_paging_commit(s->adapter);
	return status;
}

/* DMA-31: after this status the device accepts no more submissions. */
void vmm_submission_fail_device(const struct vmm_submission *s)
{
	vmm_reason(s->adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		   s->device->process->id, s->object,
		   "%s: the miniport answered a %s on %s 0x%08x with a GPU exception: the "
		   "device is in error",
		   s->kind->words->exception_rule, s->kind->words->name, s->kind->words->on,
		   s->object);
	vmm_device_fail(s->device, VMM_DEVICE_FAULT);
}

/* The buffer is filled, and not split yet. */
static void note_filled(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	dma->kind = s->kind;
	dma->null_rendering = s->null_rendering || (dma->context->flags & 0x1);
	dma->patch_start = dma->start = 0;
	dma->patch_end = dma->patch_count;
	dma->end = dma->used_bytes;
	dma->split = false;
}

/*
 * Has the miniport fill one DMA buffer. Returns STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER if the
 * miniport has more to emit. A GPU exception puts the device in error (vmm_device_answer), which is
 * not "lost" in the sense of vmm_device_lost. (DMA-31)
 */
static NTSTATUS translate(struct vmm_submission *s, struct vmm_dma *dma, uint32_t *multipass)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	/* Lost while the call waited for the submit lock (TDR-07) */
	if (vmm_device_lost(s->context->device))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = s->kind->fill(s, dma, multipass);

	if (status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE)
		vmm_submission_fail_device(s);
	if (!NT_SUCCESS(status) && status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
		return status;
	note_filled(s, dma);
	NTSTATUS checked = s->kind->patched ? check_patches(s, dma) : STATUS_SUCCESS;
	if (NT_SUCCESS(checked))
		checked = check_instances(s, dma);
	return NT_SUCCESS(checked) ? status : checked;
}

/*
 * Records which renamed instances the buffer uses (REF-02) and which allocations it will offer
 * (OFR-10). Paging lock held.
 */
static void commit_uses(const struct vmm_submission *s, const struct vmm_dma *dma,
			uint64_t sequence) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&s->adapter->paging_lock);
	for (uint32_t p = 0; dma->renamed && p < dma->patch_count; p++)
		if (dma->instances[dma->patches[p].AllocationIndex])
			vmm_rename_used(dma->instances[dma->patches[p].AllocationIndex], s->serial);
	/* Of the pieces of one submission, the last one to be queued decides. */
	for (uint32_t i = 0; dma->offering && i < dma->list_count; i++)
		if (dma->uses[i] & VMM_USES_OFFER)
			vmm_offer_after_locked(dma->instances[i],
					       (dma->uses[i] & VMM_USES_OFFER) >>
						       VMM_USES_OFFER_SHIFT,
					       s->context->node, sequence);
}

/* `ahead` is a constant at each call. */
VMM_ALWAYS_INLINE void mark_range(const struct vmm_dma *dma, uint32_t first, uint32_t end,
				  uint32_t timeline, uint64_t sequence, bool ahead)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_instance *const *instances = dma->instances;
	const uint8_t *uses = dma->uses;

	vmm_assert_held(&dma->context->device->adapter->submit_lock);
	for (uint32_t i = first; i < end; i++) {
		struct vmm_instance *instance = instances[i];

		if (ahead)
			vmm_prefetch((uintptr_t)instances[i + VMM_LIST_AHEAD] +
				     offsetof(struct vmm_instance, queued));
		if (vmm_unlikely(!instance))
			continue;
		atomic_store_explicit(&instance->queued[timeline], sequence, memory_order_relaxed);
		if (uses[i] & VMM_USES_WRITE) /* DMA-22, PAG-31 */
			atomic_store_explicit(&instance->written[timeline], sequence,
					      memory_order_relaxed);
	}
}

static void mark_uses(const struct vmm_dma *dma, uint32_t timeline, uint64_t sequence)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	uint32_t count = dma->list_count, far = vmm_list_with_prefetch(count);

	vmm_assert_held(&dma->context->device->adapter->submit_lock);
	mark_range(dma, 0, far, timeline, sequence, true);
	mark_range(dma, far, count, timeline, sequence, false);
}

/*
 * Assigns the next number of the node's timeline to the buffer. From here on its allocations are
 * busy until that packet completes.
 */
static uint64_t take_sequence(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	uint32_t t = dma->context->node;
	uint64_t sequence =
		atomic_load_explicit(&s->adapter->timeline[t].queued, memory_order_relaxed) + 1;

	vmm_assert_held(&s->adapter->submit_lock);
	dma->after = vmm_order_after(s->adapter->sched, dma);
	mark_uses(dma, t, sequence);
	return sequence;
}

/*
 * Makes the buffer one of its context's submissions, with the number `sequence`. State lock held.
 */
static void assign_sequence_locked(const struct vmm_submission *s, struct vmm_dma *dma,
				   uint64_t sequence) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_context *context = dma->context;
	uint32_t t = context->node;

	vmm_assert_held(&s->adapter->state_lock);
	dma->packet.node = dma->packet.timeline = t;
	dma->packet.sequence = dma->work.sequence = sequence;
	dma->work.count = dma->list_count;
	dma->work.prepared = dma->work.submitted = dma->work.held = dma->shielded = false;
	dma->preempted = dma->packet.overdue = 0;
	dma->submission = s->serial;
	vmm_order_queued(s->adapter->sched, dma, sequence);
	atomic_store_explicit(&context->device->queued[t], sequence, memory_order_relaxed);
	vmm_work_add_locked(s->adapter, t, &dma->work);
	context->last_sequence = sequence;
	context->queued++;
}

/*
 * DMA-10: numbers the copies. On the same timeline a copy has a higher number than the buffer
 * itself. None of the contexts was behind a wait when the call took the submit lock. So a wait that
 * is queued now came later and belongs after the copy.
 */
VMM_COLD static void commit_copies_locked(const struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_state_lock_class, vmm_submit_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&s->adapter->submit_lock);
	vmm_assert_held(&s->adapter->state_lock);
	vmm_broadcast_share_locked(dma);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		assign_sequence_locked(s, copy, take_sequence(s, copy));
	}
}

/* Marks the instances as used, queues the packet, and counts what is queued. (DMA-13) */
static void commit_piece(struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_sched *sched = s->adapter->sched;
	bool broadcast = !vmm_list_empty(&dma->copies);
	uint64_t sequence = take_sequence(s, dma);

	vmm_assert_held(&s->adapter->submit_lock);
	if (dma->renamed | dma->offering) {
		vmm_paging_lock(s->adapter);
		commit_uses(s, dma, sequence);
		vmm_paging_commit(s->adapter);
	}
	vmm_state_lock(s->adapter);
	assign_sequence_locked(s, dma, sequence);
	s->sequence = sequence;
	s->queued = dma->context->queued;
	if (vmm_unlikely(broadcast))
		commit_copies_locked(s, dma);
	if (vmm_unlikely(broadcast) || !vmm_steps_hold_locked(dma->context, dma)) { /* SYN-26 */
		vmm_list_push_back(&sched->prepare, &dma->packet.link);
		VMM_COUNT_PACKETS_LOCKED(sched->prepare_count, 1u);
	}
	sched->patches += dma->patch_count;
	vmm_state_unlock(s->adapter);
	vmm_trims_submitted(s->adapter);
	s->patches += dma->patch_count;
}

static void commit(struct vmm_submission *s, bool last) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	if (last && s->kind->queue_last)
		s->kind->queue_last(s, s->piece[s->pieces - 1]);
	for (uint32_t i = 0; i < s->pieces; i++)
		commit_piece(s, s->piece[i]);
	s->pieces = 0;
}

static void copy_list(struct vmm_dma *to, const struct vmm_dma *from)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&to->context->device->adapter->submit_lock);
	to->list_count = from->list_count;
	to->renamed = from->renamed;
	to->offering = from->offering;
	to->writing = from->writing;
	to->in_place = from->in_place;
	to->placements = from->placements;
	for (uint32_t i = 0; i < from->list_count; i++) {
		to->list[i] = from->list[i];
		to->instances[i] = from->instances[i];
		to->uses[i] = from->uses[i];
	}
}

/*
 * The submission needs too many DMA buffers to be queued as a whole. All pieces but the newest are
 * queued now, so that buffers become free. They are prepared here: the worker may be waiting for
 * the submit lock, which this thread holds.
 */
static void send_ahead(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_dma *newest = s->piece[--s->pieces];

	vmm_assert_held(&s->adapter->submit_lock);
	commit(s, false);
	s->piece[s->pieces++] = newest;
	vmm_prepare_pump_waiting_locked(s->adapter);
}

/* DMA-30: the miniport broke its promise that one DMA buffer is enough. */
VMM_COLD static NTSTATUS report_broken_contract(const struct vmm_submission *s,
						const struct vmm_dma *dma)
{
	vmm_finding(
		s->adapter->observe, "DMA-30", s->context->device->process->id, s->context->handle,
		"%s on context 0x%08x asks for a second DMA buffer after %u of %u bytes, on a "
		"device with GuaranteedDmaBufferContract",
		s->kind->words->ddi, s->context->handle, dma->used_bytes, s->context->dma_bytes);
	vmm_port_fatal(s->adapter->port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_CONTRACT,
		       dma->used_bytes, s->context->dma_bytes);
	return STATUS_DEVICE_REMOVED;
}

/* DMA-29: translates into as many pieces as the miniport needs. The caller sees one success. */
static NTSTATUS translate_all(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	uint32_t multipass = 0;
	NTSTATUS status;

	vmm_assert_held(&s->adapter->submit_lock);
	for (;;) {
		struct vmm_dma *dma = s->piece[s->pieces - 1], *next;

		status = translate(s, dma, &multipass);
		if (vmm_unlikely(s->adapter->verify) &&
		    (NT_SUCCESS(status) || status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER))
			vmm_verify_piece(s, dma);
		if (status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
			return status;
		if (s->context->device->one_buffer)
			return report_broken_contract(s, dma);
		if (!dma->used_bytes)
			return vmm_refuse_rule(
				s->adapter->observe, STATUS_INVALID_PARAMETER, "DMA-29",
				s->context->device->process->id, s->context->handle,
				"%s asks for another DMA buffer although it wrote nothing into an "
				"empty one of %u bytes (MultipassOffset %u)",
				s->kind->words->ddi, s->context->dma_bytes, multipass);
		if (s->pieces == VMM_DMA_BUFFERS_PER_CONTEXT / 2)
			send_ahead(s);
		status = vmm_dma_get_locked(s->context, &next);
		if (status == STATUS_NO_MEMORY && s->pieces > 1) {
			send_ahead(s);
			status = vmm_dma_get_locked(s->context, &next);
		}
		if (!NT_SUCCESS(status))
			return status;
		copy_list(next, dma);
		s->piece[s->pieces++] = next;
		if (s->kind->attach)
			status = s->kind->attach(s, next);
		if (NT_SUCCESS(status) && vmm_unlikely(s->kind->at_address))
			status = vmm_dma_get_memory_locked(next);
		if (!NT_SUCCESS(status))
			return status;
	}
}

/* ---- buffers of further contexts (SUB-26) ---- */

/* Returns the number of further contexts that get separate buffers. */
VMM_COLD static uint32_t further_count(const struct vmm_submission *s)
{
	vmm_assert(s->kind->fill_further && s->broadcast->count < VMM_BROADCAST_MAX);
	return s->broadcast->count;
}

/* Fills them before the first is queued: the miniport may change its private data from then on. */
VMM_COLD static void fill_further(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	const struct vmm_dma *from = s->piece[0];

	vmm_assert_held(&s->adapter->submit_lock);
	vmm_assert(s->pieces == 1);
	for (uint32_t i = 0; i < further_count(s); i++) {
		copy_list(s->further[i], from);
		s->kind->fill_further(s, from, s->further[i]);
		note_filled(s, s->further[i]);
	}
}

/*
 * Queues them. Nothing can fail any more, so all contexts get a packet. Each packet is in the order
 * of its context: one that is behind a wait delays no other.
 */
VMM_COLD static void commit_further(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	uint64_t sequence = s->sequence;

	vmm_assert_held(&s->adapter->submit_lock);
	for (uint32_t i = 0; i < further_count(s); i++) {
		vmm_assert(s->further[i]->context == s->broadcast->context[i]);
		commit_piece(s, s->further[i]);
		s->further[i] = NULL;
	}
	s->sequence = sequence;
}

/*
 * Returns the entry for the buffer of the context with the lowest handle above *handle, and sets
 * *context and *handle to that context's. NULL: there is none.
 */
static struct vmm_dma **next_by_handle(struct vmm_submission *s, struct vmm_context **context,
				       uint32_t *handle)
{
	struct vmm_dma **entry = NULL;
	uint32_t above = *handle;

	for (uint32_t i = 0; i <= further_count(s); i++) {
		struct vmm_context *at = i ? s->broadcast->context[i - 1] : s->context;

		if (at->handle <= above || (entry && at->handle >= *handle))
			continue;
		entry = i ? &s->further[i - 1] : &s->piece[0];
		*context = at;
		*handle = at->handle;
	}
	return entry;
}

VMM_COLD static void give_back_further(struct vmm_submission *s)
{
	for (uint32_t i = 0; i < further_count(s); i++)
		if (s->further[i])
			vmm_dma_give_back(s->further[i]);
}

/*
 * Takes one buffer of each context, in the order of their handles. A thread that waits for a buffer
 * of one context then holds only buffers of contexts with lower handles, so threads that broadcast
 * to the same contexts do not wait for each other in a cycle.
 */
VMM_COLD static NTSTATUS take_buffers(struct vmm_submission *s)
{
	struct vmm_context *context = NULL;
	struct vmm_dma **entry;
	uint32_t handle = 0;
	NTSTATUS status = STATUS_SUCCESS;

	while (NT_SUCCESS(status) && (entry = next_by_handle(s, &context, &handle)) != NULL) {
		vmm_assert(!*entry);
		status = vmm_dma_get(context, entry);
		s->pieces += NT_SUCCESS(status) && entry == &s->piece[0];
	}
	if (!NT_SUCCESS(status)) {
		give_back_further(s);
		if (s->pieces)
			vmm_dma_give_back(s->piece[0]);
	}
	return status;
}

/* ---- one submission ---- */

/* Captures the list, has it translated, and queues the buffers. */
static NTSTATUS run_locked(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&s->adapter->submit_lock);
	/* The device may have been lost while the call waited for the lock (TDR-07). */
	if (vmm_device_lost(s->context->device))
		status = STATUS_DEVICE_REMOVED;
	else if (s->kind->begin)
		status = s->kind->begin(s);
	if (NT_SUCCESS(status))
		status = vmm_submission_capture(s, s->piece[0]);
	if (NT_SUCCESS(status))
		status = translate_all(s);
	if (vmm_unlikely(s->adapter->verify))
		vmm_verify_end(s);
	if (!NT_SUCCESS(status))
		return status;
	if (vmm_unlikely(s->further != NULL))
		fill_further(s);
	commit(s, true);
	if (vmm_unlikely(s->further != NULL))
		commit_further(s);
	return STATUS_SUCCESS;
}

/* Takes the first DMA buffer, and for a broadcast its copies. */
static NTSTATUS take_buffer(struct vmm_submission *s)
{
	if (vmm_unlikely(s->further != NULL))
		return take_buffers(s);
	NTSTATUS status = vmm_dma_get(s->context, &s->piece[0]);

	if (!NT_SUCCESS(status))
		return status;
	s->pieces = 1;
	if (s->kind->attach)
		status = s->kind->attach(s, s->piece[0]);
	if (NT_SUCCESS(status) && vmm_unlikely(s->kind->at_address))
		status = vmm_dma_get_memory(s->piece[0]);
	if (!NT_SUCCESS(status))
		vmm_dma_give_back(s->piece[0]);
	return status;
}

NTSTATUS vmm_submission_run(struct vmm_submission *s)
{
	struct vmm_context *context = s->context;
	struct vmm_adapter *adapter = context->device->adapter;

	s->adapter = adapter;
	s->device = context->device;
	s->object = context->handle;
	NTSTATUS status = take_buffer(s);
	if (!NT_SUCCESS(status))
		return status;
	vmm_submit_lock(adapter);
	/* The submit lock makes this the only writer. */
	s->serial = atomic_load_explicit(&adapter->submissions, memory_order_relaxed) + 1;
	atomic_store_explicit(&adapter->submissions, s->serial, memory_order_release);
	status = run_locked(s);
	/*
	 * Allocations whose fast lock was disabled by check_reference are marked as used by now.
	 * Code that enables a fast lock compares `captured`.
	 */
	atomic_store_explicit(&adapter->captured, s->serial, memory_order_release);
	vmm_submit_unlock(adapter);
	for (uint32_t i = 0; i < s->pieces; i++)
		vmm_dma_give_back(s->piece[i]); /* a failed call queues nothing more (DMA-31) */
	if (vmm_unlikely(s->further != NULL))
		give_back_further(s);
	/*
	 * An error may be the consequence of a reset during the call. Then the call returns the
	 * reset's status (TDR-07).
	 */
	if (!NT_SUCCESS(status))
		return vmm_device_lost(context->device) ? STATUS_DEVICE_REMOVED : status;
	vmm_event(adapter->observe, VIDMM_EVENT_SUBMIT, context->device->process->id,
		  context->handle, context->node, s->entry_count, s->patches, s->command_bytes,
		  s->sequence);
	vmm_prepare_pump(adapter);
	return STATUS_SUCCESS;
}
