/* SPDX-License-Identifier: MIT */
/*
 * How content leaves a memory segment (PAG-17). With an EvictionSegmentSet it goes through an aperture of the set: its
 * new backing pages are mapped there, the miniport copies to that place, and they are unmapped. Commands of the paging
 * timeline run in order, so the place is free again as soon as they are written.
 *
 * Without a set, and where the allocation is larger than every aperture of its set, it goes straight to the backing
 * pages (SEG-20). So it does where something that can neither be waited for nor evicted is in the way: what the
 * submission itself needs, or DMA buffers. Only what is pinned there costs the content (PAG-20, PNP-09, C-38).
 */
#include "memory/memory_private.h"

static bool serves(const struct vmm_memory *memory, uint32_t index,
		   const struct vmm_allocation *allocation)
{
	return (allocation->eviction_set & 1u << index) &&
	       allocation->size_bytes <= memory->segment[index].capacity_bytes;
}

/* All that is pinned lies in the last fifth (PAG-19), so what is before it is the widest piece there is. */
static uint64_t widest_passage(const struct vmm_segment *segment)
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

	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!serves(memory, i, allocation))
			continue;
		if (widest_passage(&memory->segment[i]) >= allocation->size_bytes)
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
			widest = vmm_max_u64(widest, widest_passage(&memory->segment[i]));
	return widest;
}

/* VMM_OK with a segment, VMM_NO_VIDEO_MEMORY: there is no way through an aperture, VMM_PENDING: one will do later. */
static vmm_status take_passage(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t preparation, struct vmm_segment **aperture,
			       struct vmm_room *room)
{
	const struct vmm_range_request request = {.size_bytes = instance->allocation->size_bytes,
						  .owner = instance};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!serves(memory, i, instance->allocation))
			continue;
		*aperture = &memory->segment[i];
		vmm_status tried =
			vmm_residency_take_room(memory, *aperture, &request, preparation, room);
		if (tried != VMM_PENDING && tried != VMM_NO_VIDEO_MEMORY)
			return tried;
		if (tried == VMM_PENDING)
			status = VMM_PENDING;
	}
	return status;
}

static vmm_status copy_out(struct vmm_memory *memory, struct vmm_instance *instance,
			   uint64_t preparation)
{
	struct vmm_segment *aperture = NULL;
	struct vmm_room room;

	if (vmm_likely(!instance->allocation->eviction_set))
		return vmm_paging_transfer(memory, instance, false);
	vmm_status status = take_passage(memory, instance, preparation, &aperture, &room);
	if (status == VMM_NO_VIDEO_MEMORY)
		return vmm_paging_transfer(memory, instance, false);
	if (status != VMM_OK)
		return status;
	status = vmm_paging_transfer_through(memory, instance, aperture->port->id, room.offset);
	vmm_segment_free(memory, aperture, room.node);
	return status;
}

vmm_status vmm_eviction_transfer(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint64_t preparation)
{
	vmm_status status = copy_out(memory, instance, preparation);

	return status == VMM_OK ? vmm_paging_leave_mirrors(memory, instance) : status;
}

/*
 * From 2.0 on the system copy stays in its store while the content is in a segment. What nobody has written to since
 * need not be copied back (PRI-10), nor may what must not leave in the clear (PAG-32).
 */
vmm_status vmm_eviction_wddm2(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint64_t preparation)
{
	bool had_one = instance->backing.address != NULL;
	/* The CPU may be writing to what it has locked. */
	bool not_written = instance->not_written && !vmm_locks(instance);
	vmm_status status;

	if (not_written && had_one)
		return vmm_paging_discard(memory, instance);
	status = vmm_residency_give_backing(memory, instance);
	if (!vmm_ok(status) || not_written) {
		/* Never written to: the fresh pages of the new store are what it holds. */
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
	vmm_recency_settle(memory);
	*timeline = memory->adapter->paging_timeline;
	*sequence = 0;
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		if (!serves(memory, s, instance->allocation))
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
