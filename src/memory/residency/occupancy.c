/* SPDX-License-Identifier: MIT */
/*
 * Occupancy of segments: what changes when an instance enters a segment, leaves it or changes its
 * eviction class. Also takes instances out of their segments without a copy of their content.
 */
#include "memory/image/image.h"
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"

/* Moves the instance to the list of its current eviction class. */
static void reclass(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment *segment;
	struct vmm_list *at;
	uint32_t class_index = vmm_allocation_class(instance->allocation);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->class_index == class_index)
		return;
	vmm_lru_forget(memory, instance);
	instance->class_index = (uint8_t)class_index;
	if (instance->place != VMM_PLACEMENT_MEMORY && instance->place != VMM_PLACEMENT_APERTURE)
		return;
	/* Keeps the order within the new class. */
	vmm_lru_order(memory);
	segment = vmm_memory_segment(memory, instance->segment);
	vmm_list_remove(&instance->lru);
	for (at = segment->lru[class_index].prev; at != &segment->lru[class_index]; at = at->prev)
		if (!vmm_lru_is_after(memory, vmm_container_of(at, struct vmm_instance, lru),
				      instance))
			break;
	vmm_list_insert_after(at, &instance->lru);
	/* It may be farther than what a search has kept of this class. 0: of no submission. */
	segment->farthest[class_index].of.submission = 0;
	if (vmm_unlikely(instance->valued != NULL))
		vmm_valued_update(memory, instance);
}

void vmm_allocation_reclass(struct vmm_allocation *allocation)
{
	struct vmm_list *link;

	vmm_assert_held(&allocation->adapter->paging_lock);
	vmm_list_for_each (link, &allocation->instances)
		reclass(allocation->adapter->memory,
			vmm_container_of(link, struct vmm_instance, sibling));
}

/* Priorities lie between the named ones; each class begins with the name of its lowest one. */
static uint32_t priority_class(uint32_t priority)
{
	static const uint32_t lowest[VMM_ALLOCATION_CLASSES] = {
		0, D3DDDI_ALLOCATIONPRIORITY_LOW, D3DDDI_ALLOCATIONPRIORITY_NORMAL,
		D3DDDI_ALLOCATIONPRIORITY_HIGH, D3DDDI_ALLOCATIONPRIORITY_MAXIMUM};
	uint32_t class = VMM_ALLOCATION_CLASSES - 1;

	while (priority < lowest[class])
		class --;
	return class;
}

/* Why an instance leaves a memory segment for that reason (VIDMM_RESIDENCY_*). */
static enum vmm_paging_cause cause_of(const struct vmm_memory *memory, uint32_t reason)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	switch (reason) {
	case VIDMM_RESIDENCY_PRESSURE:
		vmm_assert(memory->pressure != VMM_CAUSE_FIRST);
		return memory->pressure;
	case VIDMM_RESIDENCY_DISCARDED: /* for free space, or by a lock */
		return memory->pressure != VMM_CAUSE_FIRST ? memory->pressure : VMM_CAUSE_LOCK;
	case VIDMM_RESIDENCY_LOCK:
	case VIDMM_RESIDENCY_RENDER_LOCKED:
		return VMM_CAUSE_LOCK;
	case VIDMM_RESIDENCY_TRIM:
		return VMM_CAUSE_TRIM;
	default:
		return VMM_CAUSE_OTHER;
	}
}

void vmm_eviction_count(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t segment,
			uint32_t reason)
{
	const struct vmm_allocation *allocation = instance->allocation;
	struct vmm_memory_tallies *tallies = &memory->statistics.tallies;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(segment >= 1 && segment <= memory->segment_count);
	memory->statistics.evictions++;
	if (vmm_memory_segment(memory, segment)->aperture) {
		tallies->aperture_evictions++;
	} else {
		instance->paging_cause = (uint8_t)cause_of(memory, reason);
		tallies->memory_evictions[instance->paging_cause]++;
	}
	vmm_tally_add(&tallies->evictions, allocation);
	if (reason == VIDMM_RESIDENCY_PRESSURE)
		vmm_tally_add(&tallies->pressure, allocation);
	if (reason == VIDMM_RESIDENCY_LOCK)
		vmm_tally_add(&tallies->locks, allocation);
	tallies->evicted_bytes[segment - 1][priority_class(allocation->priority)] +=
		allocation->size_bytes;
}

static void extent_events(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < instance->extents->count; i++) {
		const struct vmm_range_extent *e = &instance->extents->extent[i];

		vmm_event(memory->adapter->observe, VIDMM_EVENT_EXTENT, instance->allocation->owner,
			  instance->handle, 0, e->size_bytes, e->from, instance->segment,
			  e->offset);
	}
}

void vmm_residency_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint32_t reason, uint32_t old_segment)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (reason == VIDMM_RESIDENCY_REFERENCED && instance->segment)
		vmm_tally_add(&memory->statistics.tallies.page_ins, a);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, a->owner, instance->handle,
		  reason, a->size_bytes, old_segment, instance->segment, instance->offset);
	if (vmm_unlikely(instance->extents != NULL))
		extent_events(memory, instance);
}

static void expect_accesses(const struct vmm_segment *segment, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = instance->allocation->size_bytes;
	struct vmm_extent extent;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
		extent = vmm_extent_at(instance, at, size);
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + extent.offset,
				     extent.size_bytes);
	}
}

void vmm_residency_enter_segment(struct vmm_memory *memory, struct vmm_instance *instance,
				 struct vmm_segment *segment, const struct vmm_free_space *space)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	instance->segment = (uint8_t)segment->port->id;
	instance->range = space->node;
	instance->extents = space->extents;
	vmm_residency_set_offset(segment, instance, space->offset);
	instance->class_index = (uint8_t)vmm_allocation_class(instance->allocation);
	instance->not_written = false; /* a report about its previous residency */
	instance->store_stale = false;
	instance->newest = 0;
	segment->resident_bytes += instance->allocation->size_bytes;
	vmm_fair_enter(segment, instance->allocation);
	segment->residents++;
	segment->peak_bytes = vmm_max_u64(segment->peak_bytes, segment->resident_bytes);
	memory->resident_total += instance->allocation->size_bytes;
	memory->peak_total = vmm_max_u64(memory->peak_total, memory->resident_total);
	if (segment->cpu_memory && !instance->allocation->viewer)
		expect_accesses(segment, instance);
	vmm_lru_enter(memory, instance);
}

/* Releases the placement of an instance that the GPU does not use. */
void vmm_residency_release_placement(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_va_invalidate_entries(memory, instance); /* VA-13 */
	vmm_fast_lock_disable(instance);
	vmm_lru_leave(memory, instance);
	memory->adapter->placements++;
	vmm_host_unmap(memory, instance);
	vmm_segment_free_placement(memory, segment, instance);
	vmm_list_remove(&instance->lru);
	segment->resident_bytes -= instance->allocation->size_bytes;
	vmm_fair_leave(segment, instance->allocation);
	segment->residents--;
	memory->resident_total -= instance->allocation->size_bytes;
	instance->segment = 0;
	instance->offset = instance->address = 0;
	instance->prepared = 0;
}

void vmm_residency_leave_segment(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_client_object_leave(memory, instance, instance->offset, instance->has_client_object);
	instance->has_client_object = false;
	vmm_residency_release_placement(memory, instance);
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
		vmm_residency_leave_segment(memory, instance);
		instance->paging_cause = (uint8_t)cause_of(memory, reason);
		/* from 2.0 on the store exists while the content is in a segment */
		if (!instance->retained)
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
	} else if (instance->place == VMM_PLACEMENT_APERTURE) {
		vmm_swizzle_release(memory, instance);
		(void)!vmm_paging_unmap(memory, instance);
		vmm_residency_leave_segment(memory, instance);
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
	vmm_residency_event(memory, instance, reason, old_segment);
}

void vmm_residency_reset(struct vmm_memory *memory, struct vmm_instance *instance,
			 enum vmm_placement place)
{
	uint32_t old_segment = instance->segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_retained_left_segment(instance);
	if (instance->place == VMM_PLACEMENT_MEMORY)
		instance->paging_cause = VMM_CAUSE_OTHER;
	vmm_residency_leave_segment(memory, instance);
	instance->place = (uint8_t)place;
	/* a reset has notified the miniport that nothing is resident (PAG-25) */
	instance->announced = false;
	vmm_residency_event(memory, instance, VIDMM_RESIDENCY_RESET, old_segment);
}

void vmm_instance_finish(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_unbind(instance);
	if (instance->place != VMM_PLACEMENT_LOST && instance->place != VMM_PLACEMENT_FRESH)
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
	vmm_unlock_released(memory);
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	if (instance->view.address)
		vmm_os_view_release(&instance->view);
	vmm_alternate_drop(instance);
	vmm_retained_free(instance);
	vmm_valued_free(instance);
	vmm_free(instance->allocation->home_extents);
	instance->allocation->home_extents = NULL;
	vmm_list_remove(&instance->sibling);
	if (--instance->allocation->instance_count == 1)
		vmm_allocation_mark(instance->allocation, VMM_MARK_RENAMED, false);
	memory->instances--;
}
