/* SPDX-License-Identifier: MIT */
/*
 * The holes of a heap by address, for requests that get the lowest or the highest possible address.
 *
 * The heap is divided into parts of equal size. Each part has a list of the holes that begin in
 * it, in no order, and an upper bound of their sizes. A bound of a higher level is the largest of
 * 16 bounds of the level below. An insertion raises the bounds, a removal leaves them. A search
 * that finds no hole of the bound's size in a part lowers them, so each insertion causes at most
 * one such search.
 */
#include <string.h>

#include "range/range_internal.h"

static uint32_t part_of(const struct range_index *index, uint32_t start)
{
	return start >> index->part_shift;
}

/* The bounds of one level. */
static uint32_t *bounds(struct range_index *index, uint32_t level)
{
	static const uint32_t before[RANGE_LEVELS] = {
		0, RANGE_PARTS, RANGE_PARTS + (RANGE_PARTS >> RANGE_FAN_BITS)};

	return index->bound + before[level];
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
	for (uint32_t level = 0; level < RANGE_LEVELS; level++) {
		uint32_t *bound = &bounds(index, level)[part >> level * RANGE_FAN_BITS];

		if (*bound >= size)
			return;
		*bound = size;
	}
}

void vmm_range_index_remove(struct vmm_range_heap *heap, uint32_t node)
{
	struct range_index *index = heap->index;
	const struct range_index_link link = index->nodes[node];

	if (link.next != NONE)
		index->nodes[link.next].prev = link.prev;
	if (link.prev != NONE)
		index->nodes[link.prev].next = link.next;
	else
		index->first[part_of(index, heap->places[node].start)] = link.next;
}

void vmm_range_index_destroy(struct vmm_range_heap *heap)
{
	if (heap->index)
		vmm_free(heap->index->nodes);
	vmm_free(heap->index);
	heap->index = NULL;
}

void vmm_range_index_grow(struct vmm_range_heap *heap, uint32_t count)
{
	struct range_index_link *nodes = vmm_calloc(count, sizeof(*nodes));

	if (!nodes) {
		vmm_range_index_destroy(heap); /* searches are linear without it */
		return;
	}
	memcpy(nodes, heap->index->nodes, heap->node_count * sizeof(*nodes));
	vmm_free(heap->index->nodes);
	heap->index->nodes = nodes;
}

void vmm_range_index_create(struct vmm_range_heap *heap)
{
	struct range_index *index = vmm_calloc(1, sizeof(*index));

	if (!index)
		return;
	index->nodes = vmm_calloc(heap->node_count, sizeof(*index->nodes));
	if (!index->nodes) {
		vmm_free(index);
		return;
	}
	while ((heap->units - 1) >> index->part_shift >= RANGE_PARTS)
		index->part_shift++;
	for (uint32_t part = 0; part < RANGE_PARTS; part++)
		index->first[part] = NONE;
	heap->index = index;
	for (uint32_t node = heap->places[RING].next; node != RING; node = heap->places[node].next)
		if (is_hole(heap, node))
			vmm_range_index_insert(heap, node);
}

/* ---- search ---- */

struct search {
	const struct vmm_range_heap *heap;
	const struct limits *limits;
	uint32_t size;
};

/* Sets the bound of a part, and those above it. */
static void lower_bounds(struct range_index *index, uint32_t part, uint32_t bound)
{
	bounds(index, 0)[part] = bound;
	for (uint32_t level = 1; level < RANGE_LEVELS; level++) {
		uint32_t above = part >> level * RANGE_FAN_BITS, largest = 0;
		const uint32_t *below = &bounds(index, level - 1)[above << RANGE_FAN_BITS];

		for (uint32_t i = 0; i < 1u << RANGE_FAN_BITS; i++)
			largest = below[i] > largest ? below[i] : largest;
		bounds(index, level)[above] = largest;
	}
}

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
	if (best.node == NONE)
		lower_bounds(index, part, bound);
	return best;
}

/* Returns the highest level at which the bound over the part is too small; RANGE_LEVELS: none. */
static uint32_t level_to_pass(const struct search *s, uint32_t part)
{
	for (uint32_t level = RANGE_LEVELS; level--;)
		if (bounds(s->heap->index, level)[part >> level * RANGE_FAN_BITS] < s->size)
			return level;
	return RANGE_LEVELS;
}

/* Searches the holes that begin in the parts from `part` to `last`, in this order. */
static struct spot search_parts(const struct search *s, uint32_t part, uint32_t last)
{
	for (;;) {
		uint32_t level = level_to_pass(s, part), within;

		if (level == RANGE_LEVELS) {
			struct spot spot = search_part(s, part);

			if (spot.node != NONE)
				return spot;
			level = 0;
		}
		within = (1u << level * RANGE_FAN_BITS) - 1;
		part = s->limits->from_end ? part & ~within : part | within;
		if (s->limits->from_end ? part <= last : part >= last)
			return (struct spot){.node = NONE};
		part += s->limits->from_end ? UINT32_MAX : 1;
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

	while (part && index->first[part - 1] == NONE)
		part--;
	for (uint32_t node = part ? index->first[part - 1] : NONE; node != NONE;
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

	for (uint32_t part = 0; index && part < RANGE_PARTS; part++) {
		uint32_t prev = NONE;

		for (uint32_t level = 1; level < RANGE_LEVELS; level++)
			vmm_assert(bounds(index, level)[part >> level * RANGE_FAN_BITS] >=
				   bounds(index, 0)[part]);
		for (uint32_t node = index->first[part]; node != NONE;
		     prev = node, node = index->nodes[node].next) {
			vmm_assert(is_node(heap, node) && is_hole(heap, node));
			vmm_assert(part_of(index, heap->places[node].start) == part);
			vmm_assert(size_of(&heap->places[node]) <= bounds(index, 0)[part]);
			vmm_assert(index->nodes[node].prev == prev);
			vmm_assert(++found <= hole_count(heap));
		}
	}
	vmm_assert(!index || found == hole_count(heap));
}
