/* SPDX-License-Identifier: MIT */
/*
 * Segregated fit with good packing in constant time.
 *
 * Every granule of the heap belongs to one node, live or hole. Nodes form a ring in address order,
 * closed by node 0, a live node after the end. So neighbors coalesce without a search or a special
 * case. Holes are also in bins by size: sizes below 64 granules have a bin each; above, each power
 * of two is divided into 32 bins, so the holes of one bin differ by at most 3 %. A bitmap finds the
 * next bin that is not empty.
 *
 * A node is two records in two arrays: its place (16 bytes, four to a cache line) and its link (8
 * bytes). The link is the owner while the node is live, and the ring of the bin while it is a hole.
 * The heads of the rings are the first records of the link array, so that insertion and removal
 * have no empty-list case: on this path a mispredicted branch costs as much as a cache miss.
 *
 * The arrays move when they grow, and are not freed before the heap is destroyed.
 */
#include <string.h>

#include "range/range_internal.h"

/*
 * Number of holes of the chosen bin that are compared for the lowest address. The first hole is the
 * fastest choice. Eight keep live ranges together, which makes 1 to 2 % more allocations succeed,
 * but only in a nearly full heap. So this is done only there, where the alternative is an eviction.
 */
#define LOOK_TIGHT  8u
#define TIGHT_SHIFT 3u /* tight: less than 1/8 of the heap is free */

static inline void insert_hole(struct vmm_range_heap *heap, uint32_t node)
{
	uint32_t size = size_of(&heap->places[node]), bin = bin_of(size), self = BIN_COUNT + node;
	uint32_t first = heap->links[bin].bin.next;

	heap->places[node].size = size | HOLE;
	heap->links[self].bin.prev = bin;
	heap->links[self].bin.next = first;
	heap->links[first].bin.prev = self;
	heap->links[bin].bin.next = self;
	heap->bits[bin / 64] |= (uint64_t)1 << bin % 64;
	heap->words |= (uint64_t)1 << bin / 64;
	if (vmm_unlikely(heap->index != NULL))
		vmm_range_index_insert(heap, node);
}

static inline void remove_hole(struct vmm_range_heap *heap, uint32_t node)
{
	uint32_t prev = heap->links[BIN_COUNT + node].bin.prev;
	uint32_t next = heap->links[BIN_COUNT + node].bin.next;

	heap->links[prev].bin.next = next;
	heap->links[next].bin.prev = prev;
	heap->places[node].size &= ~HOLE;
	/* Alone in its ring: both neighbors are the bin itself. */
	if (prev == next) {
		heap->bits[prev / 64] &= ~((uint64_t)1 << prev % 64);
		heap->words &= ~((uint64_t)!heap->bits[prev / 64] << prev / 64);
	}
	if (vmm_unlikely(heap->index != NULL))
		vmm_range_index_remove(heap, node);
}

static VMM_COLD bool grow(struct vmm_range_heap *heap)
{
	uint32_t count = heap->node_count + heap->node_count / 4 + FIRST_NODES;
	struct place *places = vmm_calloc(count, sizeof(*places));
	union link *links = vmm_calloc(BIN_COUNT + (size_t)count, sizeof(*links));

	if (!places || !links) {
		vmm_free(places);
		vmm_free(links);
		return false;
	}
	if (heap->node_count) {
		memcpy(places, heap->places, heap->node_count * sizeof(*places));
		memcpy(links, heap->links, (BIN_COUNT + (size_t)heap->node_count) * sizeof(*links));
	} else {
		for (uint32_t bin = 0; bin < BIN_COUNT; bin++)
			links[bin].bin.prev = links[bin].bin.next = bin;
	}
	if (heap->index)
		vmm_range_index_grow(heap, count);
	vmm_free(heap->places);
	vmm_free(heap->links);
	for (uint32_t node = count; node-- > heap->node_count;) {
		places[node].next = heap->unused_head;
		heap->unused_head = node;
	}
	heap->unused_count += count - heap->node_count;
	heap->places = places;
	heap->links = links;
	heap->node_count = count;
	return true;
}

static inline uint32_t take_node(struct vmm_range_heap *heap)
{
	uint32_t node = heap->unused_head;

	heap->unused_head = heap->places[node].next;
	heap->unused_count--;
	return node;
}

static inline void drop_node(struct vmm_range_heap *heap, uint32_t node)
{
	heap->places[node].size = 0;
	heap->places[node].next = heap->unused_head;
	heap->unused_head = node;
	heap->unused_count++;
}

static inline void link_behind(struct vmm_range_heap *heap, uint32_t node, uint32_t behind,
			       uint32_t start, uint32_t size)
{
	uint32_t next = heap->places[node].next;

	heap->places[behind] =
		(struct place){.start = start, .size = size, .prev = node, .next = next};
	heap->places[next].prev = behind;
	heap->places[node].next = behind;
}

/* Merges a node with the next one, which becomes unused. Neither is in a bin. */
static inline void absorb_next(struct vmm_range_heap *heap, uint32_t node)
{
	uint32_t gone = heap->places[node].next, next = heap->places[gone].next;

	heap->places[node].size += heap->places[gone].size;
	heap->places[node].next = next;
	heap->places[next].prev = node;
	drop_node(heap, gone);
}

vmm_status vmm_range_heap_create(uint64_t size_bytes, uint64_t granule,
				 struct vmm_range_heap **heap)
{
	struct vmm_range_heap *made;
	uint32_t ring, whole;

	if (!vmm_is_pow2(granule) || !size_bytes || size_bytes % granule ||
	    size_bytes / granule > UNITS_MAX)
		return VMM_INVALID_PARAMETER;
	made = vmm_calloc(1, sizeof(*made));
	if (!made)
		return VMM_NO_MEMORY;
	made->unused_head = NONE;
	if (!grow(made)) {
		vmm_free(made);
		return VMM_NO_MEMORY;
	}
	made->granule_shift = (uint32_t)__builtin_ctzll(granule);
	made->units = made->free_units = (uint32_t)(size_bytes >> made->granule_shift);
	ring = take_node(made);
	whole = take_node(made);
	vmm_assert(ring == RING);
	made->places[RING] = (struct place){.start = made->units, .prev = whole, .next = whole};
	made->places[whole] =
		(struct place){.start = 0, .size = made->units, .prev = RING, .next = RING};
	insert_hole(made, whole);
	*heap = made;
	return VMM_OK;
}

void vmm_range_heap_destroy(struct vmm_range_heap *heap)
{
	if (!heap)
		return;
	vmm_range_index_destroy(heap);
	vmm_free(heap->places);
	vmm_free(heap->links);
	vmm_free(heap);
}

/*
 * The hole with the lowest address among the first `look` holes of a bin that are large enough for
 * size, or NONE.
 */
static uint32_t lowest_in_bin(const struct vmm_range_heap *heap, uint32_t bin, uint32_t size,
			      uint32_t look)
{
	uint32_t best = NONE, lowest = UINT32_MAX;

	for (uint32_t i = heap->links[bin].bin.next; i >= BIN_COUNT && look--;
	     i = heap->links[i].bin.next) {
		const struct place *place = &heap->places[i - BIN_COUNT];

		if (size_of(place) >= size && place->start < lowest) {
			best = i - BIN_COUNT;
			lowest = place->start;
		}
	}
	return best;
}

static uint32_t find_tight(const struct vmm_range_heap *heap, uint32_t size, uint32_t look)
{
	uint32_t own = bin_of(size), bin = next_bin(heap, own), found = NONE;

	if (bin != NONE)
		found = lowest_in_bin(heap, bin, size, look);
	if (found != NONE || bin == NONE)
		return found;
	bin = next_bin(heap, bin + 1);
	if (bin != NONE)
		return lowest_in_bin(heap, bin, size, look);
	/*
	 * No larger hole is left. A hole that fits may still be further down the request's own bin.
	 */
	return lowest_in_bin(heap, own, size, UINT32_MAX);
}

/*
 * Finds a hole for a request without constraints; NONE: there is none. Best fit up to the width of
 * a bin: the request's own bin has sizes on both sides of it, and every hole of a later bin fits.
 */
static inline uint32_t find_fit(const struct vmm_range_heap *heap, uint32_t size)
{
	uint32_t bin, node;

	if (vmm_unlikely(heap->free_units < heap->units >> TIGHT_SHIFT))
		return find_tight(heap, size, LOOK_TIGHT);
	bin = next_bin(heap, bin_of(size));
	if (vmm_unlikely(bin == NONE))
		return NONE;
	node = heap->links[bin].bin.next - BIN_COUNT;
	if (size_of(&heap->places[node]) >= size)
		return node;
	bin = next_bin(heap, bin + 1);
	if (vmm_unlikely(bin == NONE))
		return find_tight(heap, size, LOOK_TIGHT);
	return heap->links[bin].bin.next - BIN_COUNT;
}

static inline bool is_special(const struct vmm_range_heap *heap,
			      const struct vmm_range_request *request)
{
	uint64_t place = request->low | request->high | request->flags;

	return place || request->alignment >> heap->granule_shift > 1;
}

/* Makes the node live. What it has behind the first `size` granules becomes a hole. */
static inline void make_live(struct vmm_range_heap *heap, uint32_t node, uint32_t size, void *owner)
{
	uint32_t tail = heap->places[node].size - size;

	heap->places[node].size = size;
	heap->links[BIN_COUNT + node].owner = owner;
	if (tail) {
		uint32_t rest = take_node(heap);

		link_behind(heap, node, rest, heap->places[node].start + size, tail);
		insert_hole(heap, rest);
	}
	heap->free_units -= size;
	heap->live_count++;
}

/* Makes the first `size` granules of a hole live; the rest stays a hole. */
static inline void carve(struct vmm_range_heap *heap, uint32_t node, uint32_t size, void *owner)
{
	remove_hole(heap, node);
	make_live(heap, node, size, owner);
}

/* The same from spot->start on. What the hole has before stays a hole. Returns the live node. */
static uint32_t carve_at(struct vmm_range_heap *heap, const struct spot *spot, uint32_t size,
			 void *owner)
{
	uint32_t front = spot->start - heap->places[spot->node].start, behind;

	if (!front) {
		carve(heap, spot->node, size, owner);
		return spot->node;
	}
	remove_hole(heap, spot->node);
	behind = take_node(heap);
	link_behind(heap, spot->node, behind, spot->start, heap->places[spot->node].size - front);
	heap->places[spot->node].size = front;
	insert_hole(heap, spot->node);
	make_live(heap, behind, size, owner);
	return behind;
}

/*
 * Ensures two unused nodes, for a hole before and one after: after this an allocation cannot fail.
 */
static inline bool have_nodes(struct vmm_range_heap *heap)
{
	return vmm_likely(heap->unused_count >= 2) || grow(heap);
}

uint32_t vmm_range_take_part(struct vmm_range_heap *heap, uint32_t hole, uint32_t start,
			     uint32_t size)
{
	const struct spot spot = {.node = hole, .start = start};

	if (!have_nodes(heap))
		return NONE;
	return carve_at(heap, &spot, size, NULL);
}

static vmm_status allocate_special(struct vmm_range_heap *heap,
				   const struct vmm_range_request *request, uint32_t size,
				   vmm_range_node *node)
{
	struct spot spot = vmm_range_find_special(heap, size, request);

	if (spot.node == NONE)
		return VMM_NO_VIDEO_MEMORY;
	if (!have_nodes(heap))
		return VMM_NO_MEMORY;
	*node = carve_at(heap, &spot, size, request->owner);
	return VMM_OK;
}

static inline vmm_status allocate_anywhere(struct vmm_range_heap *heap, uint32_t size, void *owner,
					   vmm_range_node *node)
{
	uint32_t found = find_fit(heap, size);

	if (vmm_unlikely(found == NONE))
		return VMM_NO_VIDEO_MEMORY;
	if (!have_nodes(heap))
		return VMM_NO_MEMORY;
	carve(heap, found, size, owner);
	*node = found;
	return VMM_OK;
}

vmm_status vmm_range_allocate(struct vmm_range_heap *heap, const struct vmm_range_request *request,
			      vmm_range_node *node, uint64_t *offset)
{
	uint64_t units = request->size_bytes >> heap->granule_shift;
	vmm_status status;

	vmm_assert(units && units << heap->granule_shift == request->size_bytes);
	if (vmm_unlikely(units > heap->free_units))
		return VMM_NO_VIDEO_MEMORY;
	if (vmm_unlikely(is_special(heap, request)))
		status = allocate_special(heap, request, (uint32_t)units, node);
	else
		status = allocate_anywhere(heap, (uint32_t)units, request->owner, node);
	if (vmm_likely(status == VMM_OK))
		*offset = (uint64_t)heap->places[*node].start << heap->granule_shift;
	return status;
}

void vmm_range_free(struct vmm_range_heap *heap, vmm_range_node node)
{
	uint32_t prev, next;

	vmm_assert(is_node(heap, node) && !is_hole(heap, node));
	prev = heap->places[node].prev;
	next = heap->places[node].next;
	heap->free_units += heap->places[node].size;
	heap->live_count--;
	if (is_hole(heap, next)) {
		remove_hole(heap, next);
		absorb_next(heap, node);
	}
	if (is_hole(heap, prev)) {
		remove_hole(heap, prev);
		absorb_next(heap, prev);
		node = prev;
	}
	insert_hole(heap, node);
}

uint64_t vmm_range_offset(const struct vmm_range_heap *heap, vmm_range_node node)
{
	vmm_assert(is_node(heap, node));
	return (uint64_t)heap->places[node].start << heap->granule_shift;
}

uint64_t vmm_range_size(const struct vmm_range_heap *heap, vmm_range_node node)
{
	vmm_assert(is_node(heap, node));
	return (uint64_t)size_of(&heap->places[node]) << heap->granule_shift;
}

void *vmm_range_owner(const struct vmm_range_heap *heap, vmm_range_node node)
{
	vmm_assert(is_node(heap, node));
	return is_hole(heap, node) ? NULL : heap->links[BIN_COUNT + node].owner;
}

vmm_range_node vmm_range_next(const struct vmm_range_heap *heap, vmm_range_node node)
{
	vmm_assert(node == NONE || is_node(heap, node));
	node = heap->places[node == NONE ? RING : node].next;
	return node == RING ? NONE : node;
}

bool vmm_range_is_free(const struct vmm_range_heap *heap, vmm_range_node node)
{
	vmm_assert(is_node(heap, node));
	return is_hole(heap, node);
}
