/* SPDX-License-Identifier: MIT */
/*
 * The eviction path: how content leaves a memory segment (PAG-17).
 *
 * With an EvictionSegmentSet the content is copied through an aperture of the set. The new backing
 * pages are mapped there, the miniport copies to that aperture range, and the pages are unmapped.
 * Paging commands run in order, so the range may be reused as soon as the commands are written.
 *
 * The content is copied directly to the backing pages (SEG-20) in three cases. There is no set; the
 * allocation is larger than every aperture of its set; or the aperture is occupied by memory that
 * can be neither waited for nor evicted, which is memory of the submission itself or DMA buffers.
 *
 * If no aperture of the set has a large enough range outside its pinned allocations, the content is
 * lost (PAG-20, PNP-09, C-38).
 */
#include "memory/memory_private.h"

/*
 * Returns true if the segment of that index is an aperture of the eviction set with the capacity
 * for the allocation.
 */
static bool is_candidate(const struct vmm_memory *memory, uint32_t index,
			 const struct vmm_allocation *allocation)
{
	return (allocation->eviction_set & 1u << index) &&
	       allocation->size_bytes <= memory->segment[index].capacity_bytes;
}

/*
 * Returns the largest range in bytes that eviction may use. Pinned allocations are all in the last
 * fifth (PAG-19), so that is the part before the first of them.
 */
static uint64_t largest_passage(const struct vmm_segment *segment)
{
	uint64_t begin = segment->capacity_bytes;
	const struct vmm_list *link;

	vmm_list_for_each (link, &segment->lru[VMM_CLASS_PINNED])
		begin = vmm_min_u64(begin,
				    vmm_container_of(link, struct vmm_instance, lru)->offset);
	return begin;
}

bool vmm_eviction_is_blocked_by_pinned(const struct vmm_memory *memory,
				       const struct vmm_allocation *allocation)
{
	bool any = false;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!is_candidate(memory, i, allocation))
			continue;
		if (largest_passage(&memory->segment[i]) >= allocation->size_bytes)
			return false;
		any = true;
	}
	return any;
}

uint64_t vmm_eviction_widest(const struct vmm_memory *memory, uint32_t eviction_set)
{
	uint64_t widest = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (eviction_set & 1u << i)
			widest = vmm_max_u64(widest, largest_passage(&memory->segment[i]));
	return widest;
}

/*
 * Allocates a range in an aperture of the eviction set, in *aperture and *space. Returns
 * VMM_NO_VIDEO_MEMORY if no aperture can serve, and VMM_PENDING if one can once the GPU is done
 * with what occupies it.
 */
static vmm_status take_passage(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t preparation, struct vmm_segment **aperture,
			       struct vmm_free_space *space) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_range_request request = {.size_bytes = instance->allocation->size_bytes,
						  .owner = instance};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!is_candidate(memory, i, instance->allocation))
			continue;
		*aperture = &memory->segment[i];
		vmm_status tried =
			vmm_residency_take_space(memory, *aperture, &request, preparation, space);
		if (tried != VMM_PENDING && tried != VMM_NO_VIDEO_MEMORY)
			return tried;
		if (tried == VMM_PENDING)
			status = VMM_PENDING;
	}
	return status;
}

static vmm_status copy_out(struct vmm_memory *memory, struct vmm_instance *instance,
			   uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment *aperture = NULL;
	struct vmm_free_space space;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!instance->allocation->eviction_set))
		return vmm_paging_transfer(memory, instance, false);
	vmm_status status = take_passage(memory, instance, preparation, &aperture, &space);
	if (status == VMM_NO_VIDEO_MEMORY)
		return vmm_paging_transfer(memory, instance, false);
	if (status != VMM_OK)
		return status;
	status = vmm_paging_transfer_through(memory, instance, aperture->port->id, space.offset);
	vmm_segment_free(memory, aperture, space.node);
	return status;
}

vmm_status vmm_eviction_transfer(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint64_t preparation)
{
	vmm_status status = copy_out(memory, instance, preparation);

	vmm_assert_held(&memory->adapter->paging_lock);
	return status == VMM_OK ? vmm_paging_discard_mirrors(memory, instance) : status;
}

/*
 * From 2.0 on the backing store stays while the content is in a segment. `not_written` content
 * equals the copy there, so it is discarded instead of copied (PRI-10). HardwareProtected content
 * that must not be copied unencrypted does not come here unless it may be discarded so (PAG-32,
 * residency.c).
 */
vmm_status vmm_eviction_wddm2(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint64_t preparation)
{
	bool had_one = instance->backing.address != NULL;

	vmm_assert_held(&memory->adapter->paging_lock);
	/* While it is locked, the CPU may write to it. */
	bool not_written = instance->not_written && !vmm_locks(instance);
	vmm_status status;

	if (not_written && had_one)
		return vmm_paging_discard(memory, instance);
	status = vmm_residency_ensure_backing(memory, instance);
	if (!vmm_ok(status) || not_written) {
		/* Never written to: its content is zero, as the new store's pages are. */
		return vmm_ok(status) ? vmm_paging_discard(memory, instance) : status;
	}
	status = vmm_eviction_transfer(memory, instance, preparation);
	if (status != VMM_OK && !had_one)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

void vmm_eviction_blocker(struct vmm_memory *memory, const struct vmm_instance *instance,
			  uint32_t *timeline, uint64_t *sequence)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_lru_order(memory);
	*timeline = memory->adapter->paging_timeline;
	*sequence = 0;
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		if (!is_candidate(memory, s, instance->allocation))
			continue;
		for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT; c++) {
			struct vmm_list *link;

			vmm_list_for_each (link, &memory->segment[s].lru[c])
				if (vmm_instance_busy(
					    vmm_container_of(link, struct vmm_instance, lru),
					    VMM_USE_ACTIVE, timeline, sequence))
					return;
		}
	}
}
