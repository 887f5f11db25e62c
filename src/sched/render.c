/* SPDX-License-Identifier: MIT */
/*
 * Submission of pfnRenderCb and of presents:
 *
 * 1. Capture the allocation list.
 * 2. Have the miniport translate the command buffer, in several passes if one DMA buffer is too
 *    small.
 * 3. Check what the miniport emitted.
 * 4. Queue the DMA buffers.
 *
 * The submit lock is held from capture to queueing. So packets are queued in the order of their
 * numbers, and a captured allocation cannot be deallocated meanwhile.
 */
#include "sched/submission.h"
#include "sched/calls.h"

enum {
	ENTRY_WRITE = VMM_USES_WRITE,
	ENTRY_DO_NOT_RETIRE = 0x2,
	ENTRY_OFFER = VMM_USES_OFFER,
	OFFER_PRIORITY_MAX = 4,
	ENTRY_RESERVED = (int)0xFFFFFFE0,
	RENDER_RESIZE_FLAGS = 0x7,
	RENDER_NULL = 0x8,
};

NTSTATUS vmm_submission_refuse_entry(const struct vmm_submission *s, const char *rule,
				     NTSTATUS status, uint32_t index, const char *what)
{
	return vmm_refuse_rule(
		s->adapter->observe, status, rule, s->context->device->process->id,
		s->context->handle,
		"%s on context 0x%08x refused: allocation list entry %u (handle 0x%08x): %s",
		s->what, s->context->handle, index, s->entries[index].hAllocation, what);
}

static NTSTATUS check_request(const struct vmm_submission *s)
{
	const struct vmm_render_request *r = s->request;
	const struct vmm_context_buffers *u = &s->context->user;

	/* NULL for contexts whose commands are at GPU virtual addresses (SUB-23) */
	if (r->allocation_count <= u->allocation_count && r->patch_count <= u->patch_count &&
	    r->command_offset <= r->command_length && r->command_length <= u->command_bytes &&
	    u->commands && !(r->flags & ~(uint32_t)(RENDER_RESIZE_FLAGS | RENDER_NULL)))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		s->adapter->observe, STATUS_INVALID_PARAMETER, "DMA-08",
		s->context->device->process->id, s->context->handle,
		"render on context 0x%08x: %u allocations (list size %u), %u patch locations "
		"(list size %u), commands [%u, %u) (buffer of %u bytes), flags 0x%x",
		s->context->handle, r->allocation_count, u->allocation_count, r->patch_count,
		u->patch_count, r->command_offset, r->command_length, u->command_bytes, r->flags);
}

static NTSTATUS bad_handle(const struct vmm_submission *s, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_device *device = s->context->device;

	vmm_assert_held(&s->context->device->process->lock);
	const struct vmm_ref *ref =
		vmm_handle_lookup(&device->process->handles, handle, VMM_HANDLE_ALLOCATION);

	vmm_ref_report(device, handle, "DMA-16",
		       s->present ? "source or destination of a present"
				  : "allocation list of a render call");
	if (ref && ref->device)
		return STATUS_GRAPHICS_WRONG_ALLOCATION_DEVICE;
	return STATUS_INVALID_HANDLE;
}

/* TDR-11: the content was lost through no fault of the client. */
VMM_COLD static NTSTATUS lost_in_reset(const struct vmm_submission *s, uint32_t index)
{
	uint32_t handle = s->entries[index].hAllocation;

	return vmm_refuse_reason(
		s->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		s->context->device->process->id, handle,
		"TDR-11: %s on context 0x%08x: the content of 0x%08x was lost when the adapter "
		"was reset",
		s->what, s->context->handle, handle);
}

/* Checks a reference. The allocation must not be offered. (OFR-05) */
static NTSTATUS check_reference(const struct vmm_submission *s, uint32_t index,
				const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&s->adapter->paging_lock);
	if (vmm_is_offered_locked(ref->allocation))
		return vmm_submission_refuse_entry(s, "OFR-05", STATUS_INVALID_PARAMETER, index,
						   "it is offered and not reclaimed");
	if (vmm_unlikely(ref->allocation->reset_lost))
		return lost_in_reset(s, index);
	if (vmm_unlikely(atomic_load_explicit(&ref->allocation->replaced, memory_order_relaxed)))
		return vmm_submission_refuse_entry(
			s, "DMA-36", STATUS_GRAPHICS_ALLOCATION_INVALID, index,
			"it was replaced by a newer shared primary of its source: open that one");
	if (vmm_unlikely(ref->allocation->content_lost))
		return vmm_submission_refuse_entry(
			s, "PAG-20", STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST, index,
			"its content was lost when it could not be evicted");
	return s->adapter->sched->working_set->check(s, index, ref);
}

/* OFR-10: checks an entry that offers its allocation: a valid priority, and no CPU lock. */
static NTSTATUS check_offer(const struct vmm_submission *s, uint32_t index,
			    const struct vmm_ref *ref, uint32_t priority)
{
	if (priority > OFFER_PRIORITY_MAX)
		return vmm_submission_refuse_entry(s, "OFR-03", STATUS_INVALID_PARAMETER, index,
						   "its OfferPriority is not 0 to 4");
	if (vmm_locks(ref->instance))
		return vmm_submission_refuse_entry(s, "OFR-08", STATUS_INVALID_PARAMETER, index,
						   "it is locked and therefore cannot be offered");
	return STATUS_SUCCESS;
}

/* Checks the bits that few entries have. */
VMM_COLD static NTSTATUS check_bits(const struct vmm_submission *s, uint32_t index, uint32_t value)
{
	if ((value & ENTRY_OFFER) && !s->adapter->sched->working_set->referenced)
		return vmm_submission_refuse_entry(
			s, "OFR-10", STATUS_INVALID_PARAMETER, index,
			"from WDDM 2.0 on the list cannot offer allocations (DMA-24)");
	if (value & s->reserved)
		return vmm_submission_refuse_entry(s, "DMA-19", STATUS_INVALID_PARAMETER, index,
						   "reserved bits are set (PAG-30)");
	return STATUS_SUCCESS;
}

/*
 * Checks an entry that refers to no allocation of the device, or one that needs more than the fast
 * checks of capture_entries.
 */
static VMM_NOINLINE NTSTATUS check_special(struct vmm_submission *s, struct vmm_dma *dma,
					   uint32_t index, D3DDDI_ALLOCATIONLIST entry,
					   const struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	NTSTATUS status =
		entry.Value & s->suspect ? check_bits(s, index, entry.Value) : STATUS_SUCCESS;

	vmm_assert_held(&s->adapter->paging_lock);
	vmm_assert_held(&s->context->device->process->lock);
	if (NT_SUCCESS(status) && !ref)
		return entry.hAllocation ? bad_handle(s, entry.hAllocation)
					 : STATUS_SUCCESS; /* DMA-15 */
	if (NT_SUCCESS(status))
		status = check_reference(s, index, ref);
	if (!NT_SUCCESS(status))
		return status;
	if (vmm_unlikely(entry.Value & ENTRY_OFFER)) {
		dma->offering = true;
		status = check_offer(s, index, ref,
				     (entry.Value & ENTRY_OFFER) >> VMM_USES_OFFER_SHIFT);
		if (!NT_SUCCESS(status))
			return status;
		/* An offer takes effect when one packet completes; a broadcast has several. */
		if (vmm_unlikely(s->broadcast != NULL))
			return vmm_refuse_reason(
				s->adapter->observe, STATUS_NOT_SUPPORTED,
				s->context->device->process->id, s->context->handle,
				"DMA-10: render on context 0x%08x: offering allocation list entry "
				"%u (DMA-24) by a broadcast buffer is not built",
				s->context->handle, index);
	}
	if (entry.Value & ENTRY_DO_NOT_RETIRE)
		ref->instance->not_retired_by = s->serial;
	dma->renamed |= ref->allocation->instance_count > 1;
	dma->in_place &= vmm_memory_is_in_place(ref->allocation, ref->instance);
	return STATUS_SUCCESS;
}

/* WriteOperation is bit 0 of the second word, SegmentId bits 1 to 5. */
union list_element {
	uint64_t words[3];
	DXGK_ALLOCATIONLIST element;
};
_Static_assert(sizeof(DXGK_ALLOCATIONLIST) == 3 * sizeof(uint64_t) &&
		       offsetof(DXGK_ALLOCATIONLIST, PhysicalAddress) == 2 * sizeof(uint64_t),
	       "an element of the miniport's list is three words");

/*
 * Captures the allocation list in one pass. The list is the client's memory, so each entry is read
 * only once (DMA-14). For each reference the pass touches the handle's entry, the cache line of the
 * ref, that of the allocation, and the instance.
 */
static NTSTATUS capture_entries(struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	const struct vmm_device *device = s->context->device;
	const struct vmm_handle_view handles =
		vmm_handle_view(&device->process->handles); /* its lock is held */
	const D3DDDI_ALLOCATIONLIST *entries = s->entries;
	DXGK_ALLOCATIONLIST *list = dma->list;
	struct vmm_instance **instances = dma->instances;
	uint8_t *uses = dma->uses;
	uint32_t count = dma->list_count, suspect = s->suspect, written = 0, in_place = 1;

	vmm_assert_held(&s->adapter->paging_lock);
	vmm_assert_held(&s->context->device->process->lock);
	for (uint32_t i = 0; i < count; i++) {
		/* A prefetch hint only, so the entry may be read a second time. */
		if (vmm_unlikely(count > VMM_LONG_LIST) && i + VMM_LIST_AHEAD < count)
			vmm_ref_prefetch(&handles, entries[i + VMM_LIST_AHEAD].hAllocation);
		const D3DDDI_ALLOCATIONLIST entry = entries[i];
		const struct vmm_ref *ref =
			vmm_handle_find(&handles, entry.hAllocation, VMM_HANDLE_ALLOCATION);
		uses[i] = (uint8_t)(entry.Value & (ENTRY_WRITE | ENTRY_OFFER));
		if (vmm_unlikely(ref && ref->device != device))
			ref = NULL; /* DMA-16 */
		if (vmm_unlikely(!ref || (entry.Value & suspect) || s->all_special ||
				 !vmm_memory_is_plain(ref->allocation, ref->instance))) {
			NTSTATUS status = check_special(s, dma, i, entry, ref);

			if (!NT_SUCCESS(status))
				return status;
			if (!ref) {
				instances[i] = NULL;
				list[i] = (DXGK_ALLOCATIONLIST){0};
				continue;
			}
		}
		struct vmm_instance *instance = ref->instance;

		/*
		 * DMA-17, DMA-18. Written as whole words: bit-field stores would be merged in
		 * memory, and the copy would stall on them.
		 */
		const union list_element out = {
			.words = {(uintptr_t)ref->kmd_open,
				  (entry.Value & ENTRY_WRITE) | (uint64_t)instance->segment << 1,
				  instance->address}};

		list[i] = out.element;
		instances[i] = instance;
		in_place &= ref->allocation->serving >> instance->segment;
		written |= entry.Value;
	}
	dma->in_place &= in_place;
	dma->writing = written & ENTRY_WRITE;
	return STATUS_SUCCESS;
}

static NTSTATUS capture_list(struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_process *process = s->context->device->process;

	vmm_assert_held(&s->adapter->submit_lock);
	dma->renamed = dma->offering = dma->writing = false;
	dma->in_place = !s->all_special;
	dma->list_count = s->entry_count;
	vmm_paging_lock(s->adapter);
	vmm_process_lock(process);
	dma->placements = s->adapter->placements;
	NTSTATUS status = capture_entries(s, dma);
	vmm_process_unlock(process);
	vmm_paging_commit(s->adapter);
	return status;
}

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
	if (!dma->renamed)
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
VMM_COLD static void fail_device(const struct vmm_submission *s)
{
	struct vmm_device *device = s->context->device;

	vmm_reason(s->adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		   device->process->id, s->context->handle,
		   "%s: the miniport answered a %s on context 0x%08x with a GPU exception: the "
		   "device is in error",
		   s->present ? "DMA-37" : "DMA-31", s->what, s->context->handle);
	vmm_device_fail(device, VMM_DEVICE_FAULT);
}

/*
 * Has the miniport fill one DMA buffer. Returns STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER if the
 * miniport has more to emit.
 */
static NTSTATUS translate(struct vmm_submission *s, struct vmm_dma *dma, uint32_t *multipass)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	const struct vmm_context *context = s->context;
	struct vmm_translated t = {.multipass = *multipass};

	vmm_assert_held(&s->adapter->submit_lock);
	/* Lost while the call waited for the submit lock (TDR-07) */
	if (vmm_device_lost(context->device))
		return STATUS_DEVICE_REMOVED;
	if (vmm_unlikely(s->command != NULL))
		return vmm_command_describe(s, dma);
	NTSTATUS status = vmm_submission_translate(s, dma, &t);

	if (status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE)
		fail_device(s);
	if (!NT_SUCCESS(status) && status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
		return status;
	if (s->present && s->present->mmio)
		vmm_flip_describe(dma, &t);
	dma->used_bytes = (uint32_t)(t.commands - dma->backing.address);
	dma->patch_count = (uint32_t)(t.patches - dma->patches);
	dma->private_used =
		dma->private_data ? (uint32_t)(t.private_data - (char *)dma->private_data) : 0;
	dma->null_rendering =
		(s->request && (s->request->flags & RENDER_NULL)) || (context->flags & 0x1);
	dma->present = s->present ? s->present->submit_flags : 0;
	dma->patch_start = dma->start = 0;
	dma->patch_end = dma->patch_count;
	dma->end = dma->used_bytes;
	dma->split = false;
	*multipass = t.multipass;
	NTSTATUS checked = s->present && s->present->mmio ? STATUS_SUCCESS : check_patches(s, dma);
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

static void mark_uses(const struct vmm_dma *dma, uint32_t timeline, uint64_t sequence)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	struct vmm_instance *const *instances = dma->instances;
	const uint8_t *uses = dma->uses;
	uint32_t count = dma->list_count;

	vmm_assert_held(&dma->context->device->adapter->submit_lock);
	for (uint32_t i = 0; i < count; i++) {
		struct vmm_instance *instance = instances[i];

		if (vmm_unlikely(count > VMM_LONG_LIST) && i + VMM_LIST_AHEAD < count)
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
	dma->preempted = 0;
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
	s->queued = s->context->queued;
	if (vmm_unlikely(broadcast))
		commit_copies_locked(s, dma);
	if (vmm_unlikely(broadcast) || !vmm_steps_hold_locked(s->context, dma)) { /* SYN-26 */
		vmm_list_push_back(&sched->prepare, &dma->packet.link);
		atomic_fetch_add(&sched->prepare_count, 1);
	}
	sched->patches += dma->patch_count;
	vmm_state_unlock(s->adapter);
	vmm_trims_submitted(s->adapter);
	s->patches += dma->patch_count;
}

/*
 * SUB-17: a present is queued with its last piece. It counts against the limit until that piece is
 * complete or, for a flip, until the flip is shown.
 */
static void commit_present(const struct vmm_submission *s, struct vmm_dma *last)
	VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	last->counts_as_present = !s->present->flip;
	last->flip = s->present->flip;
	if (last->flip)
		vmm_flip_queued(s, last);
}

static void commit(struct vmm_submission *s, bool last) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	if (last && s->present)
		commit_present(s, s->piece[s->pieces - 1]);
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

#define DDI_NAME(s) ((s)->present ? "DxgkDdiPresent" : "DxgkDdiRender")

/* DMA-30: the miniport broke its promise that one DMA buffer is enough. */
VMM_COLD static NTSTATUS report_broken_contract(const struct vmm_submission *s,
						const struct vmm_dma *dma)
{
	vmm_finding(s->adapter->observe, "DMA-30", s->context->device->process->id,
		    s->context->handle,
		    "%s on context 0x%08x asks for a second DMA buffer after %u of %u bytes, on a "
		    "device with GuaranteedDmaBufferContract",
		    DDI_NAME(s), s->context->handle, dma->used_bytes, s->context->dma_bytes);
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
				DDI_NAME(s), s->context->dma_bytes, multipass);
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
		status = vmm_broadcast_add_copies(s->broadcast, next);
		if (!NT_SUCCESS(status))
			return status;
	}
}

static NTSTATUS capture(struct vmm_submission *s) VMM_REQUIRES(vmm_submit_lock_class)
{
	vmm_assert_held(&s->adapter->submit_lock);
	if (!s->present)
		vmm_context_copy_buffers(s->context, s->request);
	return capture_list(s, s->piece[0]);
}

NTSTATUS vmm_submission_run(struct vmm_submission *s)
{
	struct vmm_context *context = s->context;
	struct vmm_adapter *adapter = s->adapter;
	NTSTATUS status = vmm_dma_get(context, &s->piece[0]);

	if (!NT_SUCCESS(status))
		return status;
	s->pieces = 1;
	status = vmm_broadcast_add_copies(s->broadcast, s->piece[0]);
	if (!NT_SUCCESS(status)) {
		vmm_dma_give_back(s->piece[0]);
		return status;
	}
	s->reserved = (uint32_t)ENTRY_RESERVED;
	if (adapter->sched->caps->interface_version < DXGKDDI_INTERFACE_VERSION_WIN8)
		s->reserved |= ENTRY_OFFER; /* OFR-10: from 1.2 on */
	s->suspect = s->reserved | ENTRY_OFFER | ENTRY_DO_NOT_RETIRE;
	s->all_special = !adapter->sched->working_set->referenced;
	vmm_submit_lock(adapter);
	s->serial = atomic_fetch_add(&adapter->submissions, 1) + 1;
	/* The device may have been lost while the call waited for the lock (TDR-07). */
	status = vmm_device_lost(context->device) ? STATUS_DEVICE_REMOVED
		 : vmm_unlikely(s->broadcast) && vmm_broadcast_is_held(context, s->broadcast)
			 ? STATUS_NOT_SUPPORTED
			 : capture(s);
	if (NT_SUCCESS(status))
		status = translate_all(s);
	if (vmm_unlikely(s->adapter->verify))
		vmm_verify_end(s);
	if (NT_SUCCESS(status))
		commit(s, true);
	/*
	 * Allocations whose fast lock was disabled by check_reference are marked as used by now.
	 * Code that enables a fast lock compares `captured`.
	 */
	atomic_store_explicit(&adapter->captured, s->serial, memory_order_release);
	vmm_submit_unlock(adapter);
	for (uint32_t i = 0; i < s->pieces; i++)
		vmm_dma_give_back(s->piece[i]); /* a failed call queues nothing more (DMA-31) */
	/*
	 * An error may be the consequence of a reset during the call. Then the call returns the
	 * reset's status (TDR-07).
	 */
	if (!NT_SUCCESS(status))
		return vmm_device_lost(context->device) ? STATUS_DEVICE_REMOVED : status;
	return STATUS_SUCCESS;
}

NTSTATUS vmm_sched_render(struct vmm_context *context, struct vmm_render_request *request)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_submission s = {.context = context,
				   .adapter = adapter,
				   .what = "render",
				   .request = request,
				   .broadcast = request->broadcast,
				   .entries = context->user.allocations,
				   .entry_count = request->allocation_count};

	vmm_assert(vmm_context_is_valid(context));
	NTSTATUS status = check_request(&s);
	if (NT_SUCCESS(status))
		status = vmm_submission_run(&s);
	if (!NT_SUCCESS(status))
		return status;
	request->queued = s.queued;
	vmm_event(adapter->observe, VIDMM_EVENT_SUBMIT, context->device->process->id,
		  context->handle, context->node, request->allocation_count, s.patches,
		  request->command_length - request->command_offset, s.sequence);
	vmm_prepare_pump(adapter);
	return STATUS_SUCCESS;
}
