/* SPDX-License-Identifier: MIT */
/*
 * The holes of a heap by address, for requests that get the lowest or the highest possible address.
 *
 * The heap is divided into parts of equal size. Each part has a list of the holes that begin in
 * it, in no order, and an upper bound of their sizes; 0 if there is none. A bound of a higher level
 * is the largest of 16 bounds of the level below, so a search looks at a few groups of 16.
 *
 * A removal makes the bound of a short list exact. The bound of a longer one stays; a search that
 * finds no hole of that size lowers it, so each insertion causes at most one such search.
 */
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "range/range_internal.h"

#define SHORT_LIST 3u    /* holes of a part that a removal compares */
#define MANY_NODES 4096u /* from which on there are 65536 parts instead of 4096 */

static uint32_t part_of(const struct range_index *index, uint32_t start)
{
	return start >> index->part_shift;
}

/* Bit i: bound[i] is at least `size`, which is not 0. */
static uint32_t large_enough(const uint32_t *bound, uint32_t size)
{
	uint32_t mask = 0;

#if defined(__SSE2__)
	/* Sizes are below 2^31, so signed comparisons do. */
	const __m128i less = _mm_set1_epi32((int)(size - 1));
	__m128i four[RANGE_FAN / 4];

	for (uint32_t i = 0; i < RANGE_FAN / 4; i++)
		four[i] = _mm_cmpgt_epi32(
			_mm_loadu_si128((const __m128i *)(const void *)(bound + 4 * i)), less);
	mask = (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(four[0], four[1]),
							   _mm_packs_epi32(four[2], four[3])));
#else
	for (uint32_t i = 0; i < RANGE_FAN; i++)
		mask |= (uint32_t)(bound[i] >= size) << i;
#endif
	return mask;
}

/* Sets a bound of a part to a smaller value. Those above it stay the largest of their group. */
static void lower_bound(struct range_index *index, uint32_t part, uint32_t bound)
{
	for (uint32_t level = 0, at = part;; level++, at >>= RANGE_FAN_BITS) {
		uint32_t *own = &index->bound[level][at];
		const uint32_t before = *own;
		const uint32_t *group = &index->bound[level][at & ~(RANGE_FAN - 1)];

		*own = bound;
		if (level == index->levels - 1 ||
		    index->bound[level + 1][at >> RANGE_FAN_BITS] != before)
			return;
		for (uint32_t i = 0; i < RANGE_FAN; i++)
			bound = group[i] > bound ? group[i] : bound;
		if (bound == before)
			return;
	}
}

void vmm_range_index_insert(struct vmm_range_heap *heap, uint32_t node)
{
	struct range_index *index = heap->index;
	uint32_t part = part_of(index, heap->places[node].start), first = index->first[part];
	uint32_t size = size_of(&heap->places[node]);

	index->nodes[node] = (struct range_index_link){.prev = NONE, .next = first};
	if (first != NONE)
		index->nodes[first].prev = node;
	index->first[part] = node;
	for (uint32_t level = 0; level < index->levels; level++) {
		uint32_t *bound = &index->bound[level][part >> level * RANGE_FAN_BITS];

		if (*bound >= size)
			return;
		*bound = size;
	}
}

/* A hole with that size has left the part. */
static void tighten(struct vmm_range_heap *heap, uint32_t part, uint32_t size)
{
	struct range_index *index = heap->index;
	uint32_t first = index->first[part], bound = 0;

	if (first == NONE) {
		lower_bound(index, part, 0);
		return;
	}
	if (size < index->bound[0][part])
		return;
	for (uint32_t looks = 0; first != NONE; first = index->nodes[first].next) {
		if (looks++ == SHORT_LIST)
			return;
		bound = (uint32_t)vmm_max_u64(bound, size_of(&heap->places[first]));
	}
	if (bound < size)
		lower_bound(index, part, bound);
}

void vmm_range_index_remove(struct vmm_range_heap *heap, uint32_t node)
{
	struct range_index *index = heap->index;
	const struct range_index_link link = index->nodes[node];
	uint32_t part = part_of(index, heap->places[node].start);

	if (link.next != NONE)
		index->nodes[link.next].prev = link.prev;
	if (link.prev != NONE)
		index->nodes[link.prev].next = link.next;
	else
		index->first[part] = link.next;
	tighten(heap, part, size_of(&heap->places[node]));
}

void vmm_range_index_destroy(struct vmm_range_heap *heap)
{
	if (heap->index) {
		vmm_free(heap->index->bound[0]);
		vmm_free(heap->index->first);
		vmm_free(heap->index->nodes);
	}
	vmm_free(heap->index);
	heap->index = NULL;
}

/* Parts for that many nodes: short lists, in a few times the memory of the nodes. */
static uint32_t levels_for(uint32_t node_count)
{
	return node_count < MANY_NODES ? RANGE_LEVELS - 1 : RANGE_LEVELS;
}

/* A new index without holes in the heap; NULL: no memory. */
static struct range_index *make_empty(struct vmm_range_heap *heap, uint32_t node_count)
{
	struct range_index *index = heap->index = vmm_calloc(1, sizeof(*index));
	uint32_t bounds = 0;

	if (!index)
		return NULL;
	index->levels = levels_for(node_count);
	index->part_count = 1u << index->levels * RANGE_FAN_BITS;
	for (uint32_t level = 0; level < index->levels; level++)
		bounds += index->part_count >> level * RANGE_FAN_BITS;
	index->bound[0] = vmm_calloc(bounds, sizeof(*index->bound[0]));
	index->first = vmm_calloc(index->part_count, sizeof(*index->first));
	index->nodes = vmm_calloc(node_count, sizeof(*index->nodes));
	if (!index->bound[0] || !index->first || !index->nodes) {
		vmm_range_index_destroy(heap);
		return NULL;
	}
	for (uint32_t level = 1; level < index->levels; level++)
		index->bound[level] = index->bound[level - 1] +
				      (index->part_count >> (level - 1) * RANGE_FAN_BITS);
	return index;
}

void vmm_range_index_create(struct vmm_range_heap *heap, uint32_t node_count)
{
	struct range_index *index = make_empty(heap, node_count);

	if (!index)
		return;
	while ((heap->units - 1) >> index->part_shift >= index->part_count)
		index->part_shift++;
	for (uint32_t part = 0; part < index->part_count; part++)
		index->first[part] = NONE;
	for (uint32_t node = heap->places[RING].next; node != RING; node = heap->places[node].next)
		if (is_hole(heap, node))
			vmm_range_index_insert(heap, node);
}

void vmm_range_index_grow(struct vmm_range_heap *heap, uint32_t count)
{
	struct range_index_link *nodes;

	if (levels_for(count) != heap->index->levels) {
		vmm_range_index_destroy(heap);
		vmm_range_index_create(heap, count);
		return;
	}
	nodes = vmm_calloc(count, sizeof(*nodes));
	if (!nodes) {
		vmm_range_index_destroy(heap); /* searches are linear without it */
		return;
	}
	memcpy(nodes, heap->index->nodes, heap->node_count * sizeof(*nodes));
	vmm_free(heap->index->nodes);
	heap->index->nodes = nodes;
}

/* ---- search ---- */

struct search {
	const struct vmm_range_heap *heap;
	const struct limits *limits;
	uint32_t size;
};

/* Finds the outermost place in the holes of a part. If there is none, lowers the bounds. */
static struct spot search_part(const struct search *s, uint32_t part)
{
	struct range_index *index = s->heap->index;
	struct spot best = {.node = NONE};
	uint32_t bound = 0;

	for (uint32_t node = index->first[part]; node != NONE; node = index->nodes[node].next) {
		const struct place *hole = &s->heap->places[node];
		uint32_t start;

		bound = size_of(hole) > bound ? size_of(hole) : bound;
		if (!vmm_range_place_in_hole(hole, s->size, s->limits, &start))
			continue;
		if (best.node == NONE ||
		    (s->limits->from_end ? start > best.start : start < best.start))
			best = (struct spot){.node = node, .start = start};
	}
	if (best.node == NONE && bound < index->bound[0][part])
		lower_bound(index, part, bound);
	return best;
}

/* The outermost bit of a mask that is not 0. */
static uint32_t outermost(uint32_t mask, bool from_end)
{
	return (uint32_t)(from_end ? 31 - __builtin_clz(mask) : __builtin_ctz(mask));
}

/*
 * Returns the first part, from `part` on in the direction of the search, whose bound is at least
 * `size`; NONE: there is none. Goes up until a group has such a bound, then down to the part.
 */
static uint32_t next_part(struct range_index *index, uint32_t part, uint32_t size, bool from_end)
{
	uint32_t at = part, mask, level = 0;

	for (;; level++) {
		uint32_t within = at & (RANGE_FAN - 1),
			 count = index->part_count >> level * RANGE_FAN_BITS;

		mask = at < count ? large_enough(&index->bound[level][at - within], size) : 0;
		mask &= from_end ? (2u << within) - 1 : UINT32_MAX << within;
		if (mask)
			break;
		if (level == index->levels - 1 || (from_end && !(at >> RANGE_FAN_BITS)))
			return NONE;
		at = (at >> RANGE_FAN_BITS) + (from_end ? UINT32_MAX : 1);
	}
	at = (at & ~(RANGE_FAN - 1)) + outermost(mask, from_end);
	while (level--) {
		at <<= RANGE_FAN_BITS;
		mask = large_enough(&index->bound[level][at], size);
		vmm_assert(mask);
		at += outermost(mask, from_end);
	}
	return at;
}

/* Searches the holes that begin in the parts from `part` to `last`, in this order. */
static struct spot search_parts(const struct search *s, uint32_t part, uint32_t last)
{
	bool from_end = s->limits->from_end;

	for (;; part += from_end ? UINT32_MAX : 1) {
		part = next_part(s->heap->index, part, s->size, from_end);
		if (part == NONE || (from_end ? part < last : part > last))
			return (struct spot){.node = NONE};
		struct spot spot = search_part(s, part);

		if (spot.node != NONE || part == last)
			return spot;
	}
}

/*
 * Finds the place in the hole that begins before the part and reaches furthest: the only one that
 * may reach into it.
 */
static struct spot search_before(const struct search *s, uint32_t part)
{
	const struct range_index *index = s->heap->index;
	struct spot spot = {.node = NONE};
	uint32_t found = NONE;
	uint32_t before = part ? next_part(s->heap->index, part - 1, 1, true) : NONE;

	for (uint32_t node = before == NONE ? NONE : index->first[before]; node != NONE;
	     node = index->nodes[node].next)
		if (found == NONE || s->heap->places[node].start > s->heap->places[found].start)
			found = node;
	if (found != NONE &&
	    vmm_range_place_in_hole(&s->heap->places[found], s->size, s->limits, &spot.start))
		spot.node = found;
	return spot;
}

struct spot vmm_range_index_find(const struct vmm_range_heap *heap, uint32_t size,
				 const struct limits *limits)
{
	const struct search s = {.heap = heap, .limits = limits, .size = size};
	struct spot spot = {.node = NONE};

	if (limits->high < (uint64_t)limits->low + size)
		return spot;
	uint32_t low = part_of(heap->index, limits->low),
		 high = part_of(heap->index, limits->high - 1);
	if (limits->from_end) {
		spot = search_parts(&s, high, low);
		return spot.node == NONE ? search_before(&s, low) : spot;
	}
	spot = search_before(&s, low);
	return spot.node == NONE ? search_parts(&s, low, high) : spot;
}

/* ---- invariants ---- */

void vmm_range_index_check(const struct vmm_range_heap *heap)
{
	struct range_index *index = heap->index;
	uint32_t found = 0;

	for (uint32_t part = 0; index && part < index->part_count; part++) {
		uint32_t prev = NONE;

		vmm_assert((index->first[part] == NONE) == !index->bound[0][part]);
		for (uint32_t node = index->first[part]; node != NONE;
		     prev = node, node = index->nodes[node].next) {
			vmm_assert(is_node(heap, node) && is_hole(heap, node));
			vmm_assert(part_of(index, heap->places[node].start) == part);
			vmm_assert(size_of(&heap->places[node]) <= index->bound[0][part]);
			vmm_assert(index->nodes[node].prev == prev);
			vmm_assert(++found <= hole_count(heap));
		}
	}
	vmm_assert(!index || found == hole_count(heap));
	for (uint32_t level = 1; index && level < index->levels; level++)
		for (uint32_t i = 0; i < index->part_count >> level * RANGE_FAN_BITS; i++) {
			const uint32_t *below = &index->bound[level - 1][i << RANGE_FAN_BITS];
			uint32_t bound = index->bound[level][i];

			vmm_assert(!bound || large_enough(below, bound));
			vmm_assert(!large_enough(below, bound + 1));
		}
}
