/* SPDX-License-Identifier: MIT */
/*
 * pfnRenderCb's way in (spec 3a, steps 2 to 7): capture the allocation list, have the miniport translate the command
 * buffer (several passes if it runs out of room), check what it emitted, queue. The submit lock is held from capture
 * to queueing: sequence order is queue order, and nothing that was looked up can be deallocated meanwhile.
 */
#include "sched/submission.h"

enum {
	ENTRY_WRITE = VMM_USES_WRITE,
	ENTRY_DO_NOT_RETIRE = 0x2,
	ENTRY_OFFER = VMM_USES_OFFER,
	OFFER_PRIORITY_MAX = 4,
	ENTRY_RESERVED = (int)0xFFFFFFE0,
	RENDER_RESIZE_FLAGS = 0x7,
	RENDER_NULL = 0x8,
};

static NTSTATUS broke(const struct vmm_submission *s, const char *rule, NTSTATUS status,
		      uint32_t index, const char *what)
{
	vmm_finding(s->adapter->observe, rule, s->context->device->process->id, s->context->handle,
		    "%s on context 0x%08x refused: allocation list entry %u (handle 0x%08x): %s",
		    s->what, s->context->handle, index, s->entries[index].hAllocation, what);
	return status;
}

static NTSTATUS check_request(const struct vmm_submission *s)
{
	const struct vmm_render_request *r = s->request;
	const struct vmm_context_buffers *u = &s->context->user;

	if (r->allocation_count <= u->allocation_count && r->patch_count <= u->patch_count &&
	    r->command_offset <= r->command_length && r->command_length <= u->command_bytes &&
	    u->commands && /* none where they are at virtual addresses (SUB-23) */
	    !(r->flags & ~(uint32_t)(RENDER_RESIZE_FLAGS | RENDER_NULL)))
		return STATUS_SUCCESS;
	vmm_finding(
		s->adapter->observe, "DMA-08", s->context->device->process->id, s->context->handle,
		"render on context 0x%08x: %u allocations (room %u), %u patch locations (room %u), commands [%u, %u) "
		"(room %u), flags 0x%x",
		s->context->handle, r->allocation_count, u->allocation_count, r->patch_count,
		u->patch_count, r->command_offset, r->command_length, u->command_bytes, r->flags);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS bad_handle(const struct vmm_submission *s, uint32_t handle)
{
	struct vmm_device *device = s->context->device;

	const struct vmm_ref *ref =
		vmm_handle_lookup(&device->process->handles, handle, VMM_HANDLE_ALLOCATION);

	vmm_ref_report(device, handle, "DMA-16",
		       s->present ? "source or destination of a present"
				  : "allocation list of a render call");
	if (ref && ref->device)
		return STATUS_GRAPHICS_WRONG_ALLOCATION_DEVICE;
	return STATUS_INVALID_HANDLE;
}

/* TDR-11: nobody's mistake. */
VMM_COLD static NTSTATUS lost_in_reset(const struct vmm_submission *s, uint32_t index)
{
	uint32_t handle = s->entries[index].hAllocation;

	vmm_reason(
		s->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		s->context->device->process->id, handle,
		"TDR-11: %s on context 0x%08x: the content of 0x%08x was lost when the adapter was reset",
		s->what, s->context->handle, handle);
	return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
}

/*
 * DMA-26, PRI-11: from 2.0 on a list makes nothing resident, and naming what is not is an access to it: the device is
 * in error. Locks are the UMD's affair (LKR-09). DMA-27: without AccessedPhysically there is no address to patch in.
 */
static NTSTATUS check_residency(const struct vmm_submission *s, uint32_t index,
				const struct vmm_ref *ref)
{
	const char *why =
		!ref->residency_count ? "it is not on the device's residency list"
		: ref->instance->held
			? "it is locked by the CPU, which keeps it from coming in (LOCK-48, LKR-09)"
			: NULL;

	if (!s->command && !vmm_allocation_is_physical(ref->allocation))
		return broke(s, "DMA-27", STATUS_GRAPHICS_INVALID_ALLOCATION_USAGE, index,
			     "it was not created AccessedPhysically (PAG-24)");
	if (!why)
		return STATUS_SUCCESS;
	vmm_device_fail(s->context->device, VMM_DEVICE_FAULT);
	return broke(s, s->command ? "SUB-26" : "DMA-26", STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		     index, why);
}

/* What a reference must be: not offered (OFR-05), and movable out of the CPU's way if the CPU holds it (LKR-02). */
static NTSTATUS check_reference(const struct vmm_submission *s, uint32_t index,
				const struct vmm_ref *ref)
{
	if (vmm_is_offered_locked(ref->allocation))
		return broke(s, "OFR-05", STATUS_INVALID_PARAMETER, index,
			     "it is offered and not reclaimed");
	if (vmm_unlikely(ref->allocation->reset_lost))
		return lost_in_reset(s, index);
	if (vmm_unlikely(atomic_load_explicit(&ref->allocation->replaced, memory_order_relaxed)))
		return broke(
			s, "DMA-36", STATUS_GRAPHICS_ALLOCATION_INVALID, index,
			"another shared primary of its source has been made since: open that one");
	if (vmm_unlikely(ref->allocation->content_lost))
		return broke(s, "PAG-20", STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST, index,
			     "its content was lost when it could not be evicted");
	if (s->adapter->wddm2)
		return check_residency(s, index, ref);
	if (vmm_unlikely(vmm_memory_is_aperture_locked(ref->instance)))
		return broke(s, "SWZ-18", STATUS_GRAPHICS_CANT_RENDER_LOCKED_ALLOCATION, index,
			     "it is locked with AcquireAperture (LKR-06)");
	if (vmm_unlikely(vmm_locks(ref->instance) && !vmm_memory_can_render_locked(ref->instance)))
		return broke(
			s, "LKR-02", STATUS_GRAPHICS_CANT_RENDER_LOCKED_ALLOCATION, index,
			"it is locked and no aperture segment can take it; unlocked, the same buffer "
			"is accepted (LOCK-36, LKR-03)");
	return STATUS_SUCCESS;
}

/* OFR-10: what the entry offers must be a priority, and its allocation may not be the CPU's. */
static NTSTATUS check_offer(const struct vmm_submission *s, uint32_t index,
			    const struct vmm_ref *ref, uint32_t priority)
{
	if (priority > OFFER_PRIORITY_MAX)
		return broke(s, "OFR-03", STATUS_INVALID_PARAMETER, index,
			     "its OfferPriority is none of 0 to 4");
	if (vmm_locks(ref->instance))
		return broke(s, "OFR-08", STATUS_INVALID_PARAMETER, index,
			     "it is to be offered and is locked");
	return STATUS_SUCCESS;
}

/* An offer counts from the completion of one packet, and of these there are several. */
VMM_COLD static NTSTATUS not_offered(const struct vmm_submission *s, uint32_t index)
{
	vmm_reason(
		s->adapter->observe, STATUS_NOT_SUPPORTED, s->context->device->process->id,
		s->context->handle,
		"DMA-10: render on context 0x%08x: to offer allocation list entry %u (DMA-24) by a "
		"buffer that is broadcast is not built",
		s->context->handle, index);
	return STATUS_NOT_SUPPORTED;
}

/* Bits of an entry that few have. */
VMM_COLD static NTSTATUS check_bits(const struct vmm_submission *s, uint32_t index, uint32_t value)
{
	if ((value & ENTRY_OFFER) && s->adapter->wddm2)
		return broke(s, "OFR-10", STATUS_INVALID_PARAMETER, index,
			     "from WDDM 2.0 on nothing is offered through the list (DMA-24)");
	if (value & s->reserved)
		return broke(s, "DMA-19", STATUS_INVALID_PARAMETER, index,
			     "reserved bits are set (PAG-30)");
	return STATUS_SUCCESS;
}

/* One that names nothing, or where there is more to look at than that it is there. */
static VMM_NOINLINE NTSTATUS check_special(struct vmm_submission *s, struct vmm_dma *dma,
					   uint32_t index, D3DDDI_ALLOCATIONLIST entry,
					   const struct vmm_ref *ref)
{
	NTSTATUS status =
		entry.Value & s->suspect ? check_bits(s, index, entry.Value) : STATUS_SUCCESS;

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
		if (vmm_unlikely(s->broadcast != NULL))
			return not_offered(s, index);
	}
	if (entry.Value & ENTRY_DO_NOT_RETIRE)
		ref->instance->kept_by = s->serial;
	dma->renamed |= ref->allocation->instance_count > 1;
	dma->in_place &= vmm_memory_is_in_place(ref->allocation, ref->instance);
	return STATUS_SUCCESS;
}

/* WriteOperation is the lowest bit of the second word, SegmentId the next five. */
union list_element {
	uint64_t words[3];
	DXGK_ALLOCATIONLIST element;
};
_Static_assert(sizeof(DXGK_ALLOCATIONLIST) == 3 * sizeof(uint64_t) &&
		       offsetof(DXGK_ALLOCATIONLIST, PhysicalAddress) == 2 * sizeof(uint64_t),
	       "an element of the miniport's list is three words");

/*
 * One pass over the list, which is the client's memory and so read once (DMA-14). Of each reference it looks at the entry of the
 * handle and at two lines of cache, the ref's and allocation's, and the instance's.
 */
static NTSTATUS capture_entries(struct vmm_submission *s, struct vmm_dma *dma)
{
	const struct vmm_device *device = s->context->device;
	const struct vmm_handle_view handles =
		vmm_handle_view(&device->process->handles); /* its lock is held */
	const D3DDDI_ALLOCATIONLIST *entries = s->entries;
	DXGK_ALLOCATIONLIST *list = dma->list;
	struct vmm_instance **instances = dma->instances;
	uint8_t *uses = dma->uses;
	uint32_t count = dma->list_count, suspect = s->suspect, written = 0, in_place = 1;

	for (uint32_t i = 0; i < count; i++) {
		/* A hint, for which it may be read a second time. */
		if (vmm_unlikely(count > VMM_LONG_LIST) && i + VMM_LIST_AHEAD < count)
			vmm_ref_expect(&handles, entries[i + VMM_LIST_AHEAD].hAllocation);
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

		/* DMA-17, DMA-18. In whole words: bit by bit it would be put together in memory, and waited for there. */
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
{
	struct vmm_process *process = s->context->device->process;

	dma->renamed = dma->offering = dma->writing = false;
	dma->in_place = !s->adapter->wddm2; /* there it is the device's list that counts (RES-08) */
	dma->list_count = s->entry_count;
	vmm_paging_lock(s->adapter);
	vmm_os_mutex_lock(&process->lock);
	dma->placements = s->adapter->placements;
	NTSTATUS status = capture_entries(s, dma);
	vmm_os_mutex_unlock(&process->lock);
	vmm_paging_unlock(s->adapter);
	return status;
}

/* Says what is wrong with a patch location; STATUS_SUCCESS when it is one that a NULL element excuses. */
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

	if (!rule) /* PAT-09: it unbinds its slot; nothing is patched, so PatchOffset says nothing */
		return STATUS_SUCCESS;
	vmm_finding(
		s->adapter->observe, rule, s->context->device->process->id, s->context->handle,
		"the miniport emitted patch location %u with AllocationIndex %u (of %u), SlotId %u (of %u), PatchOffset "
		"%u, SplitOffset %u (DMA buffer of %u bytes)",
		p, e->AllocationIndex, dma->list_count, e->SlotId, slots, e->PatchOffset,
		e->SplitOffset, dma->used_bytes);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS check_patches(const struct vmm_submission *s, const struct vmm_dma *dma)
{
	uint32_t slots = vmm_port_caps(s->adapter->port)->slot_count;
	uint32_t slot_end = slots ? slots : UINT32_MAX;
	uint32_t split = 0;

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
{
	NTSTATUS status = STATUS_SUCCESS;

	if (!dma->renamed)
		return STATUS_SUCCESS;
	vmm_paging_lock(s->adapter);
	for (uint32_t p = 0; p < dma->patch_count && NT_SUCCESS(status); p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (instance && instance->allocation->instance_count > 1)
			status = vmm_rename_check(instance, s->serial,
						  s->context->device->process->id);
	}
	vmm_paging_unlock(s->adapter);
	return status;
}

/* DMA-31: after this status the device does not go on. */
VMM_COLD static void lose_device(const struct vmm_submission *s)
{
	struct vmm_device *device = s->context->device;

	vmm_reason(
		s->adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, device->process->id,
		s->context->handle,
		"%s: the miniport answered a %s on context 0x%08x with a GPU exception: the device is in error",
		s->present ? "DMA-37" : "DMA-31", s->what, s->context->handle);
	vmm_device_fail(device, VMM_DEVICE_FAULT);
}

/* Around a call that translates into `dma`, which keeps its place meanwhile. */
static struct vmm_process *enter(const struct vmm_submission *s, struct vmm_dma *dma)
{
	vmm_dma_pin(dma, true);
	return vmm_calling_process_set(s->adapter->os, s->context->device->process);
}

static void leave(const struct vmm_submission *s, struct vmm_dma *dma, struct vmm_process *before)
{
	vmm_dma_pin(dma, false);
	/* What waits at the head of the prepare queue may want its place. */
	if (s->context->dma_segment_set && atomic_load(&s->adapter->sched->blocked))
		vmm_progress_signal(s->adapter);
	vmm_calling_process_set(s->adapter->os, before);
}

static NTSTATUS call_render(const struct vmm_submission *s, struct vmm_dma *dma,
			    struct vmm_translated *t)
{
	const struct vmm_context *context = s->context;
	DXGKARG_RENDER args = {
		.pCommand = (const char *)context->user.commands + s->request->command_offset,
		.CommandLength = s->request->command_length - s->request->command_offset,
		.pDmaBuffer = dma->backing.address,
		.DmaSize = context->dma_bytes,
		.pDmaBufferPrivateData = dma->private_data,
		.DmaBufferPrivateDataSize = context->dma_private_bytes,
		.pAllocationList = dma->list,
		.AllocationListSize = dma->list_count,
		.pPatchLocationListIn = context->user.patches,
		.PatchLocationListInSize = s->request->patch_count,
		.pPatchLocationListOut = dma->patches,
		.PatchLocationListOutSize = context->patch_size,
		.MultipassOffset = t->multipass,
		.DmaBufferSegmentId =
			dma->place.segment, /* 0, and no address, while it has no place */
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)dma->place.address,
	};
	NTSTATUS status = vmm_port_render(s->adapter->port, context->kmd_context, &args);

	*t = (struct vmm_translated){args.pDmaBuffer, args.pDmaBufferPrivateData,
				     args.pPatchLocationListOut, args.MultipassOffset};
	return status;
}

static NTSTATUS call_miniport(const struct vmm_submission *s, struct vmm_dma *dma,
			      struct vmm_translated *t)
{
	struct vmm_process *before = enter(s, dma);
	NTSTATUS status = s->present ? vmm_present_translate(s, dma, t) : call_render(s, dma, t);

	leave(s, dma, before);
	return status;
}

/* One call of DxgkDdiRender into one DMA buffer. STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER: more is to come. */
static NTSTATUS translate(struct vmm_submission *s, struct vmm_dma *dma, uint32_t *multipass)
{
	const struct vmm_context *context = s->context;
	struct vmm_translated t = {.multipass = *multipass};

	if (vmm_device_lost(context->device)) /* while it waited (TDR-07) */
		return STATUS_DEVICE_REMOVED;
	if (vmm_unlikely(s->command != NULL))
		return vmm_command_describe(s, dma);
	NTSTATUS status = call_miniport(s, dma, &t);

	if (status == STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE)
		lose_device(s);
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

/* What the buffer retires (REF-02) and what it will offer (OFR-10); paging lock held. */
static void commit_uses(const struct vmm_submission *s, const struct vmm_dma *dma,
			uint64_t sequence)
{
	for (uint32_t p = 0; dma->renamed && p < dma->patch_count; p++)
		if (dma->instances[dma->patches[p].AllocationIndex])
			vmm_rename_used(dma->instances[dma->patches[p].AllocationIndex], s->serial);
	/* Of the pieces of one submission the last one to be queued counts. */
	for (uint32_t i = 0; dma->offering && i < dma->list_count; i++)
		if (dma->uses[i] & VMM_USES_OFFER)
			vmm_offer_after_locked(dma->instances[i],
					       (dma->uses[i] & VMM_USES_OFFER) >>
						       VMM_USES_OFFER_SHIFT,
					       s->context->node, sequence);
}

static void mark_uses(const struct vmm_dma *dma, uint32_t timeline, uint64_t sequence)
{
	struct vmm_instance *const *instances = dma->instances;
	const uint8_t *uses = dma->uses;
	uint32_t count = dma->list_count;

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

/* From here on the allocations are busy with the next packet of its context's node, whose number this is. */
static uint64_t take_number(const struct vmm_submission *s, struct vmm_dma *dma)
{
	uint32_t t = dma->context->node;
	uint64_t sequence =
		atomic_load_explicit(&s->adapter->timeline[t].queued, memory_order_relaxed) + 1;

	dma->after = vmm_order_after(s->adapter->sched, dma);
	mark_uses(dma, t, sequence);
	return sequence;
}

/* It is one of its context's submissions. State lock held. */
static void number_locked(const struct vmm_submission *s, struct vmm_dma *dma, uint64_t sequence)
{
	struct vmm_context *context = dma->context;
	uint32_t t = context->node;

	dma->packet.node = dma->packet.timeline = t;
	dma->packet.sequence = dma->work.sequence = sequence;
	dma->work.count = dma->list_count;
	dma->work.prepared = dma->work.submitted = dma->work.held = dma->shielded = false;
	dma->preempted = 0;
	dma->submission = s->serial;
	vmm_order_queued(s->adapter->sched, dma, sequence);
	atomic_store_explicit(&context->device->queued[t], sequence, memory_order_relaxed);
	vmm_work_add_locked(&s->adapter->timeline[t], &dma->work);
	context->last_sequence = sequence;
	context->queued++;
}

/*
 * DMA-10: of one timeline they have higher numbers than the buffer itself. None of the contexts was behind a wait when the call had
 * the submit lock, so a wait that is there now came meanwhile, and after it.
 */
VMM_COLD static void commit_copies_locked(const struct vmm_submission *s, struct vmm_dma *dma)
{
	struct vmm_list *link;

	vmm_broadcast_lend_locked(dma);
	vmm_list_for_each (link, &dma->copies) {
		struct vmm_dma *copy = vmm_copy_of(link);

		number_locked(s, copy, take_number(s, copy));
	}
}

/* The instances are used, the packet is in its queue. */
static void commit_piece(struct vmm_submission *s, struct vmm_dma *dma)
{
	struct vmm_sched *sched = s->adapter->sched;
	bool broadcast = !vmm_list_empty(&dma->copies);
	uint64_t sequence = take_number(s, dma);

	if (dma->renamed | dma->offering) {
		vmm_paging_lock(s->adapter);
		commit_uses(s, dma, sequence);
		vmm_paging_unlock(s->adapter);
	}
	vmm_os_mutex_lock(&s->adapter->state_lock);
	number_locked(s, dma, sequence);
	s->sequence = sequence;
	s->queued = s->context->queued;
	if (vmm_unlikely(broadcast))
		commit_copies_locked(s, dma);
	if (vmm_unlikely(broadcast) || !vmm_steps_hold_locked(s->context, dma)) { /* SYN-26 */
		vmm_list_push_back(&sched->prepare, &dma->packet.link);
		atomic_fetch_add(&sched->prepare_count, 1);
	}
	sched->patches += dma->patch_count;
	vmm_os_mutex_unlock(&s->adapter->state_lock);
	vmm_trims_submitted(s->adapter);
	s->patches += dma->patch_count;
}

/* SUB-17: with its last piece a present is queued, and counts until that is complete or, a flip, until it is shown. */
static void commit_present(const struct vmm_submission *s, struct vmm_dma *last)
{
	last->counts_as_present = !s->present->flip;
	last->flip = s->present->flip;
	if (last->flip)
		vmm_flip_queued(s, last);
}

static void commit(struct vmm_submission *s, bool last)
{
	if (last && s->present)
		commit_present(s, s->piece[s->pieces - 1]);
	for (uint32_t i = 0; i < s->pieces; i++)
		commit_piece(s, s->piece[i]);
	s->pieces = 0;
}

static void copy_list(struct vmm_dma *to, const struct vmm_dma *from)
{
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
 * Too large to hold back as a whole: all pieces but the newest go out, or no buffer would ever come free. Not by way of
 * the worker, which may be waiting for the submit lock that is held here.
 */
static void send_ahead(struct vmm_submission *s)
{
	struct vmm_dma *newest = s->piece[--s->pieces];

	commit(s, false);
	s->piece[s->pieces++] = newest;
	vmm_prepare_pump_waiting(s->adapter);
}

#define DDI_NAME(s) ((s)->present ? "DxgkDdiPresent" : "DxgkDdiRender")

/* DMA-30: the miniport promised that this cannot happen. */
VMM_COLD static NTSTATUS breaks_contract(const struct vmm_submission *s, const struct vmm_dma *dma)
{
	vmm_finding(
		s->adapter->observe, "DMA-30", s->context->device->process->id, s->context->handle,
		"%s on context 0x%08x wants a second DMA buffer after %u of %u bytes, on a device with "
		"GuaranteedDmaBufferContract",
		DDI_NAME(s), s->context->handle, dma->used_bytes, s->context->dma_bytes);
	vmm_port_fatal(s->adapter->port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_CONTRACT,
		       dma->used_bytes, s->context->dma_bytes);
	return STATUS_DEVICE_REMOVED;
}

/* DMA-29: pieces until the miniport has emitted everything; the caller sees one success. */
static NTSTATUS translate_all(struct vmm_submission *s)
{
	uint32_t multipass = 0;
	NTSTATUS status;

	for (;;) {
		struct vmm_dma *dma = s->piece[s->pieces - 1], *next;

		status = translate(s, dma, &multipass);
		if (vmm_unlikely(s->adapter->verify) &&
		    (NT_SUCCESS(status) || status == STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER))
			vmm_verify_piece(s, dma);
		if (status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER)
			return status;
		if (s->context->device->one_buffer)
			return breaks_contract(s, dma);
		if (!dma->used_bytes) {
			vmm_finding(
				s->adapter->observe, "DMA-29", s->context->device->process->id,
				s->context->handle,
				"%s wants another DMA buffer although it wrote nothing into an empty one of %u "
				"bytes (MultipassOffset %u)",
				DDI_NAME(s), s->context->dma_bytes, multipass);
			return STATUS_INVALID_PARAMETER;
		}
		if (s->pieces == VMM_DMA_BUFFERS_PER_CONTEXT / 2)
			send_ahead(s);
		status = vmm_dma_get(s->context, &next);
		if (status == STATUS_NO_MEMORY && s->pieces > 1) {
			send_ahead(s);
			status = vmm_dma_get(s->context, &next);
		}
		if (!NT_SUCCESS(status))
			return status;
		copy_list(next, dma);
		s->piece[s->pieces++] = next;
		status = vmm_broadcast_equip(s->broadcast, next);
		if (!NT_SUCCESS(status))
			return status;
	}
}

static NTSTATUS capture(struct vmm_submission *s)
{
	if (!s->present)
		vmm_context_fetch(s->context, s->request);
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
	status = vmm_broadcast_equip(s->broadcast, s->piece[0]);
	if (!NT_SUCCESS(status)) {
		vmm_dma_give_back(s->piece[0]);
		return status;
	}
	s->reserved = (uint32_t)ENTRY_RESERVED;
	if (adapter->sched->caps->interface_version < DXGKDDI_INTERFACE_VERSION_WIN8)
		s->reserved |= ENTRY_OFFER; /* OFR-10: from 1.2 on */
	s->suspect = s->reserved | ENTRY_OFFER | ENTRY_DO_NOT_RETIRE;
	s->all_special = adapter->wddm2;
	vmm_os_mutex_lock(&adapter->submit_lock);
	s->serial = atomic_fetch_add(&adapter->submissions, 1) + 1;
	/* It may have been lost while the call waited for its turn (TDR-07). */
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
	/* What it named with its gates shut (check_reference) is marked as used by now; who opens gates looks at this. */
	atomic_store_explicit(&adapter->captured, s->serial, memory_order_release);
	vmm_os_mutex_unlock(&adapter->submit_lock);
	for (uint32_t i = 0; i < s->pieces; i++)
		vmm_dma_give_back(s->piece[i]); /* a failure queues nothing (DMA-31) */
	/* What was found wrong may come of a reset in the middle of the call: then it is that which is told (TDR-07). */
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
