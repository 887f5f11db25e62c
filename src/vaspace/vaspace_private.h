/* SPDX-License-Identifier: MIT */
/*
 * The structure of an address space, and the treap that vaspace.c keeps its ranges and pieces in
 * (tree.c).
 */
#ifndef VMM_VASPACE_PRIVATE_H
#define VMM_VASPACE_PRIVATE_H

#include "vaspace/vaspace.h"

struct vmm_vaspace {
	uint64_t low, high;
	struct vmm_va_node *ranges, *pieces;
	uint64_t numbers;
	uint32_t seed; /* state of the random numbers for weights */
};

/* ---- tree.c: a treap; look-ups take logarithmic time ---- */
struct vmm_va_node *vmm_va_insert(struct vmm_va_node *root, struct vmm_va_node *node);
struct vmm_va_node *vmm_va_remove(struct vmm_va_node *root, const struct vmm_va_node *node);
/* Updates the sums after the size of a node has changed. */
struct vmm_va_node *vmm_va_resized(struct vmm_va_node *root, const struct vmm_va_node *node);
/* Returns the first node that ends above the address; NULL: none. */
struct vmm_va_node *vmm_va_behind(struct vmm_va_node *root, uint64_t address);
/* Finds the lowest gap that serves the request. */
bool vmm_va_hole(const struct vmm_va_node *root, const struct vmm_va_request *request,
		 uint64_t *base);
/* Returns the node with the highest address; NULL: none. */
struct vmm_va_node *vmm_va_last(struct vmm_va_node *root);

#endif
