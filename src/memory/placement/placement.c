/* SPDX-License-Identifier: MIT */
/*
 * Placement preferences of the miniport: which segments in which order, from which end of a
 * segment, in which of its banks. victim.c picks what is evicted if there is no free space.
 */
#include "memory/placement/placement.h"
#include "memory/state/state.h"

enum {
	/* in DXGK_SEGMENTPREFERENCE: segment id in five bits, then the direction */
	PREFERENCES = 5,
	PREFERENCE_BITS = 6,
	PREFERENCE_ID = 0x1F,
	PREFERENCE_DIRECTION = 0x20,
	BANKS = 4, /* in DXGK_SEGMENTBANKPREFERENCE: bank id in seven bits, then the direction */
	BANK_BITS = 8,
	BANK_ID = 0x7F,
	BANK_DIRECTION = 0x80,
	FROM_END_OF_SEGMENT = 0x40,
};

/*
 * Preferred segments first, then the rest of the set (SEG-16, SEG-18). Bit n - 1 of a set is
 * segment n (SEG-01).
 */
uint32_t vmm_placement_candidates(const struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint32_t set,
				  uint32_t order[VMM_PORT_SEGMENTS_MAX])
{
	uint32_t count = 0;

	for (uint32_t p = 0; p < PREFERENCES; p++) {
		uint32_t id = allocation->preferred >> (PREFERENCE_BITS * p) & PREFERENCE_ID;

		if (id && id <= memory->segment_count && (set & 1u << (id - 1))) {
			order[count++] = id;
			set &= ~(1u << (id - 1));
		}
	}
	for (uint32_t id = 1; id <= memory->segment_count; id++)
		if (set & 1u << (id - 1))
			order[count++] = id;
	return count;
}

uint32_t vmm_placement_preference(const struct vmm_allocation *allocation, uint32_t segment_id)
{
	uint32_t p = 0;

	_Static_assert(PREFERENCES == VMM_SEGMENT_PREFERENCES, "one figure for each preference");
	while (p < PREFERENCES &&
	       (allocation->preferred >> (PREFERENCE_BITS * p) & PREFERENCE_ID) != segment_id)
		p++;
	return p;
}

/* An explicit direction takes precedence over FromEndOfSegment (ALF-17). (SEG-17) */
uint32_t vmm_placement_flags(const struct vmm_allocation *allocation, uint32_t segment_id)
{
	for (uint32_t p = 0; p < PREFERENCES; p++) {
		uint32_t preference = allocation->preferred >> (PREFERENCE_BITS * p);

		if ((preference & PREFERENCE_ID) == segment_id &&
		    (preference & PREFERENCE_DIRECTION))
			return VMM_RANGE_FROM_END;
	}
	return allocation->flags & FROM_END_OF_SEGMENT ? VMM_RANGE_FROM_END : 0;
}

/*
 * Hints name banks of the first preferred segment. They have no meaning without such a segment, or
 * if it has no banks. The list of hints ends at the first 0. (SEG-14)
 */
uint32_t vmm_placement_hinted_banks(const struct vmm_memory *memory,
				    const DXGK_ALLOCATIONINFO *info)
{
	uint32_t id = info->PreferredSegment.SegmentId0, banks = info->HintedBank.Value;

	if (!id || id > memory->segment_count || !memory->segment[id - 1].port->bank_count)
		return 0;
	for (uint32_t b = 0; b < BANKS; b++)
		if (!(banks >> (BANK_BITS * b) & BANK_ID))
			return banks & (uint32_t)(((uint64_t)1 << (BANK_BITS * b)) - 1);
	return banks;
}

/*
 * Each hint says from which end its bank is searched, which takes precedence over the direction for
 * the segment (SEG-15, ALF-17). If a bank has too little free space, the next hint is tried, and
 * then the whole segment (SEG-14). Only in the last case may the range cross a bank border
 * (SEG-13), and only then are other allocations evicted for it.
 */
vmm_status vmm_placement_in_hinted_bank(struct vmm_memory *memory, struct vmm_segment *segment,
					const struct vmm_range_request *anywhere,
					struct vmm_free_space *space)
{
	const struct vmm_instance *instance = anywhere->owner;
	uint32_t banks = instance->allocation->hinted_banks;

	vmm_assert_held(&memory->adapter->paging_lock);
	if ((instance->allocation->preferred & PREFERENCE_ID) != segment->port->id)
		return VMM_NO_VIDEO_MEMORY;
	for (; banks; banks >>= BANK_BITS) {
		uint32_t bank = (banks & BANK_ID) - 1;
		struct vmm_range_request request = *anywhere;

		request.low = bank ? segment->port->bank_end[bank - 1] : 0;
		request.high = segment->port->bank_end[bank];
		request.flags = banks & BANK_DIRECTION ? VMM_RANGE_FROM_END : 0;
		vmm_status status = vmm_segment_allocate(memory, segment, &request, &space->node,
							 &space->offset);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
	}
	return VMM_NO_VIDEO_MEMORY;
}

/*
 * The GPU reaches the allocation by virtual address only, so it is a set of pages (PAG-24). A
 * physical address is given to the miniport for a primary (flips) and for memory that it has
 * created for a context; a protected range and a PitchAlignment segment prescribe the place of the
 * whole allocation.
 */
uint64_t vmm_placement_unit(const struct vmm_memory *memory, const struct vmm_segment *segment,
			    const struct vmm_allocation *allocation)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!memory->caps->gpummu.supported) || segment->aperture ||
	    vmm_allocation_is_physical(allocation) || allocation->primary || allocation->pinned ||
	    allocation->of_context || allocation->in_vpr || segment->port->flags.PitchAlignment)
		return 0;
	return vmm_max_u64(allocation->alignment, VMM_LARGE_PAGE_SIZE);
}

/*
 * The zone is the last fifth of the segment, rounded down to whole pages. All pinned allocations
 * share one zone, which limits their sum. (ALF-19, Q-16)
 */
uint64_t vmm_placement_pinned_zone(const struct vmm_segment *segment)
{
	return segment->capacity_bytes - vmm_align_down(segment->capacity_bytes / 5, VMM_PAGE_SIZE);
}
