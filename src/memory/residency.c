/* SPDX-License-Identifier: MIT */
/*
 * Residency: page-in and eviction of instances, and what happens to their content.
 *
 * Paging packets run in order, so the space of an evicted instance can be reassigned at once. The
 * new owner's first paging command runs after the last one of the old owner. Packets that use the
 * new owner wait for its paging.
 */
#include "memory/memory_private.h"
#include "memory/client_object.h"

bool vmm_instance_unused(const struct vmm_instance *instance)
{
	return !vmm_instance_busy(instance, VMM_USE_ACTIVE, NULL, NULL);
}

void vmm_residency_reclass(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment;
	struct vmm_list *at;
	uint32_t class_index = vmm_allocation_class(instance->allocation);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->class_index == class_index)
		return;
	instance->class_index = (uint8_t)class_index;
	if (instance->place != VMM_PLACEMENT_MEMORY && instance->place != VMM_PLACEMENT_APERTURE)
		return;
	/* Keeps the order by last use within the new class. */
	vmm_lru_order(memory);
	segment = vmm_memory_segment(memory, instance->segment);
	vmm_list_remove(&instance->lru);
	for (at = segment->lru[class_index].prev; at != &segment->lru[class_index]; at = at->prev)
		if (vmm_container_of(at, struct vmm_instance, lru)->last_use < instance->last_use)
			break;
	vmm_list_insert_after(at, &instance->lru);
}

static void enter_segment(struct vmm_memory *memory, struct vmm_instance *instance,
			  struct vmm_segment *segment, const struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	instance->segment = (uint8_t)segment->port->id;
	instance->range = space->node;
	vmm_residency_set_offset(segment, instance, space->offset);
	instance->class_index = (uint8_t)vmm_allocation_class(instance->allocation);
	instance->not_written = false; /* a report about its previous residency */
	instance->newest = 0;
	segment->resident_bytes += instance->allocation->size_bytes;
	vmm_fair_enter(segment, instance->allocation);
	segment->residents++;
	segment->peak_bytes = vmm_max_u64(segment->peak_bytes, segment->resident_bytes);
	memory->resident_total += instance->allocation->size_bytes;
	memory->peak_total = vmm_max_u64(memory->peak_total, memory->resident_total);
	if (segment->cpu_memory && !instance->allocation->viewer)
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + space->offset,
				     instance->allocation->size_bytes);
	vmm_lru_enter(memory, instance);
}

/* Releases the placement of an instance that the GPU does not use. */
static void release_placement(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_va_invalidate_entries(memory, instance); /* VA-13 */
	vmm_fast_lock_disable(instance);
	vmm_lru_forget(memory);
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
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_client_object_leave(memory, instance, instance->offset, instance->has_client_object);
	instance->has_client_object = false;
	release_placement(memory, instance);
}

static void residency_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			    uint32_t reason, uint32_t old_segment)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, a->owner, instance->handle,
		  reason, a->size_bytes, old_segment, instance->segment, instance->offset);
}

/* Copies the newer content back to a retained copy, by the same path as an eviction. */
static vmm_status write_back_retained(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_eviction_transfer(memory, instance, preparation);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	instance->gpu_wrote = false;
	return VMM_OK;
}

static vmm_status evict_from_memory(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->retained && !instance->gpu_wrote)
		return vmm_paging_discard(memory, instance); /* PAG-13, PAG-06 */
	if (instance->retained)
		return write_back_retained(memory, instance, preparation);
	vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_MEMORY);
	if (memory->caps->wddm2)
		return vmm_eviction_wddm2(memory, instance, preparation);
	/* 1.x released the system copy at page-in, so eviction always copies back (PAG-12). */
	vmm_status status = vmm_link_store_create(memory, instance, false);

	if (!vmm_ok(status))
		return status;
	status = vmm_eviction_transfer(memory, instance, preparation);
	if (status != VMM_OK)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

static vmm_status evict_under_lock(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_os_view_freeze(&instance->view);

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * CPU writes block while the content moves (LOCK-04, PAG-16, LKR-04). If the view cannot be
	 * write-protected, a write could be lost, so the instance stays.
	 */
	if (!vmm_ok(status))
		return status;
	/*
	 * The CPU saw linear content through a range; it sees the same in system memory (SWZ-19).
	 */
	instance->linear =
		vmm_memory_has_aperture_lock(instance) && vmm_instance_is_swizzled(instance);
	status = evict_from_memory(memory, instance, preparation);
	if (status != VMM_OK) {
		instance->linear = false;
		vmm_os_view_thaw(&instance->view);
		return status;
	}
	vmm_paging_mark_instance(memory, instance, true);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					     VIDMM_WAIT_LOCK);
	leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	instance->view_current = false;
	vmm_status shown = vmm_view_map(memory, instance);
	if (!vmm_ok(shown))
		vmm_os_view_thaw(&instance->view);
	vmm_swizzle_release(memory, instance); /* until here the CPU read through the ranges */
	vmm_coherence_to_cpu(memory, instance, false);
	memory->statistics.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return vmm_ok(status) ? shown : status;
}

/* Does the CPU see it through a swizzling range that has an alternate address? */
static bool has_lock_through_alternate(struct vmm_memory *memory,
				       const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!vmm_alternate_has_lock(instance)))
		return false;
	const struct vmm_swizzling_range *range =
		vmm_swizzle_find(memory, instance, instance->lock_data);
	return range && range->alternate;
}

/* Evicts an instance that is locked through an alternate address (LKR-07, SWZ-25). */
static vmm_status evict_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_alternate *before = instance->alternate;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_alternate_evict(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->alternate == before) /* it is still in the segment */
		return status;
	leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	vmm_coherence_to_cpu(memory, instance, false);
	memory->statistics.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return status;
}

/*
 * Moves the pages that are not in system memory yet to those that are. The CPU's view does not
 * change (LOCK-21).
 */
static vmm_status evict_partial(struct vmm_memory *memory, struct vmm_instance *instance,
				uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_partial_evict(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->partial) /* it is still in the segment */
		return status;
	leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	memory->statistics.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return status;
}

void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason)
{
	uint32_t old_segment = instance->segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	(void)!vmm_paging_notify(memory, instance, false); /* PAG-25 */
	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_drop(memory, instance);
	if (instance->place == VMM_PLACEMENT_MEMORY) {
		vmm_swizzle_release(memory, instance);
		/* PAG-06; a removed adapter has no content left, so a failure is ignored. */
		if (reason == VIDMM_RESIDENCY_DISCARDED)
			(void)!vmm_paging_discard(memory, instance);
		vmm_view_unmap(instance);
		leave_segment(memory, instance);
		/* from 2.0 on the store exists while the content is in a segment */
		if (!instance->retained)
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
	} else if (instance->place == VMM_PLACEMENT_APERTURE) {
		vmm_swizzle_release(memory, instance);
		(void)!vmm_paging_unmap(memory, instance);
		leave_segment(memory, instance);
		if (!instance->retained)
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
		vmm_view_unmap(instance);
	} else if (!instance->retained) {
		vmm_va_invalidate_entries(memory, instance);
		uint64_t last = atomic_load_explicit(
			&instance->queued[memory->adapter->paging_timeline], memory_order_relaxed);
		vmm_backing_destroy_after(memory, &instance->backing, last);
		vmm_view_unmap(instance);
	}
	if (!vmm_locks(instance))
		vmm_alternate_drop(instance);
	/* A retained copy is older content, which is valid after a discard (OFR-09). */
	vmm_retained_left_segment(instance);
	instance->linear = false;
	instance->place = instance->retained ? VMM_PLACEMENT_SYSTEM : VMM_PLACEMENT_LOST;
	residency_event(memory, instance, reason, old_segment);
}

/* Protected content leaves only if the segment encrypts it (PAG-32). */
static bool would_leave_unencrypted(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return memory->caps->wddm2 &&
	       (instance->allocation->flags & VMM_ALLOCATION_HARDWARE_PROTECTED) &&
	       !(instance->not_written && instance->backing.address) &&
	       !vmm_memory_segment(memory, instance->segment)->port->flags.EncryptedPagingSupported;
}

static vmm_status discard_protected(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	/* Neither CPU writes nor content across a power transition may be lost (PNP-05). */
	if (vmm_locks(instance) || reason == VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED;
	vmm_reason(memory->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		   instance->allocation->owner, instance->handle,
		   "PAG-32: the content of 0x%08x is HardwareProtected and segment %u has no "
		   "EncryptedPagingSupported: it is discarded, not copied out",
		   instance->handle, instance->segment);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	memory->statistics.evictions++;
	return VMM_OK;
}

void vmm_residency_reset(struct vmm_memory *memory, struct vmm_instance *instance,
			 enum vmm_placement place)
{
	uint32_t old_segment = instance->segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_retained_left_segment(instance);
	leave_segment(memory, instance);
	instance->place = (uint8_t)place;
	/* a reset has notified the miniport that nothing is resident (PAG-25) */
	instance->announced = false;
	residency_event(memory, instance, VIDMM_RESIDENCY_RESET, old_segment);
}

/*
 * The pinned allocations in the eviction apertures leave too little space for the transfer, so the
 * content is discarded without an operation (PAG-20, state machine 4.1). An instance that the CPU
 * has locked stays instead: CPU writes must not be lost.
 */
static vmm_status lose_content(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_locks(instance))
		return VMM_NOT_SUPPORTED;
	vmm_finding(
		memory->adapter->observe, "PAG-20", a->owner, instance->handle,
		"the content of 0x%08x (%llu bytes) is lost: pinned allocations in the apertures "
		"of its EvictionSegmentSet 0x%x leave at most %llu contiguous bytes (PNP-09)",
		instance->handle, (unsigned long long)a->size_bytes, a->eviction_set,
		(unsigned long long)vmm_eviction_widest(memory, a->eviction_set));
	a->content_lost = true;
	vmm_allocation_mark(a, VMM_MARK_CONTENT_LOST, true);
	vmm_residency_drop(memory, instance, reason);
	memory->statistics.evictions++;
	return VMM_OK;
}

/*
 * Evicts on behalf of `preparation`, whose own working set stays. Returns VMM_PENDING if the GPU
 * uses the eviction path.
 */
static vmm_status evict_now(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t reason, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t old_segment = instance->segment;
	bool notified = false;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	vmm_assert(instance->place == VMM_PLACEMENT_MEMORY ||
		   instance->place == VMM_PLACEMENT_APERTURE);
	vmm_assert(vmm_instance_unused(instance));
	if (vmm_unlikely(instance->allocation->gone)) {
		/* The allocation is being destroyed, so its content is not saved (ALF-37). */
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
		return VMM_OK;
	}
	if (vmm_unlikely(has_lock_through_alternate(memory, instance)))
		return evict_alternate(memory, instance, reason);
	if (vmm_unlikely(instance->partial != NULL))
		return evict_partial(memory, instance, reason);
	if (instance->place == VMM_PLACEMENT_MEMORY) {
		/*
		 * From 2.0 on the GPU may write to an allocation that the CPU has locked (LKR-09).
		 */
		vmm_assert(memory->caps->wddm2 ||
			   !(instance->retained && vmm_locks(instance) && instance->gpu_wrote));
		if (vmm_unlikely(vmm_eviction_loses_content(memory, instance)))
			return lose_content(memory, instance, reason);
		if (vmm_unlikely(would_leave_unencrypted(memory, instance)))
			return discard_protected(memory, instance, reason);
		if (vmm_locks(instance) && !instance->retained)
			return evict_under_lock(memory, instance, reason, preparation);
		vmm_swizzle_release(memory, instance);
		status = evict_from_memory(memory, instance, preparation);
		if (status == VMM_OK)
			vmm_view_unmap(instance);
	} else {
		vmm_swizzle_release(memory, instance);
		status = vmm_notify_leaving_aperture(memory, instance, &notified);
		if (vmm_ok(status))
			/* An aperture is unmapped; nothing is copied (PAG-17). */
			status = vmm_paging_unmap(memory, instance);
	}
	if (status != VMM_OK)
		return status;
	vmm_paging_mark_instance(
		memory, instance,
		notified || (instance->place == VMM_PLACEMENT_MEMORY && !instance->retained));
	vmm_retained_left_segment(instance);
	leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	memory->statistics.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return VMM_OK;
}

/* Notifies the miniport before the content moves, and again if the eviction fails (PAG-25). */
vmm_status vmm_residency_evict_for(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
{
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->allocation->pinned ||
			 vmm_allocation_is_displayed(instance->allocation)) &&
	    reason != VIDMM_RESIDENCY_STOP && reason != VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED; /* PAG-18, PRS-06 */
	vmm_paging_switch_away(memory, instance);
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
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_residency_evict_for(memory, instance, reason, VMM_NO_PREPARATION);
}

static vmm_status map_backing(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	bool had_one = instance->backing.arena != 0;
	vmm_status status = vmm_residency_ensure_backing(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	status = vmm_paging_map(memory, instance);
	if (!vmm_ok(status) && !had_one)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* Produces the content for the new placement. On failure the instance is unchanged. */
static vmm_status page_in_content(struct vmm_memory *memory, struct vmm_instance *instance,
				  enum vmm_placement from) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_alternate_is_special(instance) && !vmm_locks(instance))
		return vmm_alternate_restore(memory, instance);
	if (instance->place == VMM_PLACEMENT_APERTURE)
		return map_backing(memory, instance); /* mapped, not copied (SEG-07) */
	if (from == VMM_PLACEMENT_FRESH || from == VMM_PLACEMENT_LOST)
		return vmm_paging_fill(memory, instance);
	status = vmm_paging_transfer(memory, instance, true);
	if (vmm_ok(status))
		instance->linear = false; /* SWZ-20 */
	/*
	 * PAG-12, PAG-13. From 2.0 on the store remains: the next eviction needs one, whether or
	 * not the content was NotWrittenTo.
	 */
	if (vmm_ok(status) && !instance->retained && !memory->caps->wddm2) {
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		vmm_alternate_drop(instance); /* the alternate address mapped the store */
	}
	return status;
}

/*
 * Linear content in an aperture would reach the GPU unswizzled (SWZ-20). Content that was evicted
 * under an alternate address may go back to an aperture if the allocation has no memory segment:
 * the miniport converts it (SWZ-25).
 */
static bool must_avoid_apertures(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (vmm_alternate_is_special(instance) && !vmm_locks(instance))
		return vmm_swizzle_memory_set(instance->allocation) != 0;
	return instance->linear;
}

static vmm_status place_in_segment(struct vmm_search *search, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = search->memory;
	enum vmm_placement from = instance->place;
	vmm_status status = VMM_NO_VIDEO_MEMORY;
	struct vmm_free_space space;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (vmm_unlikely(instance->allocation->hinted_banks) && !search->request.low)
		status = vmm_placement_in_hinted_bank(memory, search->segment, &search->request,
						      &space);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = vmm_free_space_find(search, &space);
	if (!vmm_ok(status))
		return status;
	enter_segment(memory, instance, search->segment, &space);
	instance->place = search->segment->aperture ? VMM_PLACEMENT_APERTURE : VMM_PLACEMENT_MEMORY;
	status = vmm_client_object_enter(memory, instance, space.offset, false);
	if (status != VMM_OK) {
		release_placement(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	vmm_coherence_to_gpu(memory, instance, from);
	status = page_in_content(memory, instance, from);
	if (vmm_ok(status))
		status = vmm_paging_notify(memory, instance, true); /* PAG-25, VA-14 */
	if (!vmm_ok(status)) {
		leave_segment(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	if (instance->place == VMM_PLACEMENT_MEMORY)
		vmm_view_unmap(instance);
	vmm_va_write_entries(memory, instance);
	vmm_paging_mark_instance(memory, instance,
				 instance->place == VMM_PLACEMENT_MEMORY && !instance->retained);
	residency_event(memory, instance,
			instance->allocation->pinned ? VIDMM_RESIDENCY_PINNED
						     : VIDMM_RESIDENCY_REFERENCED,
			0);
	return VMM_OK;
}

/* The allocation may be confined to one part of the segment, or excluded from one (ALF-26). */
static vmm_status place_in_parts(struct vmm_search *search, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_placement_part part[2];
	uint32_t count =
		vmm_placement_parts(search->memory, search->segment, &search->request, part);
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	for (uint32_t i = 0; i < count && status == VMM_NO_VIDEO_MEMORY; i++) {
		search->request.low = part[i].low;
		search->request.high = part[i].high;
		search->locked_allowed = search->loss_allowed = search->compacted = false;
		status = place_in_segment(search, instance);
	}
	return status;
}

/*
 * Without AccessedPhysically the aperture segment means system memory; nothing is mapped (PAG-24).
 */
static vmm_status place_in_system(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_residency_ensure_backing(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_ok(status))
		instance->place = VMM_PLACEMENT_SYSTEM;
	return status;
}

static vmm_status place(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t set,
			uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = vmm_placement_candidates(memory, allocation, set, order);

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t c = 0; c < count; c++) {
		struct vmm_search search = {
			.memory = memory,
			.segment = vmm_memory_segment(memory, order[c]),
			.preparation = preparation,
			.request = vmm_placement_request(vmm_memory_segment(memory, order[c]),
							 instance),
		};

		/* While locked, an instance is not promoted into a memory segment (LKR-08). */
		if (vmm_locks(instance) && !search.segment->aperture)
			continue;
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
		 * The instances here that the GPU uses will become idle. Waiting for them keeps the
		 * working set in the preferred segment. Going to the next segment at once would
		 * drain it into the aperture at the first burst.
		 */
		if (search.blocked)
			return VMM_PENDING;
	}
	return VMM_NO_VIDEO_MEMORY;
}

vmm_status vmm_residency_place(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t set, uint64_t preparation)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return place(memory, instance, set, preparation);
}

vmm_status vmm_residency_bring_in(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t set)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return place(memory, instance, set, VMM_NO_PREPARATION);
}

/* A pinned allocation whose handle is closed is evicted when the GPU no longer uses it. */
static bool has_closing_pinned(const struct vmm_segment *segment)
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

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * A pinned allocation cannot move between uses, so its segment must serve reads and writes.
	 */
	uint32_t set = allocation->read_set & allocation->write_set;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = vmm_placement_candidates(memory, allocation, set, order);

	for (uint32_t c = 0; c < count; c++) {
		struct vmm_segment *segment = vmm_memory_segment(memory, order[c]);
		const struct vmm_placement_part part =
			vmm_placement_pinned_part(segment, allocation);
		struct vmm_search search = {
			.memory = memory,
			.segment = segment,
			.preparation = VMM_NO_PREPARATION,
			.request = vmm_placement_request(segment, instance),
		};

		/*
		 * The pinned zone and allocation from its end take precedence over hints and
		 * directions (PAG-19, Q-16).
		 */
		search.request.low = part.low;
		search.request.high = part.high;
		search.request.flags = VMM_RANGE_FROM_END;
		if (search.request.size_bytes > part.high - part.low)
			continue;
		vmm_status status = place_in_segment(&search, instance);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		if (search.blocked || has_closing_pinned(segment))
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
		.request = vmm_placement_request(home, instance),
	};

	vmm_assert_held(&memory->adapter->paging_lock);
	search.request.low = allocation->home_offset;
	search.request.high = search.request.low + search.request.size_bytes;
	search.request.flags = VMM_RANGE_FROM_END;
	return place_in_segment(&search, instance);
}

static vmm_status keep_placement(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	instance->prepared = preparation;
	vmm_residency_touch(memory, instance);
	return VMM_OK;
}

/*
 * Restores the swizzled form of linear content on its way into a memory segment (SWZ-20). If this
 * use allows apertures only, the content passes through a memory segment of the allocation's other
 * set.
 */
static vmm_status reswizzle(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t set,
			    uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t through = vmm_swizzle_memory_set(instance->allocation);

	vmm_assert_held(&memory->adapter->paging_lock);
	if ((set & through) || !through)
		return VMM_OK;
	vmm_status status = place(memory, instance, through, preparation);
	if (status != VMM_OK)
		return status;
	if (!vmm_instance_unused(instance)) /* its own paging packet still uses it (PAG-21) */
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
	bool resident = instance->place == VMM_PLACEMENT_MEMORY ||
			instance->place == VMM_PLACEMENT_APERTURE;

	vmm_assert_held(&adapter->paging_lock);
	vmm_assert(vmm_instance_is_valid_locked(instance));
	bool serves = resident && (set & 1u << (instance->segment - 1));

	if (vmm_likely(serves &&
		       !(vmm_locks(instance) && instance->place == VMM_PLACEMENT_MEMORY))) {
		vmm_status status = vmm_likely(!instance->handover)
					    ? VMM_OK
					    : vmm_hand_over_to_gpu(memory, instance);

		return status == VMM_OK ? keep_placement(memory, instance, preparation) : status;
	}
	if (resident) {
		/* It was submitted before the lock or the flip. */
		if (vmm_unlikely(serves && (vmm_memory_has_aperture_lock(instance) ||
					    vmm_allocation_is_displayed(allocation))))
			return keep_placement(memory, instance, preparation);
		/*
		 * It is in a segment that cannot serve this use, or the CPU has locked it in a
		 * memory segment (LKR-01, LOCK-35).
		 */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		vmm_status status =
			vmm_residency_evict_for(memory, instance,
						vmm_locks(instance) ? VIDMM_RESIDENCY_RENDER_LOCKED
								    : VIDMM_RESIDENCY_REFERENCED,
						preparation);
		/*
		 * Where the system cannot block CPU writes, a move could lose one. The GPU can use
		 * the current placement, and the CPU continues to see it there.
		 */
		if (status == VMM_NOT_SUPPORTED && serves)
			return keep_placement(memory, instance, preparation);
		if (status != VMM_OK)
			return status;
	}
	if (vmm_unlikely(allocation->content_lost))
		/* The content was lost after the reference was accepted (PAG-20). */
		return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
	/*
	 * Buffers that only list it, and the packet that paged it out, must complete before page-in
	 * (PAG-21).
	 */
	if (vmm_unlikely(allocation->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING) &&
	    !vmm_instance_unused(instance))
		return VMM_PENDING;
	vmm_status status = VMM_OK;
	if (vmm_unlikely(instance->linear | (instance->alternate != NULL)) &&
	    must_avoid_apertures(instance))
		status = reswizzle(memory, instance, set, preparation);
	/* A pinned allocation was locked while the power returned. */
	if (status == VMM_OK)
		status = vmm_unlikely(allocation->pinned)
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

	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t s = 0; s < memory->segment_count; s++)
		if (segment_set & 1u << s)
			bytes += memory->segment[s].capacity_bytes;
	return bytes;
}

/*
 * Checked before anything is queued (LOCK-36, LKR-03). In an aperture already, it stays there
 * (LOCK-37, LKR-05). A pinned allocation stays in its memory segment (LKR-02).
 */
bool vmm_memory_can_render_under_lock(const struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_assert(vmm_instance_is_valid_locked(instance));
	if (instance->allocation->pinned || vmm_allocation_is_displayed(instance->allocation))
		return instance->place == VMM_PLACEMENT_APERTURE;
	if (vmm_unlikely(instance->linear))
		/* It would have to move to a memory segment (SWZ-20). */
		return false;
	return vmm_allocation_reaches_aperture(instance->allocation);
}

static void evict_class(struct vmm_memory *memory, uint32_t class_index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_lru_order(memory);
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
	/*
	 * At stop, pinned allocations are evicted, too, and first: then they do not block the
	 * eviction path of others (PAG-18, PNP-09, PAG-20).
	 */
	for (uint32_t c = VMM_CLASS_COUNT; c-- > 0;)
		evict_class(memory, c);
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_STOP);
	vmm_backing_collect(memory);
	vmm_paging_commit(adapter);
}
