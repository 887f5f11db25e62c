/* SPDX-License-Identifier: MIT */
/*
 * Capture of the allocation list of a submission: each entry is read once, checked, and becomes an
 * element of the miniport's list.
 */
#include "sched/data/submission.h"
#include "sched/data/data.h"

enum {
	ENTRY_WRITE = VMM_USES_WRITE,
	ENTRY_DO_NOT_RETIRE = 0x2,
	ENTRY_OFFER = VMM_USES_OFFER,
	OFFER_PRIORITY_MAX = 4,
	ENTRY_RESERVED = (int)0xFFFFFFE0,
};

NTSTATUS vmm_submission_refuse_entry(const struct vmm_submission *s, const char *rule,
				     NTSTATUS status, uint32_t index, const char *what)
{
	return vmm_refuse_rule(
		s->adapter->observe, status, rule, s->device->process->id, s->object,
		"%s on %s 0x%08x refused: allocation list entry %u (handle 0x%08x): %s",
		s->kind->words->name, s->kind->words->on, s->object, index,
		s->entries[index].hAllocation, what);
}

static NTSTATUS bad_handle(const struct vmm_submission *s, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_device *device = s->device;

	vmm_assert_held(&s->device->process->lock);
	const struct vmm_ref *ref =
		vmm_handle_lookup(&device->process->handles, handle, VMM_HANDLE_ALLOCATION);

	vmm_ref_report(device, handle, "DMA-16", s->kind->words->list);
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
		s->device->process->id, handle,
		"TDR-11: %s on %s 0x%08x: the content of 0x%08x was lost when the adapter "
		"was reset",
		s->kind->words->name, s->kind->words->on, s->object, handle);
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
	vmm_assert_held(&s->device->process->lock);
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
		if (vmm_unlikely(!s->kind->offers))
			return vmm_refuse_reason(
				s->adapter->observe, STATUS_NOT_SUPPORTED, s->device->process->id,
				s->object,
				"DMA-10: render on context 0x%08x: offering allocation list entry "
				"%u (DMA-24) by a broadcast buffer is not built",
				s->object, index);
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

/* The reference of an entry that the fast checks of capture_range leave; *ref is NULL for none. */
static VMM_NOINLINE NTSTATUS capture_special(struct vmm_submission *s, struct vmm_dma *dma,
					     uint32_t index, D3DDDI_ALLOCATIONLIST entry,
					     const struct vmm_ref **ref)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	vmm_assert_held(&s->adapter->paging_lock);
	vmm_assert_held(&s->device->process->lock);
	if (*ref && (*ref)->device != s->device)
		*ref = NULL; /* DMA-16 */
	NTSTATUS status = check_special(s, dma, index, entry, *ref);

	if (NT_SUCCESS(status) && !*ref) {
		dma->instances[index] = NULL;
		dma->list[index] = (DXGK_ALLOCATIONLIST){0};
	}
	return status;
}

/* What capture_range adds up over the entries. */
struct capture {
	struct vmm_handle_view handles;
	/* References of this device pass the fast checks; of no device if each entry is special. */
	const void *plain_device;
	uint32_t written, in_place;
};

/*
 * Captures entries [first, end) of the allocation list. The list is the client's memory, so each
 * entry is read only once (DMA-14). For each reference the pass touches the handle's entry, the
 * cache line of the ref, that of the allocation, and the instance. `ahead` is a constant at each
 * call: entries VMM_LIST_AHEAD further are prefetched.
 */
VMM_ALWAYS_INLINE NTSTATUS capture_range(struct vmm_submission *s, struct vmm_dma *dma,
					 struct capture *capture, uint32_t first, uint32_t end,
					 bool ahead)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	const struct vmm_handle_view handles = capture->handles; /* the process lock is held */
	const void *plain_device = capture->plain_device;
	const D3DDDI_ALLOCATIONLIST *entries = s->entries;
	DXGK_ALLOCATIONLIST *list = dma->list;
	struct vmm_instance **instances = dma->instances;
	uint8_t *uses = dma->uses;
	uint32_t suspect = s->suspect, written = capture->written, in_place = capture->in_place;

	vmm_assert_held(&s->adapter->paging_lock);
	vmm_assert_held(&s->device->process->lock);
	for (uint32_t i = first; i < end; i++) {
		/* A prefetch hint only, so the entry may be read a second time. */
		if (ahead)
			vmm_ref_prefetch_handle(&handles, entries[i + VMM_LIST_AHEAD].hAllocation);
		const D3DDDI_ALLOCATIONLIST entry = entries[i];
		const struct vmm_ref *ref =
			vmm_handle_find(&handles, entry.hAllocation, VMM_HANDLE_ALLOCATION);
		uses[i] = (uint8_t)(entry.Value & (ENTRY_WRITE | ENTRY_OFFER));
		if (vmm_unlikely(!ref || ref->device != plain_device || (entry.Value & suspect) ||
				 !vmm_memory_is_plain(ref->allocation, ref->instance))) {
			NTSTATUS status = capture_special(s, dma, i, entry, &ref);

			if (!NT_SUCCESS(status))
				return status;
			if (!ref)
				continue;
		}
		struct vmm_instance *instance = ref->instance;
		uint32_t segment = instance->segment, serving = ref->allocation->serving;

		/*
		 * DMA-17, DMA-18. Written as whole words: bit-field stores would be merged in
		 * memory, and the copy would stall on them.
		 */
		const union list_element out = {
			.words = {(uintptr_t)ref->kmd_open,
				  (entry.Value & ENTRY_WRITE) | (uint64_t)segment << 1,
				  instance->address}};

		list[i] = out.element;
		instances[i] = instance;
		in_place &= serving >> segment;
		written |= entry.Value;
	}
	capture->written = written;
	capture->in_place = in_place;
	return STATUS_SUCCESS;
}

static NTSTATUS capture_entries(struct vmm_submission *s, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	struct capture capture = {.handles = vmm_handle_view(&s->device->process->handles),
				  .plain_device = s->all_special ? (const void *)s : s->device,
				  .in_place = 1};
	uint32_t count = dma->list_count, far = vmm_list_with_prefetch(count);
	NTSTATUS status = far ? capture_range(s, dma, &capture, 0, far, true) : STATUS_SUCCESS;

	vmm_assert_held(&s->adapter->paging_lock);
	vmm_assert_held(&s->device->process->lock);
	if (NT_SUCCESS(status))
		status = capture_range(s, dma, &capture, far, count, false);
	if (!NT_SUCCESS(status))
		return status;
	dma->in_place &= capture.in_place;
	dma->writing = capture.written & ENTRY_WRITE;
	return STATUS_SUCCESS;
}

/* Which bits of an entry must be 0, and which send it to the slow path. */
static void choose_bits(struct vmm_submission *s)
{
	s->reserved = (uint32_t)ENTRY_RESERVED;
	if (s->adapter->sched->caps->interface_version < DXGKDDI_INTERFACE_VERSION_WIN8)
		s->reserved |= ENTRY_OFFER; /* OFR-10: from 1.2 on */
	s->suspect = s->reserved | ENTRY_OFFER | ENTRY_DO_NOT_RETIRE;
	s->all_special = !s->adapter->sched->working_set->referenced;
}

NTSTATUS vmm_submission_capture(struct vmm_submission *s, struct vmm_dma *dma)
{
	struct vmm_process *process = s->device->process;

	vmm_assert_held(&s->adapter->submit_lock);
	choose_bits(s);
	dma->renamed = dma->offering = dma->writing = false;
	dma->in_place = !s->all_special;
	dma->list_count = s->entry_count;
	/* Nothing to look up: a command at GPU virtual addresses without written primaries. */
	if (s->all_special && !s->entry_count)
		return STATUS_SUCCESS;
	vmm_paging_lock(s->adapter);
	vmm_process_lock(process);
	dma->placements = s->adapter->placements;
	NTSTATUS status = capture_entries(s, dma);
	vmm_process_unlock(process);
	vmm_paging_commit(s->adapter);
	return status;
}
