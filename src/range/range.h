/* SPDX-License-Identifier: MIT */
/*
 * range: allocator of byte ranges inside [0, size) of one segment (segregated fit). Metadata is
 * stored outside the segment, in host memory. Allocation and freeing are O(1) or O(log n), with the
 * quality of best fit. Pure: no lock, no I/O; the caller holds the owner's lock. Addresses are
 * offsets in the segment. All sizes are multiples of the granule (a page) given at creation.
 */
#ifndef VMM_RANGE_RANGE_H
#define VMM_RANGE_RANGE_H

#include "base/base.h"

struct vmm_range_heap;

#define VMM_RANGE_NONE UINT32_MAX
typedef uint32_t vmm_range_node; /* names a live range; VMM_RANGE_NONE: none */

enum vmm_range_flags {
	/* search from the high end (FromEndOfSegment, Direction 1): ALF-17, SEG-15, SEG-17 */
	VMM_RANGE_FROM_END = 0x1
};

struct vmm_range_request {
	uint64_t size_bytes;
	uint64_t alignment; /* power of two, 0 = granule */
	uint64_t low, high; /* allowed: [low, high), banks and zones; high 0 = end of the heap */
	uint32_t flags;     /* enum vmm_range_flags */
	void *owner;        /* returned by vmm_range_owner */
};

struct vmm_range_statistics {
	uint64_t size_bytes, free_bytes, largest_free_bytes;
	uint32_t live_ranges, free_ranges;
};

/*
 * Creates a heap with one hole. VMM_INVALID_PARAMETER: granule is not a power of two, size is 0 or
 * not a multiple of it, or 2^31 granules or more.
 */
vmm_status vmm_range_heap_create(uint64_t size_bytes, uint64_t granule,
				 struct vmm_range_heap **heap) VMM_MUST_CHECK;
void vmm_range_heap_destroy(struct vmm_range_heap *heap);
/*
 * Allocates a range. Returns VMM_OK, VMM_NO_VIDEO_MEMORY (no hole fits) or VMM_NO_MEMORY
 * (metadata); after a failure outputs are unchanged. A request with a window or FROM_END gets the
 * lowest or highest possible address, by an index of the holes by address if there are many. All
 * other requests take constant time.
 */
vmm_status vmm_range_allocate(struct vmm_range_heap *heap, const struct vmm_range_request *request,
			      vmm_range_node *node, uint64_t *offset) VMM_MUST_CHECK;
void vmm_range_free(struct vmm_range_heap *heap, vmm_range_node node);
uint64_t vmm_range_offset(const struct vmm_range_heap *heap, vmm_range_node node);
uint64_t vmm_range_size(const struct vmm_range_heap *heap, vmm_range_node node);
void *vmm_range_owner(const struct vmm_range_heap *heap, vmm_range_node node);
/*
 * Walks live and free ranges in address order. Start with VMM_RANGE_NONE, which also marks the end.
 * The owner of a hole is NULL. Used for eviction of neighbors, compaction and segment maps.
 */
vmm_range_node vmm_range_next(const struct vmm_range_heap *heap, vmm_range_node node);
bool vmm_range_is_free(const struct vmm_range_heap *heap, vmm_range_node node);
uint64_t vmm_range_free_bytes(const struct vmm_range_heap *heap); /* O(1) */
void vmm_range_statistics(const struct vmm_range_heap *heap, struct vmm_range_statistics *figures);
/* Asserts all invariants of the heap (tests, every step of the model test). */
void vmm_range_check(const struct vmm_range_heap *heap);

/* ---- extents: one request in several ranges ---- */

struct vmm_range_extent {
	vmm_range_node node;
	uint64_t from; /* offset in the content that the request is for */
	uint64_t offset, size_bytes;
};
/* In the order of the content, without gaps. */
struct vmm_range_extents {
	uint32_t count;
	struct vmm_range_extent extent[];
};
/*
 * Allocates the request in extents, each of which is aligned and in the window. All but the last
 * are multiples of unit_bytes. Linear in the number of nodes. VMM_NO_VIDEO_MEMORY: the holes have
 * too few such bytes together, or the request is not larger than a unit; nothing has changed then.
 * The caller frees ranges and record with vmm_range_free_extents.
 */
vmm_status vmm_range_allocate_extents(struct vmm_range_heap *heap,
				      const struct vmm_range_request *request, uint64_t unit_bytes,
				      struct vmm_range_extents **extents) VMM_MUST_CHECK;
/* Copies the record, for extents that will be allocated again (vmm_free). */
vmm_status vmm_range_extents_copy(const struct vmm_range_extents *extents,
				  struct vmm_range_extents **copy) VMM_MUST_CHECK;
/* Frees the ranges and the record. */
void vmm_range_free_extents(struct vmm_range_heap *heap, struct vmm_range_extents *extents);
/* Returns the extent that has that byte of the content. */
const struct vmm_range_extent *vmm_range_extent_at(const struct vmm_range_extents *extents,
						   uint64_t from);

/* ---- compaction: one contiguous hole from scattered free space ---- */

#define VMM_RANGE_MOVES_MAX 128u

struct vmm_range_move {
	vmm_range_node from, to;
};

struct vmm_range_compaction {
	/*
	 * Returns whether the range of the owner may move, and sets the alignment, window and flags
	 * of its new place; size and owner are set already. Called more than once per owner; the
	 * answers must agree.
	 */
	bool (*may_move)(void *context, void *owner, struct vmm_range_request *request);
	void *context;
	/* The plan. `to` is already allocated, for the same owner. */
	struct vmm_range_move move[VMM_RANGE_MOVES_MAX];
	uint32_t moves;
	uint64_t bytes;  /* total size of the moved ranges */
	uint64_t offset; /* offset of the request once every `from` has been freed */
};

/*
 * Plans moves that make space for a request that failed. Linear in the number of nodes.
 * VMM_NO_VIDEO_MEMORY: too little is free, or none of the cheapest windows can be emptied; nothing
 * has changed then.
 */
vmm_status vmm_range_plan_compaction(struct vmm_range_heap *heap,
				     const struct vmm_range_request *request,
				     struct vmm_range_compaction *plan) VMM_MUST_CHECK;
/* Discards a plan: frees the new places. */
void vmm_range_compaction_undo(struct vmm_range_heap *heap, struct vmm_range_compaction *plan);

#endif
