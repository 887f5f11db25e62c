/* SPDX-License-Identifier: MIT */
/* Read-only functions: the statistics of a heap, and the check of its invariants. */
#include "range/range_internal.h"

/* The largest hole is in the last bin that is not empty. Holes of that bin differ by up to 3 %. */
static uint32_t largest_hole(const struct vmm_range_heap *heap)
{
	uint32_t word, bin, largest = 0;

	if (!heap->words)
		return 0;
	word = 63 - (uint32_t)__builtin_clzll(heap->words);
	bin = word * 64 + 63 - (uint32_t)__builtin_clzll(heap->bits[word]);
	for (uint32_t i = heap->links[bin].bin.next; i >= BIN_COUNT; i = heap->links[i].bin.next) {
		uint32_t size = size_of(&heap->places[i - BIN_COUNT]);

		largest = size > largest ? size : largest;
	}
	return largest;
}

uint64_t vmm_range_free_bytes(const struct vmm_range_heap *heap)
{
	return (uint64_t)heap->free_units << heap->granule_shift;
}

void vmm_range_statistics(const struct vmm_range_heap *heap, struct vmm_range_statistics *figures)
{
	*figures = (struct vmm_range_statistics){
		.size_bytes = (uint64_t)heap->units << heap->granule_shift,
		.free_bytes = (uint64_t)heap->free_units << heap->granule_shift,
		.largest_free_bytes = (uint64_t)largest_hole(heap) << heap->granule_shift,
		.live_ranges = heap->live_count,
		.free_ranges = hole_count(heap),
	};
}

/* The holes of one marked bin; returns their number. Both links of each must be right. */
static uint32_t check_bin(const struct vmm_range_heap *heap, uint32_t bin, uint32_t holes)
{
	uint32_t found = 0, prev = bin, i = heap->links[bin].bin.next;

	for (; i >= BIN_COUNT; prev = i, i = heap->links[i].bin.next) {
		vmm_assert(is_node(heap, i - BIN_COUNT) && is_hole(heap, i - BIN_COUNT));
		vmm_assert(bin_of(size_of(&heap->places[i - BIN_COUNT])) == bin);
		vmm_assert(heap->links[i].bin.prev == prev);
		vmm_assert(++found <= holes);
	}
	vmm_assert(found && i == bin && heap->links[bin].bin.prev == prev);
	return found;
}

/*
 * Each hole found in address order must be in the right bin. Only marked bins are walked, because
 * a heap has few holes and many bins: a hole in a bin without a mark would be missing in the sum.
 */
static void check_bins(const struct vmm_range_heap *heap, uint32_t holes)
{
	uint32_t found = 0;

	for (uint32_t word = 0; word < BIN_WORDS; word++) {
		vmm_assert((heap->words >> word & 1) == (heap->bits[word] != 0));
		for (uint64_t bits = heap->bits[word]; bits; bits &= bits - 1)
			found +=
				check_bin(heap, word * 64 + (uint32_t)__builtin_ctzll(bits), holes);
	}
	vmm_assert(found == holes);
}

void vmm_range_check(const struct vmm_range_heap *heap)
{
	uint32_t at = 0, live = 0, holes = 0, free_units = 0, unused = 0,
		 node = heap->places[RING].next;

	for (uint32_t prev = RING; node != RING; prev = node, node = heap->places[node].next) {
		const struct place *place = &heap->places[node];

		vmm_assert(is_node(heap, node) && place->start == at && place->prev == prev);
		vmm_assert(!is_hole(heap, node) || prev == RING || !is_hole(heap, prev));
		at += size_of(place);
		if (is_hole(heap, node)) {
			holes++;
			free_units += size_of(place);
		} else {
			live++;
		}
	}
	vmm_assert(at == heap->units && heap->places[RING].start == at && !is_hole(heap, RING));
	vmm_assert(live == heap->live_count && free_units == heap->free_units &&
		   holes == hole_count(heap));
	for (node = heap->unused_head; node != NONE; node = heap->places[node].next) {
		vmm_assert(node < heap->node_count && !heap->places[node].size);
		vmm_assert(++unused <= heap->unused_count);
	}
	vmm_assert(unused == heap->unused_count);
	check_bins(heap, holes);
	vmm_range_index_check(heap);
}
