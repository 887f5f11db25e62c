/* SPDX-License-Identifier: MIT */
/*
 * queue: candidates for eviction in the order of their values, for a policy of the embedder
 * . A treap: a binary search tree by value that is also a heap by pseudo-random weights, so
 * insertion and removal take O(log n) in the mean. Intrusive, so they allocate nothing.
 */
#ifndef VMM_POLICY_QUEUE_H
#define VMM_POLICY_QUEUE_H

#include "base/base.h"

struct vmm_policy_node {
	struct vmm_policy_node *child[2], *parent;
	uint64_t value; /* the lowest is first, and of equal values the lowest order */
	uint64_t order; /* of the last use; different for all nodes of a queue */
	uint64_t weight;
};

struct vmm_policy_queue {
	struct vmm_policy_node *root; /* NULL: empty */
};

/* Returns whether A comes before B. */
static inline bool vmm_policy_before(const struct vmm_policy_node *a,
				     const struct vmm_policy_node *b)
{
	return a->value != b->value ? a->value < b->value : a->order < b->order;
}

/* Inserts a node that is in no queue. value and order are set, and constant until its removal. */
void vmm_policy_insert(struct vmm_policy_queue *queue, struct vmm_policy_node *node);
void vmm_policy_remove(struct vmm_policy_queue *queue, struct vmm_policy_node *node);
/* Return the first node, and the one after NODE; NULL: none. */
struct vmm_policy_node *vmm_policy_first(const struct vmm_policy_queue *queue);
struct vmm_policy_node *vmm_policy_next(const struct vmm_policy_node *node);
/* Asserts that the nodes are in order and linked both ways. Returns their number. */
uint32_t vmm_policy_queue_check(const struct vmm_policy_queue *queue);

#endif
