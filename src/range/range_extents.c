/* SPDX-License-Identifier: MIT */
/*
 * A request in several extents, for an owner that needs no contiguous range. Every extent but the
 * last is a multiple of a unit, so that a few large holes are not cut into many small ranges.
 *
 * Holes are put into classes by the power of two of the units that they have. The request takes the
 * holes of the highest classes that have enough together, in address order. That is nearly the
 * smallest number of extents, in two walks over the heap, without sorting and without memory.
 */
#include "range/range_internal.h"

#include <string.h>

enum { CLASSES = 32 };

struct cut {
	struct vmm_range_heap *heap;
	const struct vmm_range_request *request;
	struct limits limits;
	uint32_t unit;
	uint32_t left; /* granules that are not placed yet */
	uint32_t class_min;
	struct vmm_range_extents *extents;
};

/* A part of a hole, in granules; size 0: nothing. */
struct span {
	uint32_t low, size;
};

/* Returns the part of the node that the request may use. */
static struct span usable(const struct cut *cut, uint32_t node)
{
	const struct place *hole = &cut->heap->places[node];
	uint64_t low =
		vmm_align_up(vmm_max_u64(hole->start, cut->limits.low), cut->limits.alignment);
	uint64_t end = vmm_min_u64((uint64_t)hole->start + size_of(hole), cut->limits.high);

	if (!is_hole(cut->heap, node) || end < low + cut->unit)
		return (struct span){0, 0};
	return (struct span){(uint32_t)low, (uint32_t)(end - low)};
}

static uint32_t class_of(const struct cut *cut, struct span span)
{
	return 31 - (uint32_t)__builtin_clz(span.size / cut->unit);
}

/* Finds class_min, and the number of holes from there on. 0: all holes together are too small. */
static uint32_t choose_class(struct cut *cut)
{
	uint64_t units[CLASSES] = {0}, sum = 0, wanted = cut->left / cut->unit;
	uint32_t holes[CLASSES] = {0}, count = 0;
	uint32_t node = cut->heap->places[RING].next;

	for (; node != RING; node = cut->heap->places[node].next) {
		struct span span = usable(cut, node);

		if (!span.size)
			continue;
		units[class_of(cut, span)] += span.size / cut->unit;
		holes[class_of(cut, span)]++;
	}
	for (uint32_t c = CLASSES; c-- > 0 && sum < wanted;) {
		sum += units[c];
		count += holes[c];
		cut->class_min = c;
	}
	return sum < wanted ? 0 : count;
}

static void add(struct cut *cut, uint32_t node)
{
	struct vmm_range_extents *extents = cut->extents;
	uint32_t shift = cut->heap->granule_shift, size = size_of(&cut->heap->places[node]);
	uint64_t total = cut->request->size_bytes >> shift;

	cut->heap->links[BIN_COUNT + node].owner = cut->request->owner;
	extents->extent[extents->count++] = (struct vmm_range_extent){
		.node = node,
		.from = (total - cut->left) << shift,
		.offset = (uint64_t)cut->heap->places[node].start << shift,
		.size_bytes = (uint64_t)size << shift};
	cut->left -= size;
}

/* Takes what the request needs of a hole. Returns its node, or NONE without memory. */
static uint32_t take(struct cut *cut, uint32_t hole, struct span span)
{
	uint32_t size = span.size < cut->left ? span.size / cut->unit * cut->unit : cut->left;
	uint64_t start = span.low;

	if (cut->limits.from_end)
		start = vmm_align_down(start + span.size - size, cut->limits.alignment);
	uint32_t node = vmm_range_take_part(cut->heap, hole, (uint32_t)start, size);
	if (node != NONE)
		add(cut, node);
	return node;
}

/* Takes whole units, and the rest as well if the last hole has space for it. */
static vmm_status take_units(struct cut *cut)
{
	bool back = cut->limits.from_end;
	uint32_t node = back ? cut->heap->places[RING].prev : cut->heap->places[RING].next;

	while (node != RING && cut->left >= cut->unit) {
		struct span span = usable(cut, node);

		if (span.size && class_of(cut, span) >= cut->class_min)
			node = take(cut, node, span);
		if (node == NONE)
			return VMM_NO_MEMORY;
		node = back ? cut->heap->places[node].prev : cut->heap->places[node].next;
	}
	return VMM_OK;
}

/* The rest is less than a unit: any hole will do. */
static vmm_status take_rest(struct cut *cut)
{
	struct vmm_range_request rest = *cut->request;
	vmm_range_node node;
	uint64_t offset;

	if (!cut->left)
		return VMM_OK;
	rest.size_bytes = (uint64_t)cut->left << cut->heap->granule_shift;
	vmm_status status = vmm_range_allocate(cut->heap, &rest, &node, &offset);
	if (vmm_ok(status))
		add(cut, node);
	return status;
}

vmm_status vmm_range_allocate_extents(struct vmm_range_heap *heap,
				      const struct vmm_range_request *request, uint64_t unit_bytes,
				      struct vmm_range_extents **extents)
{
	uint64_t granules = request->size_bytes >> heap->granule_shift;
	struct cut cut = {.heap = heap, .request = request};

	vmm_assert(granules && granules << heap->granule_shift == request->size_bytes);
	vmm_assert(unit_bytes && !(unit_bytes & (((uint64_t)1 << heap->granule_shift) - 1)));
	vmm_assert(!request->alignment || unit_bytes % request->alignment == 0);
	if (granules > heap->free_units || request->size_bytes <= unit_bytes ||
	    !vmm_range_limits(heap, request, &cut.limits))
		return VMM_NO_VIDEO_MEMORY;
	cut.unit = (uint32_t)(unit_bytes >> heap->granule_shift);
	cut.left = (uint32_t)granules;
	uint64_t count = choose_class(&cut);
	if (!count)
		return VMM_NO_VIDEO_MEMORY;
	count = vmm_min_u64(count, granules / cut.unit) + 1;
	cut.extents = vmm_calloc(1, sizeof(*cut.extents) +
					    (size_t)count * sizeof(cut.extents->extent[0]));
	if (!cut.extents)
		return VMM_NO_MEMORY;
	vmm_status status = take_units(&cut);
	if (vmm_ok(status))
		status = take_rest(&cut);
	if (!vmm_ok(status)) {
		vmm_range_free_extents(heap, cut.extents);
		return status;
	}
	*extents = cut.extents;
	return VMM_OK;
}

vmm_status vmm_range_extents_copy(const struct vmm_range_extents *extents,
				  struct vmm_range_extents **copy)
{
	size_t size = sizeof(*extents) + extents->count * sizeof(extents->extent[0]);

	*copy = vmm_calloc(1, size);
	if (!*copy)
		return VMM_NO_MEMORY;
	memcpy(*copy, extents, size);
	return VMM_OK;
}

void vmm_range_free_extents(struct vmm_range_heap *heap, struct vmm_range_extents *extents)
{
	for (uint32_t i = 0; i < extents->count; i++)
		vmm_range_free(heap, extents->extent[i].node);
	vmm_free(extents);
}

const struct vmm_range_extent *vmm_range_extent_at(const struct vmm_range_extents *extents,
						   uint64_t from)
{
	uint32_t low = 0, high = extents->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (extents->extent[middle].from <= from)
			low = middle;
		else
			high = middle;
	}
	return &extents->extent[low];
}
