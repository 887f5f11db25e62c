/* SPDX-License-Identifier: MIT */
/* The records of a heap and their accessors, shared by the files of range. */
#ifndef VMM_RANGE_INTERNAL_H
#define VMM_RANGE_INTERNAL_H

#include "range/range.h"

#define NONE      VMM_RANGE_NONE
#define RING      0u /* the node that closes the ring: after the end, size 0, not a hole */
#define HOLE      0x80000000u
#define UNITS_MAX 0x7FFFFFFFu
#define STEP_BITS 5u
#define BIN_COUNT 864u /* bin_of(UNITS_MAX) + 1 */
#define BIN_WORDS ((BIN_COUNT + 63) / 64)
_Static_assert(BIN_COUNT < 64 * BIN_WORDS, "a search may start one bin behind the last");
#define FIRST_NODES 64u

struct place {
	uint32_t start;      /* granules */
	uint32_t size;       /* granules, with the HOLE bit; 0: unused node */
	uint32_t prev, next; /* by address; of an unused node `next` is the next unused one */
};

union link {
	void *owner;
	struct {
		/* index in the link array: a bin if below BIN_COUNT, else BIN_COUNT + node */
		uint32_t prev, next;
	} bin;
};

/* range_index.c: the holes by address; made when a search needs it. */
#define RANGE_FAN_BITS 4u /* a bound is over 16 of the level below */
#define RANGE_FAN      (1u << RANGE_FAN_BITS)
#define RANGE_LEVELS   4u /* of bounds, at most; the parts are RANGE_FAN to that power */

struct range_index_link {
	uint32_t prev, next; /* nodes; NONE: none */
};

struct range_index {
	uint32_t part_shift, levels, part_count;
	uint32_t *bound[RANGE_LEVELS];  /* in granules: those of parts, then those of each level */
	uint32_t *first;                /* of each part: node of a hole; NONE: it has none */
	struct range_index_link *nodes; /* of each node that is a hole */
};

struct vmm_range_heap {
	struct place *places;
	union link *links;
	struct range_index *index; /* NULL: no search has needed it */
	uint32_t node_count, unused_head, unused_count;
	uint32_t units, granule_shift;
	uint32_t free_units, live_count;
	uint64_t words; /* bit n: bits[n] is not 0 */
	uint64_t bits[BIN_WORDS];
};

static inline uint32_t size_of(const struct place *place)
{
	return place->size & ~HOLE;
}

static inline uint32_t bin_of(uint32_t size)
{
	uint32_t shift = 31 - STEP_BITS - (uint32_t)__builtin_clz(size | 1u << STEP_BITS);

	return (shift << STEP_BITS) + (size >> shift);
}

static inline bool is_hole(const struct vmm_range_heap *heap, uint32_t node)
{
	return heap->places[node].size & HOLE;
}

static inline bool is_node(const struct vmm_range_heap *heap, uint32_t node)
{
	return node < heap->node_count && heap->places[node].size;
}

static inline uint32_t hole_count(const struct vmm_range_heap *heap)
{
	return heap->node_count - heap->unused_count - heap->live_count - 1;
}

/* Returns the first bin from `bin` on that is not empty, or NONE. */
static inline uint32_t next_bin(const struct vmm_range_heap *heap, uint32_t bin)
{
	uint32_t word = bin / 64;
	uint64_t bits = heap->bits[word] & UINT64_MAX << bin % 64;

	if (!bits) {
		uint64_t words = heap->words & (UINT64_MAX << word) << 1;

		if (!words)
			return NONE;
		word = (uint32_t)__builtin_ctzll(words);
		bits = heap->bits[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The part of a hole that a request gets; `start` in granules. */
struct spot {
	uint32_t node, start;
};

/* The allowed part of the heap, in granules: [low, high), alignment a power of two. */
struct limits {
	uint32_t low, high, alignment;
	bool from_end;
};

/* Converts the request's window. Returns false if it is empty. */
bool vmm_range_limits(const struct vmm_range_heap *heap, const struct vmm_range_request *request,
		      struct limits *limits);

/*
 * Makes [start, start + size) of a hole live, without an owner. Returns its node. NONE: no memory
 * for the metadata.
 */
uint32_t vmm_range_take_part(struct vmm_range_heap *heap, uint32_t hole, uint32_t start,
			     uint32_t size);

/* Finds the place of a request that is aligned beyond the granule, in a window, or from the end. */
struct spot vmm_range_find_special(struct vmm_range_heap *heap, uint32_t size,
				   const struct vmm_range_request *request);
/* Returns whether the request fits in this hole, and where. */
bool vmm_range_place_in_hole(const struct place *hole, uint32_t size, const struct limits *limits,
			     uint32_t *start);

/* ---- range_index.c: an index must exist, except for the first and the last two ---- */
/* Makes the index for as many nodes. Without memory there is none. */
void vmm_range_index_create(struct vmm_range_heap *heap, uint32_t node_count);
/* A hole begins or ends to exist; its place is set. */
void vmm_range_index_insert(struct vmm_range_heap *heap, uint32_t node);
void vmm_range_index_remove(struct vmm_range_heap *heap, uint32_t node);
/* There will be `count` nodes. Without memory the index ends. */
void vmm_range_index_grow(struct vmm_range_heap *heap, uint32_t count);
/* Finds the lowest possible place in the window; with from_end the highest one. */
struct spot vmm_range_index_find(const struct vmm_range_heap *heap, uint32_t size,
				 const struct limits *limits);
void vmm_range_index_destroy(struct vmm_range_heap *heap);
void vmm_range_index_check(const struct vmm_range_heap *heap);

#endif
