/* SPDX-License-Identifier: MIT */
/* Tier 4, placement: where in a segment an instance may be. */
#ifndef VMM_MEMORY_PLACEMENT_H
#define VMM_MEMORY_PLACEMENT_H

#include "memory/state/types.h"

/* An allocated range of a segment, or the first of several extents. */
struct vmm_free_space {
	vmm_range_node node;
	uint64_t offset;
	struct vmm_range_extents *extents; /* NULL: one range */
};

/* The result of a check: the rule that is broken and what is wrong, both NULL if nothing is. */
struct vmm_flags_verdict {
	const char *rule, *what;
};

/* ---- placement.c: segments, banks and directions that the miniport prefers ---- */
/*
 * Writes the segment ids of the set in the order to be tried; returns their number. (SEG-16,
 * SEG-18)
 */
uint32_t vmm_placement_candidates(const struct vmm_memory *memory,
				  const struct vmm_allocation *allocation, uint32_t set,
				  uint32_t order[VMM_PORT_SEGMENTS_MAX]);
/*
 * Returns the position of the segment in the allocation's preferences, from 0; a number that is no
 * position if it is not among them.
 */
uint32_t vmm_placement_preference(const struct vmm_allocation *allocation, uint32_t segment_id);
/* Returns the enum vmm_range_flags for that segment: from which end to search. (SEG-17, ALF-17) */
uint32_t vmm_placement_flags(const struct vmm_allocation *allocation, uint32_t segment_id);
/*
 * Returns the offset at which the part of the segment begins that pinned allocations may use.
 * (PAG-19)
 */
uint64_t vmm_placement_pinned_zone(const struct vmm_segment *segment);
/* Returns the bank hints of a new allocation that have a meaning; 0: none. (SEG-14) */
uint32_t vmm_placement_hinted_banks(const struct vmm_memory *memory,
				    const DXGK_ALLOCATIONINFO *info);
/*
 * Returns the unit of the extents that the allocation may have in that segment, in bytes; 0: it
 * needs a contiguous range. (PAG-24, Q-230, Q-231)
 */
uint64_t vmm_placement_unit(const struct vmm_memory *memory, const struct vmm_segment *segment,
			    const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * Allocates a range in the first hinted bank with free space. The request's owner has hints.
 * Returns VMM_NO_VIDEO_MEMORY if no hinted bank has space; nothing is evicted. (SEG-15)
 */
vmm_status vmm_placement_in_hinted_bank(struct vmm_memory *memory, struct vmm_segment *segment,
					const struct vmm_range_request *anywhere,
					struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- protected.c: protected ranges (VPR) of segments (ALF-26) ---- */
/*
 * Returns the set of segments with a protected range of at least size_bytes; with 0: of all that
 * have one.
 */
uint32_t vmm_protected_set(const struct vmm_memory *memory, uint64_t size_bytes);
/* For a new allocation with CreateInVpr: removes the segments that cannot hold it from its sets. */
void vmm_protected_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the usable bytes of the protected range. */
uint64_t vmm_protected_bytes(const struct vmm_segment *segment);
/* Is the protected range reserved for protected allocations? */
bool vmm_protected_is_reserved(const struct vmm_segment *segment);
/*
 * Returns a request with the instance's size, alignment and direction in that segment, without
 * bounds.
 */
struct vmm_range_request vmm_placement_request(const struct vmm_segment *segment,
					       struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class);
struct vmm_placement_part {
	uint64_t low, high; /* high 0: to the end of the segment */
};
/*
 * Writes the parts of the segment that may hold the request's owner, the preferred one first;
 * returns their number.
 */
uint32_t vmm_placement_parts(struct vmm_memory *memory, struct vmm_segment *segment,
			     const struct vmm_range_request *request,
			     struct vmm_placement_part part[2]) VMM_REQUIRES(vmm_paging_lock_class);
/* Returns the widest of those parts inside the zone for pinned allocations. (PAG-19) */
struct vmm_placement_part vmm_placement_pinned_part(const struct vmm_segment *segment,
						    const struct vmm_allocation *allocation);

/* ---- footprint.c: the bytes that an allocation takes in a segment (SEG-10, SEG-11) ---- */
uint64_t vmm_footprint_bytes(const struct vmm_segment *segment,
			     const struct vmm_allocation *allocation);
/* Rounds size_bytes up to the unit of the segment's protected range. */
uint64_t vmm_footprint_protected_units(const struct vmm_segment *segment, uint64_t size_bytes);
/* Returns the most that it takes in any segment of its sets. */
uint64_t vmm_footprint_largest(const struct vmm_memory *memory,
			       const struct vmm_allocation *allocation);
/*
 * Returns the segments that an allocation with that PitchAlignedSize cannot be placed in. (SEG-10)
 */
uint32_t vmm_footprint_excluded_set(const struct vmm_memory *memory, uint64_t pitch_bytes);
/* Checks Alignment and PitchAlignedSize against the segments of the sets. (SEG-10, SEG-11) */
struct vmm_flags_verdict vmm_footprint_check(const struct vmm_memory *memory,
					     const DXGK_ALLOCATIONINFO *info);
/*
 * Stores the sizes of a new allocation and removes the segments that it cannot be placed in from
 * its sets.
 */
void vmm_footprint_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation,
			    uint64_t pitch_aligned_bytes);

#endif
