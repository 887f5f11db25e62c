/* SPDX-License-Identifier: MIT */
/*
 * Residency: which segment an instance goes to, what becomes of its content on the way there and on the way out. That paging
 * packets run in order lets the space of who leaves be given away at once: the new owner's first paging command runs
 * after the old one's last, and the new owner's users wait for the former.
 */
#include "memory/memory_private.h"
#include "memory/private.h"

bool vmm_instance_unused(const struct vmm_instance *instance)
{
	return !vmm_instance_busy(instance, VMM_USE_ACTIVE, NULL, NULL);
}

void vmm_residency_reclass(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment;
	struct vmm_list *at;
	uint32_t class_index = vmm_allocation_class(instance->allocation);

	if (instance->class_index == class_index)
		return;
	instance->class_index = (uint8_t)class_index;
	if (instance->place != VMM_PLACE_MEMORY && instance->place != VMM_PLACE_APERTURE)
		return;
	/* Keeps the order by last use inside the new class. */
	vmm_recency_settle(memory);
	segment = vmm_memory_segment(memory, instance->segment);
	vmm_list_remove(&instance->lru);
	for (at = segment->lru[class_index].prev; at != &segment->lru[class_index]; at = at->prev)
		if (vmm_container_of(at, struct vmm_instance, lru)->last_use < instance->last_use)
			break;
	vmm_list_insert_after(at, &instance->lru);
}

static void enter_segment(struct vmm_memory *memory, struct vmm_instance *instance,
			  struct vmm_segment *segment, const struct vmm_room *room)
{
	vmm_gate_shut(instance);
	instance->segment = (uint8_t)segment->port->id;
	instance->range = room->node;
	vmm_residency_set_offset(segment, instance, room->offset);
	instance->class_index = (uint8_t)vmm_allocation_class(instance->allocation);
	instance->not_written = false; /* what was said of its last stay */
	instance->newest = 0;
	segment->resident_bytes += instance->allocation->size_bytes;
	vmm_fair_enter(segment, instance->allocation);
	segment->residents++;
	segment->peak_bytes = vmm_max_u64(segment->peak_bytes, segment->resident_bytes);
	memory->resident_total += instance->allocation->size_bytes;
	memory->peak_total = vmm_max_u64(memory->peak_total, memory->resident_total);
	if (segment->cpu_memory && !instance->allocation->viewer)
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + room->offset,
				     instance->allocation->size_bytes);
	vmm_recency_enter(memory, instance);
}

/* Of one that nobody has used yet, or any more. */
static void give_place_back(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	vmm_va_hide(memory, instance); /* VA-13 */
	vmm_gate_shut(instance);
	vmm_recency_forget(memory);
	memory->adapter->placements++;
	vmm_host_unmap(memory, instance);
	vmm_segment_free(memory, segment, instance->range);
	vmm_list_remove(&instance->lru);
	segment->resident_bytes -= instance->allocation->size_bytes;
	vmm_fair_leave(segment, instance->allocation);
	segment->residents--;
	memory->resident_total -= instance->allocation->size_bytes;
	instance->segment = 0;
	instance->offset = instance->address = 0;
	instance->prepared = 0;
	instance->range = VMM_RANGE_NONE;
}

static void leave_segment(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_private_leave(memory, instance, instance->offset, instance->own);
	instance->own = false;
	give_place_back(memory, instance);
}

static void residency_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			    uint32_t reason, uint32_t old_segment)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, a->owner, instance->handle,
		  reason, a->size_bytes, old_segment, instance->segment, instance->offset);
}

vmm_status vmm_residency_give_backing(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (instance->backing.arena)
		return VMM_OK;
	return vmm_link_store_create(memory, instance, true);
}

/*
 * The last paging packet that touches the instance. Where it moves the content, the CPU waits for it like for a GPU
 * write; mapping and unmapping leave the bytes where the CPU sees them.
 */
void vmm_residency_mark_paged(struct vmm_memory *memory, struct vmm_instance *instance,
			      bool moves_content)
{
	uint32_t t = memory->adapter->paging_timeline;
	uint64_t sequence = vmm_paging_sequence(memory);

	vmm_gate_shut(instance);
	vmm_mark_used(&instance->queued[t], sequence);
	if (moves_content)
		vmm_mark_used(&instance->written[t], sequence);
}

/* The newer copy of one whose system copy stays, by the way that its eviction takes. */
static vmm_status bring_back(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint64_t preparation)
{
	vmm_status status = vmm_eviction_transfer(memory, instance, preparation);

	if (status != VMM_OK)
		return status;
	vmm_residency_mark_paged(memory, instance, true);
	instance->gpu_wrote = false;
	return VMM_OK;
}

static vmm_status evict_from_memory(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation)
{
	if (instance->kept && !instance->gpu_wrote)
		return vmm_paging_discard(memory, instance); /* PAG-13, PAG-06 */
	if (instance->kept)
		return bring_back(memory, instance, preparation);
	vmm_coherence_to_gpu(memory, instance, VMM_PLACE_MEMORY);
	if (memory->caps->wddm2)
		return vmm_eviction_wddm2(memory, instance, preparation);
	/* PAG-12: the system copy was given up at page-in, so eviction always copies back. */
	vmm_status status = vmm_link_store_create(memory, instance, false);

	if (!vmm_ok(status))
		return status;
	status = vmm_eviction_transfer(memory, instance, preparation);
	if (status != VMM_OK)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

static vmm_status move_locked_instance(struct vmm_memory *memory, struct vmm_instance *instance,
				       uint32_t reason, uint64_t preparation)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_os_view_freeze(&instance->view);

	/*
	 * LOCK-04, PAG-16, LKR-04: stores of the CPU block while the content moves; without that they could be lost, so it
	 * stays.
	 */
	if (!vmm_ok(status))
		return status;
	/* SWZ-19: what was seen through a range is seen in system memory. */
	instance->linear =
		vmm_memory_is_aperture_locked(instance) && vmm_instance_is_swizzled(instance);
	status = evict_from_memory(memory, instance, preparation);
	if (status != VMM_OK) {
		instance->linear = false;
		vmm_os_view_thaw(&instance->view);
		return status;
	}
	vmm_residency_mark_paged(memory, instance, true);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					     VIDMM_WAIT_LOCK);
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	instance->view_current = false;
	vmm_status shown = vmm_view_show(memory, instance);
	if (!vmm_ok(shown))
		vmm_os_view_thaw(&instance->view);
	vmm_swizzle_release(memory, instance); /* until now it was read through them */
	vmm_coherence_to_cpu(memory, instance, false);
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return vmm_ok(status) ? shown : status;
}

/* Is it a swizzling range with an address of its own through which the CPU sees it now? */
static bool is_locked_through_alternate(struct vmm_memory *memory,
					const struct vmm_instance *instance)
{
	if (vmm_likely(!vmm_alternate_is_locked(instance)))
		return false;
	const struct vmm_swizzling_range *range =
		vmm_swizzle_find(memory, instance, instance->lock_data);
	return range && range->alternate;
}

/* LKR-07, SWZ-25 */
static vmm_status move_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint32_t reason)
{
	const struct vmm_alternate *before = instance->alternate;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_alternate_leave(memory, instance);

	if (instance->alternate == before) /* it has not left */
		return status;
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	vmm_coherence_to_cpu(memory, instance, false);
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return status;
}

/* LOCK-21: the pages that are not in system memory yet follow those that are; what the CPU sees stays the same. */
static vmm_status move_rest(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t reason)
{
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_partial_leave(memory, instance);

	if (instance->partial) /* it has not left */
		return status;
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return status;
}

void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason)
{
	uint32_t old_segment = instance->segment;

	vmm_gate_shut(instance);
	(void)!vmm_paging_notify(memory, instance, false); /* PAG-25 */
	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_drop(memory, instance);
	if (instance->place == VMM_PLACE_MEMORY) {
		vmm_swizzle_release(memory, instance);
		if (reason == VIDMM_RESIDENCY_DISCARDED)
			(void)!vmm_paging_discard(
				memory,
				instance); /* PAG-06; a dead adapter has no content left anyway */
		vmm_view_hide(instance);
		leave_segment(memory, instance);
		if (!instance->kept) /* of 2.x, where it stays while the content is in a segment */
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
	} else if (instance->place == VMM_PLACE_APERTURE) {
		vmm_swizzle_release(memory, instance);
		(void)!vmm_paging_unmap(memory, instance);
		leave_segment(memory, instance);
		if (!instance->kept)
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
		vmm_view_hide(instance);
	} else if (!instance->kept) {
		vmm_va_hide(memory, instance);
		uint64_t last = atomic_load_explicit(
			&instance->queued[memory->adapter->paging_timeline], memory_order_relaxed);
		vmm_backing_destroy_after(memory, &instance->backing, last);
		vmm_view_hide(instance);
	}
	if (!vmm_locks(instance))
		vmm_alternate_drop(instance);
	/* A system copy that stays is older content, and as good as any (OFR-09). */
	vmm_kept_left_segment(instance);
	instance->linear = false;
	instance->place = instance->kept ? VMM_PLACE_SYSTEM : VMM_PLACE_LOST;
	residency_event(memory, instance, reason, old_segment);
}

/* PAG-32: what is protected is encrypted on its way out by the segment, or does not go. */
static bool leaves_in_the_clear(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	return memory->caps->wddm2 &&
	       (instance->allocation->flags & VMM_ALLOCATION_HARDWARE_PROTECTED) &&
	       !(instance->not_written && instance->backing.address) &&
	       !vmm_memory_segment(memory, instance->segment)->port->flags.EncryptedPagingSupported;
}

static vmm_status lose_protected(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint32_t reason)
{
	/* Neither the CPU's stores are to be lost, nor anything to a change of power (PNP-05). */
	if (vmm_locks(instance) || reason == VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED;
	vmm_reason(memory->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		   instance->allocation->owner, instance->handle,
		   "PAG-32: the content of 0x%08x is HardwareProtected and segment %u has no "
		   "EncryptedPagingSupported: it is discarded, not copied out",
		   instance->handle, instance->segment);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	memory->figures.evictions++;
	return VMM_OK;
}

void vmm_residency_reset(struct vmm_memory *memory, struct vmm_instance *instance,
			 enum vmm_place place)
{
	uint32_t old_segment = instance->segment;

	vmm_kept_left_segment(instance);
	leave_segment(memory, instance);
	instance->place = (uint8_t)place;
	instance->announced = false; /* the miniport knows that nothing is (PAG-25) */
	residency_event(memory, instance, VIDMM_RESIDENCY_RESET, old_segment);
}

/*
 * PAG-20: the way out is too narrow because of what is pinned there, so the content goes nowhere (state machine 4.1: no
 * operation). What the CPU has locked stays instead: stores of the CPU are not to be lost.
 */
static vmm_status lose_content(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason)
{
	struct vmm_allocation *a = instance->allocation;

	if (vmm_locks(instance))
		return VMM_NOT_SUPPORTED;
	vmm_finding(
		memory->adapter->observe, "PAG-20", a->owner, instance->handle,
		"the content of 0x%08x (%llu bytes) is lost: what is pinned in the apertures of its EvictionSegmentSet "
		"0x%x leaves at most %llu bytes in one piece (PNP-09)",
		instance->handle, (unsigned long long)a->size_bytes, a->eviction_set,
		(unsigned long long)vmm_eviction_widest(memory, a->eviction_set));
	a->content_lost = true;
	vmm_allocation_mark(a, VMM_MARK_CONTENT_LOST, true);
	vmm_residency_drop(memory, instance, reason);
	memory->figures.evictions++;
	return VMM_OK;
}

/* For what that preparation brings in: its own working set stays. VMM_PENDING: the way out is in use by the GPU. */
static vmm_status evict_now(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t reason, uint64_t preparation)
{
	uint32_t old_segment = instance->segment;
	bool told = false;
	vmm_status status;

	vmm_gate_shut(instance);
	vmm_assert(instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE);
	vmm_assert(vmm_instance_unused(instance));
	if (vmm_unlikely(instance->allocation->gone)) { /* ALF-37: nobody wants its content */
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
		return VMM_OK;
	}
	if (vmm_unlikely(is_locked_through_alternate(memory, instance)))
		return move_alternate(memory, instance, reason);
	if (vmm_unlikely(instance->partial != NULL))
		return move_rest(memory, instance, reason);
	if (instance->place == VMM_PLACE_MEMORY) {
		/* From 2.0 on the GPU may write to what the CPU has locked (LKR-09). */
		vmm_assert(memory->caps->wddm2 ||
			   !(instance->kept && vmm_locks(instance) && instance->gpu_wrote));
		if (vmm_unlikely(vmm_eviction_loses_content(memory, instance)))
			return lose_content(memory, instance, reason);
		if (vmm_unlikely(leaves_in_the_clear(memory, instance)))
			return lose_protected(memory, instance, reason);
		if (vmm_locks(instance) && !instance->kept)
			return move_locked_instance(memory, instance, reason, preparation);
		vmm_swizzle_release(memory, instance);
		status = evict_from_memory(memory, instance, preparation);
		if (status == VMM_OK)
			vmm_view_hide(instance);
	} else {
		vmm_swizzle_release(memory, instance);
		status = vmm_notify_leaving_aperture(memory, instance, &told);
		if (vmm_ok(status)) /* PAG-17: an aperture unmaps, nothing is copied */
			status = vmm_paging_unmap(memory, instance);
	}
	if (status != VMM_OK)
		return status;
	vmm_residency_mark_paged(memory, instance,
				 told || (instance->place == VMM_PLACE_MEMORY && !instance->kept));
	vmm_kept_left_segment(instance);
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return VMM_OK;
}

/* PAG-25: the miniport hears of it before the content moves, and of it again if that fails. */
vmm_status vmm_residency_evict_for(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
{
	vmm_status status;

	if (vmm_unlikely(instance->allocation->pinned ||
			 vmm_allocation_is_shown(instance->allocation)) &&
	    reason != VIDMM_RESIDENCY_STOP && reason != VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED; /* PAG-18, PRS-06 */
	vmm_context_allocation_let_go(memory, instance);
	status = vmm_paging_notify(memory, instance, false);
	if (!vmm_ok(status))
		return status;
	status = evict_now(memory, instance, reason, preparation);
	if (status != VMM_OK && status != VMM_DEVICE_REMOVED)
		(void)!vmm_paging_notify(memory, instance, true);
	return status;
}

vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason)
{
	return vmm_residency_evict_for(memory, instance, reason, VMM_NO_PREPARATION);
}

static vmm_status map_backing(struct vmm_memory *memory, struct vmm_instance *instance)
{
	bool had_one = instance->backing.arena != 0;
	vmm_status status = vmm_residency_give_backing(memory, instance);

	if (!vmm_ok(status))
		return status;
	status = vmm_paging_map(memory, instance);
	if (!vmm_ok(status) && !had_one)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* Content for the new place; on failure the instance is what it was. */
static vmm_status bring_content(struct vmm_memory *memory, struct vmm_instance *instance,
				enum vmm_place from)
{
	vmm_status status;

	if (vmm_alternate_is_special(instance) && !vmm_locks(instance))
		return vmm_alternate_return(memory, instance);
	if (instance->place == VMM_PLACE_APERTURE)
		return map_backing(memory, instance); /* SEG-07: mapped, not copied */
	if (from == VMM_PLACE_FRESH || from == VMM_PLACE_LOST)
		return vmm_paging_fill(memory, instance);
	status = vmm_paging_transfer(memory, instance, true);
	if (vmm_ok(status))
		instance->linear = false; /* SWZ-20 */
	/* PAG-12, PAG-13; from 2.0 on the store stays: it is there when the content leaves again, NotWrittenTo or not. */
	if (vmm_ok(status) && !instance->kept && !memory->caps->wddm2) {
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		vmm_alternate_drop(instance); /* what it showed */
	}
	return status;
}

/*
 * SWZ-20: in an aperture the GPU would find it in the wrong form. What left under an alternate address can go back there
 * if nowhere else, because the miniport carries it (SWZ-25).
 */
static bool must_avoid_apertures(const struct vmm_instance *instance)
{
	if (vmm_alternate_is_special(instance) && !vmm_locks(instance))
		return vmm_swizzle_memory_set(instance->allocation) != 0;
	return instance->linear;
}

static vmm_status place_in(struct vmm_search *search, struct vmm_instance *instance)
{
	struct vmm_memory *memory = search->memory;
	enum vmm_place from = instance->place;
	vmm_status status = VMM_NO_VIDEO_MEMORY;
	struct vmm_room room;

	if (vmm_unlikely(instance->allocation->hinted_banks) && !search->request.low)
		status = vmm_place_in_hinted_bank(memory, search->segment, &search->request, &room);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = vmm_room_find(search, &room);
	if (!vmm_ok(status))
		return status;
	enter_segment(memory, instance, search->segment, &room);
	instance->place = search->segment->aperture ? VMM_PLACE_APERTURE : VMM_PLACE_MEMORY;
	status = vmm_private_enter(memory, instance, room.offset, false);
	if (status != VMM_OK) {
		give_place_back(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	vmm_coherence_to_gpu(memory, instance, from);
	status = bring_content(memory, instance, from);
	if (vmm_ok(status))
		status = vmm_paging_notify(memory, instance, true); /* PAG-25, VA-14 */
	if (!vmm_ok(status)) {
		leave_segment(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	if (instance->place == VMM_PLACE_MEMORY)
		vmm_view_hide(instance);
	vmm_va_refresh(memory, instance);
	vmm_residency_mark_paged(memory, instance,
				 instance->place == VMM_PLACE_MEMORY && !instance->kept);
	residency_event(memory, instance,
			instance->allocation->pinned ? VIDMM_RESIDENCY_PINNED
						     : VIDMM_RESIDENCY_REFERENCED,
			0);
	return VMM_OK;
}

/* ALF-26: it may have to be in one part of the segment, or to keep out of one. */
static vmm_status place_in_parts(struct vmm_search *search, struct vmm_instance *instance)
{
	struct vmm_place_part part[2];
	uint32_t count = vmm_place_parts(search->memory, search->segment, &search->request, part);
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	for (uint32_t i = 0; i < count && status == VMM_NO_VIDEO_MEMORY; i++) {
		search->request.low = part[i].low;
		search->request.high = part[i].high;
		search->locked_allowed = search->loss_allowed = search->compacted = false;
		status = place_in(search, instance);
	}
	return status;
}

/* PAG-24: without AccessedPhysically the aperture stands for system memory, and nothing is mapped there. */
static vmm_status place_in_system(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = vmm_residency_give_backing(memory, instance);

	if (vmm_ok(status))
		instance->place = VMM_PLACE_SYSTEM;
	return status;
}

static vmm_status place(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t set,
			uint64_t preparation)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = vmm_place_candidates(memory, allocation, set, order);
	bool blocked = false;

	for (uint32_t c = 0; c < count; c++) {
		struct vmm_search search = {
			.memory = memory,
			.segment = vmm_memory_segment(memory, order[c]),
			.preparation = preparation,
			.request =
				vmm_place_request(vmm_memory_segment(memory, order[c]), instance),
		};

		if (vmm_locks(instance) && !search.segment->aperture)
			continue; /* LKR-08: while locked it is not promoted into a memory segment */
		if (search.segment->aperture && must_avoid_apertures(instance))
			continue;
		if (vmm_unlikely(memory->caps->wddm2) && search.segment->aperture &&
		    !vmm_allocation_is_physical(allocation))
			return place_in_system(memory, instance);
		if (search.request.size_bytes > search.segment->capacity_bytes)
			continue;
		vmm_status status = place_in_parts(&search, instance);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		/*
		 * What the GPU still uses here will go idle. Waiting for it keeps the working set in the preferred segment;
		 * moving on at once would drain it into the aperture at the first burst.
		 */
		if (search.blocked)
			return VMM_PENDING;
		blocked |= search.blocked;
	}
	return blocked ? VMM_PENDING : VMM_NO_VIDEO_MEMORY;
}

vmm_status vmm_residency_place(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t set, uint64_t preparation)
{
	return place(memory, instance, set, preparation);
}

vmm_status vmm_residency_bring_in(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t set)
{
	return place(memory, instance, set, VMM_NO_PREPARATION);
}

/* A pinned allocation whose handle is gone leaves when the GPU is done with it. */
static bool room_will_come(const struct vmm_segment *segment)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &segment->lru[VMM_CLASS_PINNED])
		if (vmm_container_of(link, struct vmm_instance, lru)->allocation->closing)
			return true;
	return false;
}

vmm_status vmm_residency_pin(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	/* It cannot move between uses, so it lies where all of them find it. */
	uint32_t set = allocation->read_set & allocation->write_set;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = vmm_place_candidates(memory, allocation, set, order);

	for (uint32_t c = 0; c < count; c++) {
		struct vmm_segment *segment = vmm_memory_segment(memory, order[c]);
		const struct vmm_place_part part = vmm_place_pinned_part(segment, allocation);
		struct vmm_search search = {
			.memory = memory,
			.segment = segment,
			.preparation = VMM_NO_PREPARATION,
			.request = vmm_place_request(segment, instance),
		};

		/* PAG-19, Q-16: the zone and its end, whatever hints and directions say. */
		search.request.low = part.low;
		search.request.high = part.high;
		search.request.flags = VMM_RANGE_FROM_END;
		if (search.request.size_bytes > part.high - part.low)
			continue;
		vmm_status status = place_in(&search, instance);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		if (search.blocked || room_will_come(segment))
			return VMM_PENDING;
	}
	return VMM_NO_VIDEO_MEMORY;
}

vmm_status vmm_residency_pin_again(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	struct vmm_segment *home = vmm_memory_segment(memory, allocation->home_segment);
	struct vmm_search search = {
		.memory = memory,
		.segment = home,
		.preparation = VMM_NO_PREPARATION,
		.request = vmm_place_request(home, instance),
	};

	search.request.low = allocation->home_offset;
	search.request.high = search.request.low + search.request.size_bytes;
	search.request.flags = VMM_RANGE_FROM_END;
	return place_in(&search, instance);
}

static vmm_status stay(struct vmm_memory *memory, struct vmm_instance *instance,
		       uint64_t preparation)
{
	instance->prepared = preparation;
	vmm_residency_touch(memory, instance);
	return VMM_OK;
}

/*
 * SWZ-20: what is linear gets its form back on the way into a memory segment. Where this use is for apertures alone, it
 * goes through a memory segment of its other set.
 */
static vmm_status reswizzle(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t set,
			    uint64_t preparation)
{
	uint32_t through = vmm_swizzle_memory_set(instance->allocation);

	if ((set & through) || !through)
		return VMM_OK;
	vmm_status status = place(memory, instance, through, preparation);
	if (status != VMM_OK)
		return status;
	if (!vmm_instance_unused(instance)) /* PAG-21: by the paging itself */
		return VMM_PENDING;
	status = vmm_residency_evict_for(memory, instance, VIDMM_RESIDENCY_REFERENCED, preparation);
	return status == VMM_OK && instance->allocation->content_lost /* PAG-20 */
		       ? STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST
		       : status;
}

vmm_status vmm_memory_make_resident_locked(struct vmm_adapter *adapter,
					   struct vmm_instance *instance, bool write,
					   uint64_t preparation)
{
	struct vmm_memory *memory = adapter->memory;
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t set = write ? allocation->write_set : allocation->read_set; /* SEG-19 */
	bool resident =
		instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE;

	bool serves = resident && (set & 1u << (instance->segment - 1));

	if (vmm_likely(serves && !(vmm_locks(instance) && instance->place == VMM_PLACE_MEMORY))) {
		vmm_status status =
			vmm_likely(!instance->handover) ? VMM_OK : vmm_hand_over(memory, instance);

		return status == VMM_OK ? stay(memory, instance, preparation) : status;
	}
	if (resident) {
		if (vmm_unlikely(serves && (vmm_memory_is_aperture_locked(instance) ||
					    vmm_allocation_is_shown(allocation))))
			return stay(memory, instance,
				    preparation); /* submitted before the lock, or the flip */
		/* In a segment that cannot serve this use, or locked by the CPU in a memory segment (LKR-01, LOCK-35). */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		vmm_status status =
			vmm_residency_evict_for(memory, instance,
						vmm_locks(instance) ? VIDMM_RESIDENCY_RENDER_LOCKED
								    : VIDMM_RESIDENCY_REFERENCED,
						preparation);
		/*
		 * Where the system cannot hold stores back, moving could lose one. The GPU can use it where it is, and the CPU
		 * goes on seeing it there.
		 */
		if (status == VMM_NOT_SUPPORTED && serves)
			return stay(memory, instance, preparation);
		if (status != VMM_OK)
			return status;
	}
	if (vmm_unlikely(allocation->content_lost)) /* PAG-20: after the reference was accepted */
		return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
	/* PAG-21: buffers that only list it, and the paging that took it out, must be over before it is paged in. */
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING) &&
	    !vmm_instance_unused(instance))
		return VMM_PENDING;
	vmm_status status = VMM_OK;
	if (vmm_unlikely(instance->linear | (instance->alternate != NULL)) &&
	    must_avoid_apertures(instance))
		status = reswizzle(memory, instance, set, preparation);
	if (status == VMM_OK)
		status = vmm_unlikely(allocation->pinned) /* locked while the power came back */
				 ? vmm_residency_pin(memory, instance)
				 : place(memory, instance, set, preparation);
	if (status == VMM_OK)
		instance->prepared = preparation;
	return status;
}

uint64_t vmm_memory_capacity(const struct vmm_adapter *adapter, uint32_t segment_set)
{
	const struct vmm_memory *memory = adapter->memory;
	uint64_t bytes = 0;

	for (uint32_t s = 0; s < memory->segment_count; s++)
		if (segment_set & 1u << s)
			bytes += memory->segment[s].capacity_bytes;
	return bytes;
}

/*
 * LOCK-36, LKR-03: asked before anything is queued. In an aperture already, it stays where it is (LOCK-37, LKR-05); what is
 * pinned in memory stays there (LKR-02).
 */
bool vmm_memory_can_render_locked(const struct vmm_instance *instance)
{
	if (instance->allocation->pinned || vmm_allocation_is_shown(instance->allocation))
		return instance->place == VMM_PLACE_APERTURE;
	if (vmm_unlikely(instance->linear)) /* SWZ-20: it would have to go to a memory segment */
		return false;
	return vmm_allocation_reaches_aperture(instance->allocation);
}

static void evict_class(struct vmm_memory *memory, uint32_t class_index)
{
	vmm_recency_settle(memory);
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		struct vmm_list *list = &memory->segment[s].lru[class_index];

		while (!vmm_list_empty(list)) {
			struct vmm_instance *i =
				vmm_container_of(list->next, struct vmm_instance, lru);

			if (vmm_residency_evict(memory, i, VIDMM_RESIDENCY_STOP) != VMM_OK)
				vmm_residency_drop(memory, i, VIDMM_RESIDENCY_STOP);
		}
	}
}

void vmm_memory_evict_all(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_paging_lock(adapter);
	/* PAG-18, PNP-09: now what is pinned goes too, and first, so that it is in nobody's way out (PAG-20). */
	for (uint32_t c = VMM_CLASS_COUNT; c-- > 0;)
		evict_class(memory, c);
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_STOP);
	vmm_backing_collect(memory);
	vmm_paging_unlock(adapter);
}
