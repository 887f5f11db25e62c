/* SPDX-License-Identifier: MIT */
/*
 * Implements address spaces (vaspace.h) with two treaps (tree.c), one of ranges and one of pieces.
 * Changing the content of a part of a range splits the pieces at its ends, replaces those between,
 * and merges equal neighbors. (VA-01 to VA-04, VA-07, VA-09)
 */
#include "vaspace/vaspace_private.h"

static struct vmm_va_range *range_of(struct vmm_va_node *node)
{
	return node ? vmm_container_of(node, struct vmm_va_range, node) : NULL;
}

static struct vmm_va_piece *piece_of(struct vmm_va_node *node)
{
	return node ? vmm_container_of(node, struct vmm_va_piece, node) : NULL;
}

static uint64_t end_of(const struct vmm_va_node *node)
{
	return node->base + node->size;
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
	space->seed = 0x9E3779B9u;
	*result = space;
	return VMM_OK;
}

void vmm_vaspace_destroy(struct vmm_vaspace *space)
{
	if (!space)
		return;
	while (space->ranges)
		vmm_vaspace_release(space, range_of(space->ranges));
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

/* xorshift: deterministic, so the same calls build the same tree. */
static uint32_t next_weight(struct vmm_vaspace *space)
{
	space->seed ^= space->seed << 13;
	space->seed ^= space->seed >> 17;
	space->seed ^= space->seed << 5;
	return space->seed;
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
	piece->node.weight = next_weight(space);
	space->pieces = vmm_va_insert(space->pieces, &piece->node);
	link_piece(piece);
}

static void drop_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	unlink_piece(piece);
	space->pieces = vmm_va_remove(space->pieces, &piece->node);
	vmm_free(piece);
}

/* Splits the piece at `at`; `rest` becomes the second part. */
static void split(struct vmm_vaspace *space, struct vmm_va_piece *piece, uint64_t at,
		  struct vmm_va_piece *rest)
{
	uint64_t before = at - piece->node.base;

	*rest = (struct vmm_va_piece){.node = {.base = at, .size = piece->node.size - before},
				      .range = piece->range,
				      .content = piece->content,
				      .live = piece->live};
	if (rest->content.kind == VMM_VA_MAPPED || rest->content.kind == VMM_VA_PAGES)
		rest->content.offset += before;
	piece->node.size = before;
	space->pieces = vmm_va_resized(space->pieces, &piece->node);
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
	uint64_t size = b->node.size;

	drop_piece(space, b);
	a->node.size += size;
	space->pieces = vmm_va_resized(space->pieces, &a->node);
}

static void merge_around(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	struct vmm_va_piece *next = vmm_vaspace_next(space, piece), *before;

	if (may_merge(piece, next))
		merge(space, piece, next);
	before = piece->node.base ? vmm_vaspace_piece(space, piece->node.base - 1) : NULL;
	if (before != piece && may_merge(before, piece))
		merge(space, before, piece);
}

struct vmm_va_piece *vmm_vaspace_piece(const struct vmm_vaspace *space, uint64_t address)
{
	return piece_of(vmm_va_behind(space->pieces, address));
}

static void remove_within(struct vmm_vaspace *space, uint64_t base, uint64_t end)
{
	struct vmm_va_piece *piece;

	while ((piece = vmm_vaspace_piece(space, base)) != NULL && piece->node.base < end)
		drop_piece(space, piece);
}

vmm_status vmm_vaspace_set(struct vmm_vaspace *space, uint64_t base, uint64_t size,
			   const struct vmm_va_content *content)
{
	struct vmm_va_piece *piece = vmm_calloc(1, sizeof(*piece));
	struct vmm_va_piece *rest[2] = {vmm_calloc(1, sizeof(**rest)),
					vmm_calloc(1, sizeof(**rest))};
	struct vmm_va_range *range = vmm_vaspace_range(space, base, size);
	uint32_t used = 0;
	vmm_status status = piece && rest[0] && rest[1] ? VMM_OK : VMM_NO_MEMORY;

	vmm_assert(range && size);
	if (vmm_ok(status)) {
		struct vmm_va_piece *at = vmm_vaspace_piece(space, base);

		if (at->node.base < base)
			split(space, at, base, rest[used++]);
		at = vmm_vaspace_piece(space, base + size - 1);
		if (end_of(&at->node) > base + size)
			split(space, at, base + size, rest[used++]);
		remove_within(space, base, base + size);
		*piece = (struct vmm_va_piece){
			.node = {.base = base, .size = size}, .range = range, .content = *content};
		add_piece(space, piece);
		merge_around(space, piece);
		piece = NULL;
	}
	for (; used < 2; used++)
		vmm_free(rest[used]);
	vmm_free(piece);
	return status;
}

void vmm_vaspace_unmap_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece)
{
	(void)space;
	unlink_piece(piece);
	piece->content = (struct vmm_va_content){.kind = VMM_VA_NOTHING};
	piece->live = false;
}

/* ---- ranges ---- */

struct vmm_va_range *vmm_vaspace_next_range(const struct vmm_vaspace *space, uint64_t address)
{
	return range_of(vmm_va_behind(space->ranges, address));
}

bool vmm_vaspace_is_taken(const struct vmm_vaspace *space, uint64_t base, uint64_t size)
{
	const struct vmm_va_node *node = vmm_va_behind(space->ranges, base);

	return node && node->base < base + size;
}

struct vmm_va_range *vmm_vaspace_range(const struct vmm_vaspace *space, uint64_t base,
				       uint64_t size)
{
	struct vmm_va_range *range = vmm_vaspace_next_range(space, base);

	if (!range || range->node.base > base || size > end_of(&range->node) - base)
		return NULL;
	return range;
}

static vmm_status choose(const struct vmm_vaspace *space, const struct vmm_va_request *request,
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
	return vmm_va_hole(space->ranges, &within, base) ? VMM_OK : VMM_NO_MEMORY;
}

vmm_status vmm_vaspace_take(struct vmm_vaspace *space, const struct vmm_va_request *request,
			    enum vmm_va_origin origin, const struct vmm_va_content *content,
			    struct vmm_va_range **result)
{
	struct vmm_va_piece *piece;
	struct vmm_va_range *range;
	uint64_t base = 0;
	vmm_status status = choose(space, request, &base);

	if (!vmm_ok(status))
		return status;
	range = vmm_calloc(1, sizeof(*range));
	piece = vmm_calloc(1, sizeof(*piece));
	if (!range || !piece) {
		vmm_free(range);
		vmm_free(piece);
		return VMM_NO_MEMORY;
	}
	range->node.base = piece->node.base = base;
	range->node.size = piece->node.size = request->size;
	range->node.weight = next_weight(space);
	range->origin = origin;
	range->number = ++space->numbers;
	piece->range = range;
	piece->content = *content;
	space->ranges = vmm_va_insert(space->ranges, &range->node);
	add_piece(space, piece);
	*result = range;
	return VMM_OK;
}

void vmm_vaspace_release(struct vmm_vaspace *space, struct vmm_va_range *range)
{
	remove_within(space, range->node.base, end_of(&range->node));
	vmm_assert(!range->mapped);
	space->ranges = vmm_va_remove(space->ranges, &range->node);
	vmm_free(range);
}
