/* SPDX-License-Identifier: MIT */
/*
 * Asserts the invariants of an address space: the order, addresses and holes of the B+tree, and
 * that the pieces of each range cover it without gaps. For tests; changes no content.
 */
#include "vaspace/vaspace_private.h"

struct extent {
	uint64_t first, end, hole; /* the largest hole inside */
};

/* Asserts that the leaf's element is its piece. */
static struct extent check_piece(const struct vmm_va_piece *piece)
{
	vmm_assert(piece->size && !((piece->base | piece->size) & (VMM_PAGE_SIZE - 1)));
	return (struct extent){piece->base, piece->base + piece->size, 0};
}

static struct extent check_node(const struct vmm_va_node *node, uint32_t level)
{
	struct extent all = {0};

	vmm_assert(node->level == level && node->count && node->count <= VMM_VA_FANOUT);
	for (uint32_t i = 0; i < node->count; i++) {
		struct extent part = level ? check_node(node->element[i], level - 1)
					   : check_piece(node->element[i]);

		vmm_assert(part.first == node->first[i] && part.end == node->end[i]);
		vmm_assert(!i || node->end[i - 1] <= part.first);
		if (i)
			part.hole = vmm_max_u64(part.hole, part.first - node->end[i - 1]);
		vmm_assert(level ? node->hole[i] >= part.hole : node->hole[i] == part.hole);
		all.hole = vmm_max_u64(all.hole, part.hole);
	}
	all.first = node->first[0];
	all.end = node->end[node->count - 1];
	return all;
}

static void check_range(struct vmm_vaspace *space, const struct vmm_va_range *range)
{
	uint64_t at = range->base, end = at + range->size;
	uint32_t mapped = 0;

	vmm_assert(at >= space->low && end <= space->high);
	while (at < end) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);

		vmm_assert(piece && piece->base == at && piece->range == range);
		vmm_assert((piece->content.kind == VMM_VA_MAPPED) !=
			   (piece->link.next == &piece->link));
		mapped += piece->content.kind == VMM_VA_MAPPED;
		at += piece->size;
	}
	vmm_assert(at == end && mapped == range->mapped);
}

/* Asserts that the free addresses [from, to) have no place that a search would not find. */
static void check_free(const struct vmm_va_tree *tree, uint64_t from, uint64_t to)
{
	uint64_t first = vmm_max_u64(from, tree->full.minimum);

	vmm_assert(!tree->full.size || first >= tree->full.below || first >= to ||
		   to - first < tree->full.size);
}

void vmm_vaspace_check(struct vmm_vaspace *space)
{
	const struct vmm_va_tree *tree = &space->tree;
	const struct vmm_va_range *range;
	uint64_t at = 0;

	vmm_assert(!tree->root == !tree->height);
	if (tree->root)
		check_node(tree->root, tree->height - 1);
	while ((range = vmm_vaspace_next_range(space, at)) != NULL) {
		check_free(tree, at, range->base);
		check_range(space, range);
		at = range->base + range->size;
	}
	check_free(tree, at, space->high);
	vmm_assert(tree->root ? tree->root->end[tree->root->count - 1] == at : at == 0);
}
