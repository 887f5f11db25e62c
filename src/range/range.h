/* SPDX-License-Identifier: MIT */
/*
 * range: where in a segment. Places byte ranges inside [0, size) of one segment. Metadata lives
 * outside the segment (the GPU's memory is not ours to write). O(1) or O(log n) allocate and free,
 * best-fit quality. Pure: no lock, no I/O; the owner locks. Addresses are offsets in the segment;
 * all sizes are multiples of the granule given at init (a page).
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

struct vmm_range_figures {
	uint64_t size_bytes, free_bytes, largest_free_bytes;
	uint32_t live_ranges, free_ranges;
};

/* VMM_INVALID_PARAMETER: granule no power of two, size 0, no multiple of it, or 2^31 of it and
 * more. */
vmm_status vmm_range_heap_create(uint64_t size_bytes, uint64_t granule,
				 struct vmm_range_heap **heap) VMM_MUST_CHECK;
void vmm_range_heap_destroy(struct vmm_range_heap *heap);
/*
 * VMM_OK, VMM_NO_VIDEO_MEMORY (no fitting hole), VMM_NO_MEMORY (metadata). Outputs untouched on
 * failure. A window or FROM_END promises the lowest or the highest address there is and looks at
 * every hole that is large enough; all other requests take constant time.
 */
vmm_status vmm_range_allocate(struct vmm_range_heap *heap, const struct vmm_range_request *request,
			      vmm_range_node *node, uint64_t *offset) VMM_MUST_CHECK;
void vmm_range_free(struct vmm_range_heap *heap, vmm_range_node node);
uint64_t vmm_range_offset(const struct vmm_range_heap *heap, vmm_range_node node);
uint64_t vmm_range_size(const struct vmm_range_heap *heap, vmm_range_node node);
void *vmm_range_owner(const struct vmm_range_heap *heap, vmm_range_node node);
/*
 * Address order walk, live and free ranges: owner is NULL for a hole. Start with VMM_RANGE_NONE.
 * For eviction of neighbours, defragmentation and segment maps. Returns VMM_RANGE_NONE at the end.
 */
vmm_range_node vmm_range_next(const struct vmm_range_heap *heap, vmm_range_node node);
bool vmm_range_is_free(const struct vmm_range_heap *heap, vmm_range_node node);
void vmm_range_figures(const struct vmm_range_heap *heap, struct vmm_range_figures *figures);
/* Walks everything and asserts the invariants (tests, every step of the model test). */
void vmm_range_check(const struct vmm_range_heap *heap);

/* ---- compaction: a hole in one piece where free space lies scattered ---- */

#define VMM_RANGE_MOVES_MAX 128u

struct vmm_range_move {
	vmm_range_node from, to;
};

struct vmm_range_compaction {
	/*
	 * May what lives there move, and what it asks for in another place (alignment, window, flags; size and owner are
	 * its own). Asked more than once; the answers must agree.
	 */
	bool (*may_move)(void *context, void *owner, struct vmm_range_request *request);
	void *context;
	/* the plan: `to` is live already, for the same owner */
	struct vmm_range_move move[VMM_RANGE_MOVES_MAX];
	uint32_t moves;
	uint64_t bytes;  /* that move */
	uint64_t offset; /* where the request fits when every `from` has been freed */
};

/*
 * Linear in the nodes of the heap; only for requests that failed. VMM_NO_VIDEO_MEMORY: too little is free, or none of the
 * windows where little would move can be emptied; nothing has changed then.
 */
vmm_status vmm_range_plan_compaction(struct vmm_range_heap *heap,
				     const struct vmm_range_request *request,
				     struct vmm_range_compaction *plan) VMM_MUST_CHECK;
/* Instead of carrying it out: the new places are free again. */
void vmm_range_compaction_undo(struct vmm_range_heap *heap, struct vmm_range_compaction *plan);

#endif
