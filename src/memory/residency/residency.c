/* SPDX-License-Identifier: MIT */
/*
 * Residency: page-in and eviction of instances, and what happens to their content.
 *
 * Paging packets run in order, so the space of an evicted instance can be reassigned at once. The
 * new owner's first paging command runs after the last one of the old owner. Packets that use the
 * new owner wait for its paging.
 */
#include "memory/image/image.h"
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"

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
	if (vmm_ok(status))
		memory->model->paged_in(memory, instance);
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
		return vmm_allocation_memory_set(instance->allocation) != 0;
	return instance->linear;
}

/* After a loss of power the extents are those that the instance had. */
static vmm_status find_space(struct vmm_search *search, struct vmm_instance *instance,
			     struct vmm_free_space *space) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = search->memory;
	struct vmm_range_extents *home = instance->allocation->home_extents;
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(search->at_home && home)) {
		status = vmm_segment_allocate_again(search->segment, instance, home);
		if (!vmm_ok(status))
			return status;
		instance->allocation->home_extents = NULL;
		*space =
			(struct vmm_free_space){home->extent[0].node, home->extent[0].offset, home};
		return VMM_OK;
	}
	if (vmm_unlikely(instance->allocation->hinted_banks) && !search->request.low)
		status = vmm_placement_in_hinted_bank(memory, search->segment, &search->request,
						      space);
	return status == VMM_NO_VIDEO_MEMORY ? vmm_free_space_find(search, space) : status;
}

static vmm_status place_in_segment(struct vmm_search *search, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = search->memory;
	enum vmm_placement from = instance->place;
	struct vmm_free_space space = {.extents = NULL};
	vmm_status status;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	status = find_space(search, instance, &space);
	if (!vmm_ok(status))
		return status;
	vmm_residency_enter_segment(memory, instance, search->segment, &space);
	instance->place = search->segment->aperture ? VMM_PLACEMENT_APERTURE : VMM_PLACEMENT_MEMORY;
	status = vmm_client_object_enter(memory, instance, space.offset, false);
	if (status != VMM_OK) {
		vmm_residency_release_placement(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	vmm_coherence_to_gpu(memory, instance, from);
	status = page_in_content(memory, instance, from);
	if (vmm_ok(status))
		status = vmm_paging_notify(memory, instance, true); /* PAG-25, VA-14 */
	if (!vmm_ok(status)) {
		vmm_residency_leave_segment(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	if (instance->place == VMM_PLACEMENT_MEMORY) {
		vmm_view_unmap(instance);
		/* Until it leaves, only content that a CPU lock copied out comes in. */
		instance->paging_cause = VMM_CAUSE_LOCK;
	}
	vmm_va_write_entries(memory, instance);
	vmm_paging_mark_instance(memory, instance,
				 instance->place == VMM_PLACEMENT_MEMORY && !instance->retained);
	vmm_residency_event(memory, instance,
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
	bool unlock_helps = false;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t c = 0; c < count; c++) {
		struct vmm_search search = {
			.memory = memory,
			.wanted = instance,
			.segment = vmm_memory_segment(memory, order[c]),
			.preparation = preparation,
			.request = vmm_placement_request(vmm_memory_segment(memory, order[c]),
							 instance),
			.unit_bytes = vmm_placement_unit(
				memory, vmm_memory_segment(memory, order[c]), allocation),
		};

		/* While locked, an instance is not promoted into a memory segment (LKR-08). */
		if (vmm_locks(instance) && !search.segment->aperture)
			continue;
		if (search.segment->aperture && must_avoid_apertures(instance))
			continue;
		if (vmm_unlikely(memory->model->reaches_system_memory) &&
		    search.segment->aperture && !vmm_allocation_is_physical(allocation))
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
		if (search.blocked) {
			memory->blocked_searches++;
			return VMM_PENDING;
		}
		unlock_helps |= search.unlock_helps;
	}
	vmm_unlock_note_search(memory, unlock_helps);
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
	return place(memory, instance, set, VMM_LOCK_PREPARATION);
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
			.wanted = instance,
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
		.wanted = instance,
		.segment = home,
		.preparation = VMM_NO_PREPARATION,
		.at_home = true,
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
	uint32_t through = vmm_allocation_memory_set(instance->allocation);

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

/* Could the instance be placed elsewhere, as soon as the GPU does not use it? */
static bool can_give_up_place(const struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return instance->place == VMM_PLACEMENT_MEMORY && !vmm_locks_snapshot(instance) &&
	       !instance->allocation->pinned &&
	       !vmm_allocation_is_displayed(instance->allocation) &&
	       !vmm_eviction_loses_content(memory, instance);
}

bool vmm_memory_place_is_in_use(struct vmm_adapter *adapter, const struct vmm_instance *instance)
{
	vmm_assert_held(&adapter->paging_lock);
	return can_give_up_place(adapter->memory, instance) && !vmm_instance_unused(instance);
}

vmm_status vmm_memory_give_up_place(struct vmm_adapter *adapter, struct vmm_instance *instance,
				    uint64_t preparation)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_assert_held(&adapter->paging_lock);
	if (!can_give_up_place(memory, instance))
		return VMM_OK;
	if (!vmm_instance_unused(instance))
		return VMM_PENDING;
	memory->pressure = VMM_CAUSE_FRAGMENTATION;
	vmm_status status =
		vmm_residency_evict_for(memory, instance, VIDMM_RESIDENCY_PRESSURE, preparation);
	memory->pressure = VMM_CAUSE_FIRST;
	return status == VMM_NOT_SUPPORTED ? VMM_OK : status;
}

uint64_t vmm_memory_largest_segment(const struct vmm_adapter *adapter, uint32_t segment_set)
{
	const struct vmm_memory *memory = adapter->memory;
	uint64_t bytes = 0;

	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t s = 0; s < memory->segment_count; s++)
		if (segment_set & 1u << s)
			bytes = vmm_max_u64(bytes, memory->segment[s].capacity_bytes);
	return bytes;
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
