/* SPDX-License-Identifier: MIT */
/*
 * Implements address spaces (vaspace.h) with one B+tree of pieces (tree.c). Pieces cover a range
 * without gaps and name it, so the tree finds ranges as well, and its holes are the free ranges.
 * Changing the content of a part of a range splits the pieces at its ends, replaces those between,
 * and merges equal neighbors. (VA-01 to VA-04, VA-07, VA-09)
 */
#include "vaspace/vaspace_private.h"

static uint64_t end_of(const struct vmm_va_piece *piece)
{
	return piece->base + piece->size;
}

vmm_status vmm_vaspace_create(uint64_t low, uint64_t high, struct vmm_vaspace **result)
{
	struct vmm_vaspace *space;

	if (low >= high || (low | high) & (VMM_PAGE_SIZE - 1))
		return VMM_INVALID_PARAMETER;
	space = vmm_calloc(1, sizeof(*space));
	if (!space)
		return VMM_NO_MEMORY;
	space->low = low;
	space->high = high;
	space->tree.nodes.size = sizeof(struct vmm_va_node);
	space->ranges.size = sizeof(struct vmm_va_range);
	space->pieces.size = sizeof(struct vmm_va_piece);
	*result = space;
	return VMM_OK;
}

void vmm_vaspace_destroy(struct vmm_vaspace *space)
{
	struct vmm_va_range *range;

	if (!space)
		return;
	while ((range = vmm_vaspace_next_range(space, 0)) != NULL)
		vmm_vaspace_release(space, range);
	vmm_va_pool_finish(&space->pieces);
	vmm_va_pool_finish(&space->ranges);
	vmm_va_pool_finish(&space->tree.nodes);
	vmm_free(space);
}

uint64_t vmm_vaspace_low(const struct vmm_vaspace *space)
{
	return space->low;
}

uint64_t vmm_vaspace_high(const struct vmm_vaspace *space)
{
	return space->high;
}

/* ---- pieces ---- */

static void link_piece(struct vmm_va_piece *piece)
{
	vmm_list_init(&piece->link);
	if (piece->content.kind != VMM_VA_MAPPED)
		return;
	vmm_list_push_back(piece->content.list, &piece->link);
	piece->range->mapped++;
}

static void unlink_piece(struct vmm_va_piece *piece)
{
	vmm_list_remove(&piece->link);
	if (piece->content.kind == VMM_VA_MAPPED)
		piece->range->mapped--;
}

static void add_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	vmm_va_tree_insert(&space->tree, piece);
	link_piece(piece);
}

static void drop_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	unlink_piece(piece);
	vmm_va_tree_remove(&space->tree, piece);
	vmm_va_pool_give(&space->pieces, piece);
}

/* Splits the piece at `at`; `rest` becomes the second part. */
static void split(struct vmm_vaspace *space, struct vmm_va_piece *piece, uint64_t at,
		  struct vmm_va_piece *rest)
{
	uint64_t before = at - piece->base;

	*rest = (struct vmm_va_piece){.base = at,
				      .size = piece->size - before,
				      .range = piece->range,
				      .content = piece->content,
				      .live = piece->live};
	if (rest->content.kind == VMM_VA_MAPPED || rest->content.kind == VMM_VA_PAGES)
		rest->content.offset += before;
	piece->size = before;
	vmm_va_tree_resize(&space->tree, piece);
	add_piece(space, rest);
}

/*
 * Adjacent pieces of equal content merge, except mapped ones: those stay as the client requested
 * them.
 */
static bool may_merge(const struct vmm_va_piece *a, const struct vmm_va_piece *b)
{
	return a && b && a->range == b->range && a->content.kind <= VMM_VA_ZERO &&
	       a->content.kind == b->content.kind && a->live == b->live &&
	       a->content.driver_protection == b->content.driver_protection;
}

static void merge(struct vmm_vaspace *space, struct vmm_va_piece *a, struct vmm_va_piece *b)
{
	uint64_t size = b->size;

	drop_piece(space, b);
	a->size += size;
	vmm_va_tree_resize(&space->tree, a);
}

static void merge_around(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	struct vmm_va_piece *next = vmm_vaspace_next(space, piece), *before;

	if (may_merge(piece, next))
		merge(space, piece, next);
	before = piece->base ? vmm_vaspace_piece(space, piece->base - 1) : NULL;
	if (before != piece && may_merge(before, piece))
		merge(space, before, piece);
}

struct vmm_va_piece *vmm_vaspace_piece(struct vmm_vaspace *space, uint64_t address)
{
	return vmm_va_tree_seek(&space->tree, address);
}

/* The pieces of a range, from the one at `base` to the one that ends at `end`. */
static void remove_within(struct vmm_vaspace *space, uint64_t base, uint64_t end)
{
	while (base < end) {
		struct vmm_va_piece *piece = vmm_vaspace_piece(space, base);

		base = end_of(piece);
		drop_piece(space, piece);
	}
}

/* Takes three pieces, and what their insertion needs. Returns false, with none, without memory. */
static bool take_pieces(struct vmm_vaspace *space, struct vmm_va_piece *pieces[3])
{
	uint32_t taken = 0;

	while (taken < 3 && (pieces[taken] = vmm_va_pool_take(&space->pieces)) != NULL)
		taken++;
	if (taken == 3 && vmm_ok(vmm_va_tree_reserve(&space->tree, 3)))
		return true;
	while (taken)
		vmm_va_pool_give(&space->pieces, pieces[--taken]);
	return false;
}

vmm_status vmm_vaspace_set(struct vmm_vaspace *space, uint64_t base, uint64_t size,
			   const struct vmm_va_content *content)
{
	struct vmm_va_range *range = vmm_vaspace_range(space, base, size);
	struct vmm_va_piece *unused[3], *at;
	uint32_t used = 0;

	vmm_assert(range && size);
	if (!take_pieces(space, unused))
		return VMM_NO_MEMORY;
	at = vmm_vaspace_piece(space, base);
	if (at->base < base)
		split(space, at, base, unused[used++]);
	at = vmm_vaspace_piece(space, base + size - 1);
	if (end_of(at) > base + size)
		split(space, at, base + size, unused[used++]);
	remove_within(space, base, base + size);
	at = unused[used++];
	*at = (struct vmm_va_piece){
		.base = base, .size = size, .range = range, .content = *content};
	add_piece(space, at);
	merge_around(space, at);
	while (used < 3)
		vmm_va_pool_give(&space->pieces, unused[used++]);
	return VMM_OK;
}

void vmm_vaspace_unmap_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	(void)space;
	unlink_piece(piece);
	piece->content = (struct vmm_va_content){.kind = VMM_VA_NOTHING};
	piece->live = false;
}

/* ---- ranges ---- */

struct vmm_va_range *vmm_vaspace_next_range(struct vmm_vaspace *space, uint64_t address)
{
	const struct vmm_va_piece *piece = vmm_vaspace_piece(space, address);

	return piece ? piece->range : NULL;
}

bool vmm_vaspace_is_taken(struct vmm_vaspace *space, uint64_t base, uint64_t size)
{
	const struct vmm_va_piece *piece = vmm_vaspace_piece(space, base);

	return piece && piece->base < base + size;
}

struct vmm_va_range *vmm_vaspace_range(struct vmm_vaspace *space, uint64_t base, uint64_t size)
{
	struct vmm_va_range *range = vmm_vaspace_next_range(space, base);

	if (!range || range->base > base || size > range->base + range->size - base)
		return NULL;
	return range;
}

static vmm_status choose(struct vmm_vaspace *space, const struct vmm_va_request *request,
			 uint64_t *base)
{
	struct vmm_va_request within = *request;

	if (request->base) {
		if (request->base < space->low || request->base > space->high ||
		    request->size > space->high - request->base ||
		    vmm_vaspace_is_taken(space, request->base, request->size))
			return VMM_INVALID_PARAMETER;
		*base = request->base;
		return VMM_OK;
	}
	within.minimum = vmm_max_u64(request->minimum, space->low);
	within.maximum =
		request->maximum ? vmm_min_u64(request->maximum, space->high) : space->high;
	return vmm_va_tree_hole(&space->tree, &within, base) ? VMM_OK : VMM_NO_MEMORY;
}

vmm_status vmm_vaspace_take(struct vmm_vaspace *space, const struct vmm_va_request *request,
			    enum vmm_va_origin origin, struct vmm_va_range **result)
{
	struct vmm_va_range *range;
	struct vmm_va_piece *piece;
	uint64_t base = 0;
	vmm_status status = choose(space, request, &base);

	if (vmm_ok(status))
		status = vmm_va_tree_reserve(&space->tree, 1);
	if (!vmm_ok(status))
		return status;
	range = vmm_va_pool_take(&space->ranges);
	if (!range)
		return VMM_NO_MEMORY;
	piece = vmm_va_pool_take(&space->pieces);
	if (!piece) {
		vmm_va_pool_give(&space->ranges, range);
		return VMM_NO_MEMORY;
	}
	*range = (struct vmm_va_range){
		.base = base, .size = request->size, .origin = origin, .number = ++space->numbers};
	*piece = (struct vmm_va_piece){.base = base, .size = request->size, .range = range};
	add_piece(space, piece);
	*result = range;
	return VMM_OK;
}

void vmm_vaspace_fill(struct vmm_vaspace *space, struct vmm_va_range *range,
		      const struct vmm_va_content *content)
{
	struct vmm_va_piece *piece = vmm_vaspace_piece(space, range->base);

	vmm_assert(piece->size == range->size && piece->content.kind == VMM_VA_NOTHING);
	piece->content = *content;
	link_piece(piece);
}

void vmm_vaspace_release(struct vmm_vaspace *space, struct vmm_va_range *range)
{
	remove_within(space, range->base, range->base + range->size);
	vmm_assert(!range->mapped);
	vmm_va_pool_give(&space->ranges, range);
}
