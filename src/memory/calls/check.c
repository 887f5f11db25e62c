/* SPDX-License-Identifier: MIT */
/*
 * Asserts the invariants of segments, resident instances, allocations and arenas. Changes nothing
 * but the LRU lists' order.
 */
#include "memory/image/image.h"
#include "memory/placement/placement.h"
#include "memory/state/state.h"
#include "memory/store/arena.h"
#include "memory/store/store.h"
#include "range/range.h"

/*
 * The extents are the instance's, in the order of the content and without gaps; all but the last
 * are whole units.
 */
static void check_extents(const struct vmm_memory *memory, const struct vmm_segment *segment,
			  const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	const struct vmm_range_extents *extents = instance->extents;
	uint64_t unit = vmm_max_u64(allocation->alignment, VMM_LARGE_PAGE_SIZE), from = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(extents->count && extents->extent[0].node == instance->range);
	/* An update may demand a physical address; it then moves before the next use (PRI-15). */
	vmm_assert(vmm_placement_unit(memory, segment, allocation) ||
		   vmm_allocation_is_physical(allocation));
	for (uint32_t i = 0; i < extents->count; i++) {
		const struct vmm_range_extent *e = &extents->extent[i];

		vmm_assert(e->from == from);
		vmm_assert(e->size_bytes % unit == 0 || i + 1 == extents->count);
		vmm_assert(vmm_range_owner(segment->heap, e->node) == instance);
		vmm_assert(vmm_range_offset(segment->heap, e->node) == e->offset);
		vmm_assert(vmm_range_size(segment->heap, e->node) == e->size_bytes);
		vmm_assert(!allocation->alignment || e->offset % allocation->alignment == 0);
		vmm_assert(e->offset % segment->port->page_bytes == 0);
		from += e->size_bytes;
	}
	vmm_assert(from == vmm_footprint_bytes(segment, allocation));
}

static void check_instance(const struct vmm_memory *memory, const struct vmm_segment *segment,
			   const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t bit = 1u << (segment->port->id - 1);

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(allocation->adapter == memory->adapter);
	vmm_assert(instance->segment == segment->port->id);
	vmm_assert(instance->place ==
		   (segment->aperture ? VMM_PLACEMENT_APERTURE : VMM_PLACEMENT_MEMORY));
	/* From 2.1 on the segment set may have changed while the instance was resident (PRI-15). */
	vmm_assert(((allocation->read_set | allocation->write_set) & bit) ||
		   memory->caps->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_1);
	vmm_assert(vmm_range_owner(segment->heap, instance->range) == instance);
	vmm_assert(vmm_range_offset(segment->heap, instance->range) == instance->offset);
	vmm_assert(instance->address == segment->port->gpu_base + instance->offset);
	vmm_assert(!allocation->alignment || instance->offset % allocation->alignment == 0);
	if (instance->extents) {
		check_extents(memory, segment, instance);
	} else {
		vmm_assert(vmm_range_size(segment->heap, instance->range) >=
			   allocation->size_bytes);
		vmm_assert(instance->offset + allocation->size_bytes <= segment->capacity_bytes);
	}
	/*
	 * A protected allocation is inside the protected range, and all others are outside
	 * (ALF-26).
	 */
	const struct vmm_port_vpr *vpr = &segment->port->vpr;
	uint64_t end =
		vmm_extent_at(instance, 0, allocation->size_bytes).size_bytes + instance->offset;
	vmm_assert(!allocation->in_vpr ||
		   (instance->offset >= vpr->offset + vpr->reserve_bytes &&
		    end <= vpr->offset + vpr->size_bytes &&
		    instance->offset % vpr->alignment == 0 &&
		    vmm_range_size(segment->heap, instance->range) % vpr->alignment == 0));
	vmm_assert(allocation->in_vpr || !vmm_protected_is_reserved(segment) ||
		   end <= vpr->offset || instance->offset >= vpr->offset + vpr->size_bytes);
	/*
	 * Pages that a lock listed: the instance is in a memory segment and has a system copy of
	 * those pages. They are copied back before the GPU uses the instance again (LOCK-21).
	 */
	vmm_assert(!instance->partial ||
		   (!segment->aperture && instance->backing.address && instance->handover &&
		    !instance->range_count && !instance->retained));
	/*
	 * On a link `newest` is one of the adapters, and only LinkInstanced stores have parts
	 * (PAG-22, PAG-23).
	 */
	vmm_assert(!vmm_link_is_mirrored(allocation) ||
		   instance->newest < vmm_link_copies(allocation));
	vmm_assert(!instance->backing.address ||
		   (instance->backing.parts != NULL) == vmm_link_is_instanced(allocation));
	/* An aperture maps pages of the backing store, so there is one. */
	vmm_assert(!segment->aperture || instance->backing.address);
}

/* Returns how many candidates a search has kept of the class. */
static uint32_t check_kept(const struct vmm_memory *memory, const struct vmm_segment *segment,
			   uint32_t index) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_farthest *kept = &segment->farthest[index];
	uint32_t count = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(kept->count <= VMM_FARTHEST_MAX);
	for (uint32_t k = 0; k < kept->count; k++) {
		const struct vmm_instance *instance = kept->instance[k];

		if (!instance)
			continue;
		vmm_assert(instance->is_kept && instance->class_index == index);
		vmm_assert(instance->segment == segment->port->id);
		count++;
	}
	return count;
}

/*
 * Asserts that the list is in order (of use, least recent first, or of arrival), and adds its
 * instances to SUM and their ranges to *RANGES.
 */
static void check_class(const struct vmm_memory *memory, const struct vmm_segment *segment,
			uint32_t index, struct vmm_segment *sum, uint32_t *ranges)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_list *at;
	const struct vmm_instance *before = NULL;
	uint32_t queued = 0, kept = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (at, &segment->lru[index]) {
		const struct vmm_instance *instance =
			vmm_container_of(at, struct vmm_instance, lru);

		check_instance(memory, segment, instance);
		vmm_assert(instance->class_index == index);
		vmm_assert(!before || !vmm_lru_is_after(memory, before, instance));
		vmm_assert(instance->last_use <= memory->use_counter);
		if (memory->order->walk == VMM_POLICY_LEAST_VALUE)
			vmm_assert(instance->valued->queue == &segment->queue[index]);
		queued++;
		kept += instance->is_kept;
		before = instance;
		sum->resident_bytes += instance->allocation->size_bytes;
		sum->residents++;
		*ranges += instance->extents ? instance->extents->count : 1;
	}
	if (memory->order->walk != VMM_POLICY_LEAST_VALUE)
		queued = 0;
	vmm_assert(vmm_policy_queue_check(&segment->queue[index]) == queued);
	vmm_assert(check_kept(memory, segment, index) == kept);
}

static uint64_t check_segment(const struct vmm_memory *memory, const struct vmm_segment *segment)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment sum = {.residents = 0};
	uint32_t ranges = segment->port->invalid_count + segment->table_count;
	struct vmm_range_statistics figures;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_range_check(segment->heap);
	vmm_host_aperture_check(segment);
	vmm_range_statistics(segment->heap, &figures);
	for (uint32_t i = 0; i < VMM_CLASS_COUNT; i++)
		check_class(memory, segment, i, &sum, &ranges);
	vmm_assert(sum.residents == segment->residents);
	vmm_assert(sum.resident_bytes == segment->resident_bytes);
	vmm_assert(segment->resident_bytes <= segment->peak_bytes);
	/* The remaining live ranges are DMA and paging buffers, which are in apertures only. */
	vmm_assert(figures.live_ranges >= ranges);
	vmm_assert(figures.size_bytes - figures.free_bytes >=
		   segment->resident_bytes + segment->invalid_bytes);
	vmm_assert(segment->aperture || figures.live_ranges == ranges);
	return sum.resident_bytes;
}

static void check_arenas(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t used = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->arena_count; i++) {
		const struct vmm_arena *arena = &memory->arenas[i];
		struct vmm_range_statistics figures;

		if (!arena->heap)
			continue;
		vmm_range_check(arena->heap);
		vmm_range_statistics(arena->heap, &figures);
		vmm_assert(figures.size_bytes - figures.free_bytes == arena->used_bytes);
		used += arena->used_bytes;
	}
	vmm_assert(used == memory->system_bytes);
	vmm_assert(used <= memory->system_limit_bytes);
}

static void check_marks(const struct vmm_allocation *a) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t marks = 0;

	vmm_assert_held(&a->adapter->paging_lock);
	marks |= a->offer ? VMM_MARK_OFFERED : 0;
	marks |= a->offer_queued ? VMM_MARK_OFFER_QUEUED : 0;
	marks |= a->content_lost ? VMM_MARK_CONTENT_LOST : 0;
	marks |= a->instance_count > 1 ? VMM_MARK_RENAMED : 0;
	marks |= a->flags & VMM_ALLOCATION_SYNCHRONOUS_PAGING ? VMM_MARK_SYNCHRONOUS : 0;
	/* VMM_MARK_REPLACED is guarded by another lock, so it may change meanwhile. */
	vmm_assert((atomic_load(&a->marks) & ~(uint32_t)VMM_MARK_REPLACED) == marks);
	vmm_assert(a->serving == (a->read_set & a->write_set) << 1);
}

static void check_allocations(const struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_list *at, *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (at, &memory->allocations) {
		const struct vmm_allocation *a = vmm_container_of(at, struct vmm_allocation, all);

		check_marks(a);
		vmm_list_for_each (link, &a->instances)
			vmm_fast_lock_check(vmm_container_of(link, struct vmm_instance, sibling));
	}
}

void vmm_memory_check(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	uint64_t resident = 0;

	vmm_paging_lock(adapter);
	vmm_lru_order(memory);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		resident += check_segment(memory, &memory->segment[i]);
	vmm_assert(resident == memory->resident_total);
	check_arenas(memory);
	vmm_swizzle_check(memory);
	check_allocations(memory);
	vmm_paging_unlock_idle(adapter);
}
