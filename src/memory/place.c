/* SPDX-License-Identifier: MIT */
/*
 * Where an allocation is to be looked a place for: which segments in which order, from which end of a segment, in
 * which of its banks. Who leaves when there is no room is residency.c's concern.
 */
#include "memory/memory_private.h"

enum {
	PREFERENCES = 5, /* of DXGK_SEGMENTPREFERENCE: id in five bits, then the direction */
	PREFERENCE_BITS = 6,
	PREFERENCE_ID = 0x1F,
	PREFERENCE_DIRECTION = 0x20,
	BANKS = 4, /* of DXGK_SEGMENTBANKPREFERENCE: id in seven bits, then the direction */
	BANK_BITS = 8,
	BANK_ID = 0x7F,
	BANK_DIRECTION = 0x80,
	FROM_END_OF_SEGMENT = 0x40,
};

/* SEG-16, SEG-18: preferences, then the rest of the set, in which bit n - 1 means segment n (SEG-01). */
uint32_t vmm_place_candidates(const struct vmm_memory *memory,
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

/* SEG-17: an explicit direction wins over FromEndOfSegment (ALF-17). */
uint32_t vmm_place_flags(const struct vmm_allocation *allocation, uint32_t segment_id)
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
 * SEG-14: hints concern the banks of the first preferred segment; without one, or without banks there, they say
 * nothing. The list ends at the first 0.
 */
uint32_t vmm_place_hinted_banks(const struct vmm_memory *memory, const DXGK_ALLOCATIONINFO *info)
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
 * SEG-15: each hint has its own end from which its bank is searched, which wins over what is said of the segment
 * (ALF-17). What a bank has no room for goes on to the next hint, then anywhere in the segment (SEG-14); only there
 * may it cross a border (SEG-13), and only there does somebody leave for it.
 */
vmm_status vmm_place_in_hinted_bank(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *anywhere, struct vmm_room *room)
{
	const struct vmm_instance *instance = anywhere->owner;
	uint32_t banks = instance->allocation->hinted_banks;

	if ((instance->allocation->preferred & PREFERENCE_ID) != segment->port->id)
		return VMM_NO_VIDEO_MEMORY;
	for (; banks; banks >>= BANK_BITS) {
		uint32_t bank = (banks & BANK_ID) - 1;
		struct vmm_range_request request = *anywhere;

		request.low = bank ? segment->port->bank_end[bank - 1] : 0;
		request.high = segment->port->bank_end[bank];
		request.flags = banks & BANK_DIRECTION ? VMM_RANGE_FROM_END : 0;
		vmm_status status =
			vmm_segment_allocate(memory, segment, &request, &room->node, &room->offset);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
	}
	return VMM_NO_VIDEO_MEMORY;
}

/* Whole pages, so that it never is more than a fifth; one for all, which is what bounds their sum. */
uint64_t vmm_place_pinned_zone(const struct vmm_segment *segment)
{
	return segment->capacity_bytes - vmm_align_down(segment->capacity_bytes / 5, VMM_PAGE_SIZE);
}
