/* SPDX-License-Identifier: MIT */
/*
 * The waits of one fence, ordered by value: a leftist heap whose nodes are members of the waits.
 * Insertion, removal of the least and removal of any node are O(log n) and allocate nothing. So the
 * cost of a signal depends on the waits that it ends, and not on the others (MFN-16).
 */
#include "sync/sync_private.h"

static uint32_t rank_of(const struct vmm_sync_node *node)
{
	return node ? node->rank : 0;
}

static void restore(struct vmm_sync_node *node)
{
	if (rank_of(node->left) < rank_of(node->right)) {
		struct vmm_sync_node *left = node->left;

		node->left = node->right;
		node->right = left;
	}
	node->rank = rank_of(node->right) + 1;
}

/* The recursion depth is the length of the right spines, which is logarithmic. */
static struct vmm_sync_node *merge(struct vmm_sync_node *a, struct vmm_sync_node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->value < a->value) {
		struct vmm_sync_node *greater = a;

		a = b;
		b = greater;
	}
	a->right = merge(a->right, b);
	a->right->parent = a;
	restore(a);
	return a;
}

void vmm_sync_heap_insert(struct vmm_sync_node **heap, struct vmm_sync_node *node)
{
	node->left = node->right = node->parent = NULL;
	node->rank = 1;
	*heap = merge(*heap, node);
	(*heap)->parent = NULL;
}

void vmm_sync_heap_remove(struct vmm_sync_node **heap, struct vmm_sync_node *node)
{
	vmm_assert(node->rank && (node->parent || *heap == node));
	struct vmm_sync_node *parent = node->parent, *rest = merge(node->left, node->right);
	if (rest)
		rest->parent = parent;
	if (!parent)
		*heap = rest;
	else if (parent->left == node)
		parent->left = rest;
	else
		parent->right = rest;
	for (; parent; parent = parent->parent) {
		uint32_t rank = parent->rank;

		restore(parent);
		if (parent->rank == rank)
			break;
	}
	node->left = node->right = node->parent = NULL;
	node->rank = 0;
}
