/* SPDX-License-Identifier: MIT */
/*
 * Placement with constraints: aligned beyond the granule, in a window (banks and zones), or from
 * the end. These functions only find a place; range.c makes it live.
 */
#include "range/range_internal.h"

#define LOOK_SHORT 8u /* holes of one bin in the first pass */
#define WALK_STEPS 16u
#define INDEXED    128u /* holes from which on an index is shorter than a search by bins */

bool vmm_range_place_in_hole(const struct place *hole, uint32_t size, const struct limits *limits,
			     uint32_t *start)
{
	uint64_t low = hole->start, high = low + size_of(hole), at;

	low = vmm_max_u64(low, limits->low);
	high = vmm_min_u64(high, limits->high);
	if (high < low + size)
		return false;
	if (limits->from_end)
		at = vmm_align_down(high - size, limits->alignment);
	else
		at = vmm_align_up(low, limits->alignment);
	*start = (uint32_t)at;
	return at >= low && at + size <= high;
}

/* Best place among the first `look` holes of a bin: the lowest address, or the highest. */
static bool best_in_bin(const struct vmm_range_heap *heap, uint32_t bin, uint32_t size,
			const struct limits *limits, uint32_t look, struct spot *best)
{
	for (uint32_t i = heap->links[bin].bin.next; i >= BIN_COUNT && look--;
	     i = heap->links[i].bin.next) {
		uint32_t start;

		if (!vmm_range_place_in_hole(&heap->places[i - BIN_COUNT], size, limits, &start))
			continue;
		if (best->node == NONE ||
		    (limits->from_end ? start > best->start : start < best->start))
			*best = (struct spot){.node = i - BIN_COUNT, .start = start};
	}
	return best->node != NONE;
}

/*
 * Finds a place for an aligned request. As find_fit, but a hole of any bin may fail because of its
 * position. The first pass examines a few holes of each bin; only if it finds nothing, the second
 * examines all that are large enough.
 */
static struct spot find_aligned(const struct vmm_range_heap *heap, uint32_t size,
				const struct limits *limits)
{
	static const uint32_t looks[] = {LOOK_SHORT, UINT32_MAX};
	struct spot best = {.node = NONE};

	for (size_t i = 0; i < VMM_ARRAY_LENGTH(looks); i++)
		for (uint32_t bin = next_bin(heap, bin_of(size)); bin != NONE;
		     bin = next_bin(heap, bin + 1))
			if (best_in_bin(heap, bin, size, limits, looks[i], &best))
				return best;
	return best;
}

/*
 * Walks from the edge of the heap that the window touches: the first hole that fits is the
 * outermost one. Most requests from the end (ALF-17) need a few steps.
 */
static struct spot walk_from_edge(const struct vmm_range_heap *heap, uint32_t size,
				  const struct limits *limits)
{
	struct spot spot = {.node = NONE};
	uint32_t node = RING;

	if (limits->from_end ? limits->high != heap->units : limits->low != 0)
		return spot;
	for (uint32_t step = 0; step < WALK_STEPS; step++) {
		node = limits->from_end ? heap->places[node].prev : heap->places[node].next;
		if (node == RING)
			break;
		if (is_hole(heap, node) &&
		    vmm_range_place_in_hole(&heap->places[node], size, limits, &spot.start)) {
			spot.node = node;
			break;
		}
	}
	return spot;
}

/*
 * Finds the lowest or highest possible address in a window (ALF-17, SEG-15). The exact address is
 * part of the contract. Without an index all holes that are large enough are examined unless one is
 * found at the edge.
 */
static struct spot find_outermost(struct vmm_range_heap *heap, uint32_t size,
				  const struct limits *limits)
{
	struct spot best = {.node = NONE};

	if (!heap->index)
		best = walk_from_edge(heap, size, limits);
	if (best.node != NONE)
		return best;
	if (!heap->index && hole_count(heap) >= INDEXED)
		vmm_range_index_create(heap, heap->node_count);
	if (heap->index)
		return vmm_range_index_find(heap, size, limits);
	for (uint32_t bin = next_bin(heap, bin_of(size)); bin != NONE;
	     bin = next_bin(heap, bin + 1))
		best_in_bin(heap, bin, size, limits, UINT32_MAX, &best);
	return best;
}

bool vmm_range_limits(const struct vmm_range_heap *heap, const struct vmm_range_request *request,
		      struct limits *limits)
{
	uint64_t end = (uint64_t)heap->units << heap->granule_shift;
	uint64_t granule = (uint64_t)1 << heap->granule_shift;
	uint64_t high = request->high && request->high < end ? request->high : end;

	vmm_assert(!request->alignment || vmm_is_pow2(request->alignment));
	if (request->low >= high)
		return false;
	limits->low = (uint32_t)(vmm_align_up(request->low, granule) >> heap->granule_shift);
	limits->high = (uint32_t)(high >> heap->granule_shift);
	/* An alignment above the largest heap admits only offset 0. */
	limits->alignment =
		(uint32_t)vmm_min_u64(request->alignment >> heap->granule_shift, UNITS_MAX + 1u);
	limits->alignment = limits->alignment ? limits->alignment : 1;
	limits->from_end = request->flags & VMM_RANGE_FROM_END;
	return true;
}

struct spot vmm_range_find_special(struct vmm_range_heap *heap, uint32_t size,
				   const struct vmm_range_request *request)
{
	struct limits limits;

	if (!vmm_range_limits(heap, request, &limits))
		return (struct spot){.node = NONE};
	if (!(request->low | request->high) && !limits.from_end)
		return find_aligned(heap, size, &limits);
	return find_outermost(heap, size, &limits);
}
