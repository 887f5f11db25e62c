/* SPDX-License-Identifier: MIT */
/*
 * Asserts the invariants of an address space: the order, weights and gaps of both treaps, and that
 * the pieces of each range cover it without gaps. For tests; changes nothing.
 */
#include "vaspace/vaspace_private.h"

static void check_node(const struct vmm_va_node *node)
{
	uint64_t end, gap = 0;

	if (!node)
		return;
	check_node(node->left);
	check_node(node->right);
	end = node->base + node->size;
	vmm_assert(node->size && !((node->base | node->size) & (VMM_PAGE_SIZE - 1)));
	if (node->left) {
		vmm_assert(node->left->end <= node->base && node->left->weight <= node->weight);
		gap = vmm_max_u64(node->left->gap, node->base - node->left->end);
	}
	if (node->right) {
		vmm_assert(node->right->first >= end && node->right->weight <= node->weight);
		gap = vmm_max_u64(gap, vmm_max_u64(node->right->gap, node->right->first - end));
	}
	vmm_assert(node->gap == gap);
	vmm_assert(node->first == (node->left ? node->left->first : node->base));
	vmm_assert(node->end == (node->right ? node->right->end : end));
}

static void check_range(const struct vmm_vaspace *space, const struct vmm_va_range *range)
{
	uint64_t at = range->node.base, end = at + range->node.size;
	uint32_t mapped = 0;

	vmm_assert(at >= space->low && end <= space->high);
	while (at < end) {
		const struct vmm_va_piece *piece = vmm_vaspace_piece(space, at);

		vmm_assert(piece && piece->node.base == at && piece->range == range);
		vmm_assert((piece->content.kind == VMM_VA_MAPPED) !=
			   (piece->link.next == &piece->link));
		mapped += piece->content.kind == VMM_VA_MAPPED;
		at += piece->node.size;
	}
	vmm_assert(at == end && mapped == range->mapped);
}

void vmm_vaspace_check(const struct vmm_vaspace *space)
{
	const struct vmm_va_range *range;
	const struct vmm_va_node *last = vmm_va_last(space->pieces);
	uint64_t at = 0;

	check_node(space->ranges);
	check_node(space->pieces);
	while ((range = vmm_vaspace_next_range(space, at)) != NULL) {
		check_range(space, range);
		at = range->node.base + range->node.size;
	}
	vmm_assert(last ? last->base + last->size == at : at == 0);
}
