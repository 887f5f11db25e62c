/* SPDX-License-Identifier: MIT */
#ifndef VMM_VASPACE_PRIVATE_H
#define VMM_VASPACE_PRIVATE_H

#include "vaspace/vaspace.h"

struct vmm_vaspace {
	uint64_t low, high;
	struct vmm_va_node *ranges, *pieces;
	uint64_t numbers;
	uint32_t seed; /* of the next node's weight */
};

/* ---- tree.c: a treap; what is looked for takes the logarithm of its nodes ---- */
struct vmm_va_node *vmm_va_insert(struct vmm_va_node *root, struct vmm_va_node *node);
struct vmm_va_node *vmm_va_remove(struct vmm_va_node *root, const struct vmm_va_node *node);
/* The size of a node that stays is another now. */
struct vmm_va_node *vmm_va_resized(struct vmm_va_node *root, const struct vmm_va_node *node);
/* The first one that ends behind the address; NULL: none does. */
struct vmm_va_node *vmm_va_behind(struct vmm_va_node *root, uint64_t address);
/* The lowest hole between low and high for so much. */
bool vmm_va_hole(const struct vmm_va_node *root, const struct vmm_va_request *request,
		 uint64_t *base);
/* The node with the highest address; NULL: there is none. */
struct vmm_va_node *vmm_va_last(struct vmm_va_node *root);

#endif
