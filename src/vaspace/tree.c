/* SPDX-License-Identifier: MIT */
/*
 * A treap of intervals: a search tree by address and a heap by random weight, so its expected depth
 * is logarithmic for any order of insertion. Each node stores the largest gap of its subtree, so a
 * free place is found without a visit of every node.
 */
#include "vaspace/vaspace_private.h"

static void sum_up(struct vmm_va_node *node)
{
	const struct vmm_va_node *left = node->left, *right = node->right;
	uint64_t end = node->base + node->size;

	node->first = left ? left->first : node->base;
	node->end = right ? right->end : end;
	node->gap = 0;
	if (left)
		node->gap = vmm_max_u64(left->gap, node->base - left->end);
	if (right)
		node->gap = vmm_max_u64(node->gap, vmm_max_u64(right->gap, right->first - end));
}

static struct vmm_va_node *rotate_right(struct vmm_va_node *node)
{
	struct vmm_va_node *up = node->left;

	node->left = up->right;
	up->right = node;
	sum_up(node);
	sum_up(up);
	return up;
}

static struct vmm_va_node *rotate_left(struct vmm_va_node *node)
{
	struct vmm_va_node *up = node->right;

	node->right = up->left;
	up->left = node;
	sum_up(node);
	sum_up(up);
	return up;
}

struct vmm_va_node *vmm_va_insert(struct vmm_va_node *root, struct vmm_va_node *node)
{
	if (!root) {
		node->left = node->right = NULL;
		sum_up(node);
		return node;
	}
	vmm_assert(node->base + node->size <= root->base || node->base >= root->base + root->size);
	if (node->base < root->base) {
		root->left = vmm_va_insert(root->left, node);
		sum_up(root);
		return root->left->weight > root->weight ? rotate_right(root) : root;
	}
	root->right = vmm_va_insert(root->right, node);
	sum_up(root);
	return root->right->weight > root->weight ? rotate_left(root) : root;
}

static struct vmm_va_node *join(struct vmm_va_node *left, struct vmm_va_node *right)
{
	if (!left || !right)
		return left ? left : right;
	if (left->weight > right->weight) {
		left->right = join(left->right, right);
		sum_up(left);
		return left;
	}
	right->left = join(left, right->left);
	sum_up(right);
	return right;
}

struct vmm_va_node *vmm_va_remove(struct vmm_va_node *root, const struct vmm_va_node *node)
{
	vmm_assert(root);
	if (root == node)
		return join(root->left, root->right);
	if (node->base < root->base)
		root->left = vmm_va_remove(root->left, node);
	else
		root->right = vmm_va_remove(root->right, node);
	sum_up(root);
	return root;
}

struct vmm_va_node *vmm_va_resized(struct vmm_va_node *root, const struct vmm_va_node *node)
{
	vmm_assert(root);
	if (root != node && node->base < root->base)
		root->left = vmm_va_resized(root->left, node);
	else if (root != node)
		root->right = vmm_va_resized(root->right, node);
	sum_up(root);
	return root;
}

struct vmm_va_node *vmm_va_behind(struct vmm_va_node *root, uint64_t address)
{
	struct vmm_va_node *found = NULL;

	while (root) {
		if (root->base + root->size > address) {
			found = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return found;
}

struct vmm_va_node *vmm_va_last(struct vmm_va_node *root)
{
	while (root && root->right)
		root = root->right;
	return root;
}

static bool fits(uint64_t from, uint64_t to, const struct vmm_va_request *request, uint64_t *base)
{
	uint64_t start = vmm_max_u64(from, request->minimum);
	uint64_t end = vmm_min_u64(to, request->maximum);

	start = vmm_max_u64(start, request->phase) - request->phase;
	if (vmm_add_overflows(start, request->alignment - 1, &start))
		return false;
	start = (start & ~(request->alignment - 1)) + request->phase;
	if (start > end || end - start < request->size)
		return false;
	*base = start;
	return true;
}

/* from: end of the node before the subtree; to: begin of the node after it. */
static bool search(const struct vmm_va_node *root, uint64_t from, uint64_t to,
		   const struct vmm_va_request *request, uint64_t *base)
{
	if (to <= request->minimum || from >= request->maximum)
		return false;
	if (!root)
		return fits(from, to, request, base);
	if (root->gap < request->size && root->first - from < request->size &&
	    to - root->end < request->size)
		return false;
	return search(root->left, from, root->base, request, base) ||
	       search(root->right, root->base + root->size, to, request, base);
}

bool vmm_va_hole(const struct vmm_va_node *root, const struct vmm_va_request *request,
		 uint64_t *base)
{
	return search(root, 0, UINT64_MAX, request, base);
}
