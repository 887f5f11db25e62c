/* SPDX-License-Identifier: MIT */
/* Implements queue.h. child[0] has the nodes before, child[1] those after. */
#include "policy/queue.h"

#include "base/mix.h"

static struct vmm_policy_node **link_to(struct vmm_policy_queue *queue,
					struct vmm_policy_node *node)
{
	struct vmm_policy_node *parent = node->parent;

	return parent ? &parent->child[parent->child[1] == node] : &queue->root;
}

/* Exchanges the node with its parent, which becomes its child. */
static void rotate_up(struct vmm_policy_queue *queue, struct vmm_policy_node *node)
{
	struct vmm_policy_node *parent = node->parent;
	bool side = parent->child[1] == node;
	struct vmm_policy_node *inner = node->child[!side];

	*link_to(queue, parent) = node;
	node->parent = parent->parent;
	parent->child[side] = inner;
	if (inner)
		inner->parent = parent;
	node->child[!side] = parent;
	parent->parent = node;
}

void vmm_policy_insert(struct vmm_policy_queue *queue, struct vmm_policy_node *node)
{
	struct vmm_policy_node **link = &queue->root;

	node->child[0] = node->child[1] = node->parent = NULL;
	/* Orders that follow each other get unrelated weights. */
	node->weight = vmm_mix64(node->order);
	while (*link) {
		node->parent = *link;
		link = &node->parent->child[!vmm_policy_before(node, node->parent)];
	}
	*link = node;
	while (node->parent && node->parent->weight < node->weight)
		rotate_up(queue, node);
}

void vmm_policy_remove(struct vmm_policy_queue *queue, struct vmm_policy_node *node)
{
	while (node->child[0] && node->child[1])
		rotate_up(queue, node->child[node->child[1]->weight > node->child[0]->weight]);
	struct vmm_policy_node *only = node->child[node->child[1] != NULL];

	*link_to(queue, node) = only;
	if (only)
		only->parent = node->parent;
}

static struct vmm_policy_node *leftmost(struct vmm_policy_node *node)
{
	while (node && node->child[0])
		node = node->child[0];
	return node;
}

struct vmm_policy_node *vmm_policy_first(const struct vmm_policy_queue *queue)
{
	return leftmost(queue->root);
}

struct vmm_policy_node *vmm_policy_next(const struct vmm_policy_node *node)
{
	const struct vmm_policy_node *parent = node->parent;

	if (node->child[1])
		return leftmost(node->child[1]);
	for (; parent && parent->child[1] == node; parent = node->parent)
		node = parent;
	return (struct vmm_policy_node *)parent;
}

uint32_t vmm_policy_queue_check(const struct vmm_policy_queue *queue)
{
	const struct vmm_policy_node *before = NULL;
	uint32_t count = 0;

	for (const struct vmm_policy_node *node = vmm_policy_first(queue); node;
	     node = vmm_policy_next(node)) {
		vmm_assert(!before || vmm_policy_before(before, node));
		vmm_assert(!node->parent || node->parent->weight >= node->weight);
		vmm_assert(node->parent || node == queue->root);
		for (uint32_t i = 0; i < 2; i++)
			vmm_assert(!node->child[i] || node->child[i]->parent == node);
		before = node;
		count++;
	}
	return count;
}
