/* SPDX-License-Identifier: MIT */
/*
 * The structure of an address space: the B+tree that holds its pieces (tree.c), and the pools of
 * its objects (pool.c).
 */
#ifndef VMM_VASPACE_PRIVATE_H
#define VMM_VASPACE_PRIVATE_H

#include "vaspace/vaspace.h"

/* ---- pool.c: objects of one size, reused without the heap ---- */
struct vmm_va_pool {
	size_t size;  /* of an object */
	void *unused; /* the last object that was given back; its first word is the one before */
	uint32_t unused_count;
	void *chunks; /* the last chunk; its first word is the one before */
};

/* Takes an object with undefined content; NULL: no memory. */
void *vmm_va_pool_take(struct vmm_va_pool *pool) VMM_MUST_CHECK;
/* Has `count` objects ready, so that as many calls of the next function succeed. VMM_NO_MEMORY. */
vmm_status vmm_va_pool_reserve(struct vmm_va_pool *pool, uint32_t count) VMM_MUST_CHECK;
void *vmm_va_pool_take_reserved(struct vmm_va_pool *pool);
void vmm_va_pool_give(struct vmm_va_pool *pool, void *object);
/* Frees all memory of the pool. All objects have been given back. */
void vmm_va_pool_finish(struct vmm_va_pool *pool);

/* ---- tree.c ---- */
enum {
	VMM_VA_FANOUT = 16, /* elements of a node */
	VMM_VA_HEIGHT_MAX = 16,
};

/*
 * Element i is a piece, in a leaf, or a node of the level below. first and end are the addresses
 * where it begins and ends.
 *
 * hole[i] is an upper bound of the free ranges inside element i and, if i is not 0, between it and
 * element i - 1. It is exact in a leaf. A range that is taken lowers no bound above the leaf; the
 * next search that fails below the bound does.
 */
struct vmm_va_node {
	uint32_t count, level; /* level 0: leaf */
	uint64_t end[VMM_VA_FANOUT], first[VMM_VA_FANOUT], hole[VMM_VA_FANOUT];
	void *element[VMM_VA_FANOUT];
};

struct vmm_va_tree {
	struct vmm_va_node *root; /* NULL: empty */
	uint32_t height;
	/*
	 * The cursor: the path from the leaf, at[0], to the root. A lookup moves it; insertion and
	 * removal happen there. `leaf` is at[0].node, or NULL while the path is not valid; `from`
	 * is the end of the piece before the leaf, or 0.
	 */
	const struct vmm_va_node *leaf;
	uint64_t from;
	struct {
		struct vmm_va_node *node;
		uint32_t slot;
	} at[VMM_VA_HEIGHT_MAX];
	struct vmm_va_pool nodes;
	/*
	 * No free place of `size` bytes begins in [minimum, below). A search continues from there,
	 * and a removal lowers it. size 0: nothing is known.
	 */
	struct {
		uint64_t minimum, below, size;
	} full;
};

struct vmm_vaspace {
	uint64_t low, high;
	struct vmm_va_tree tree;
	struct vmm_va_pool ranges, pieces;
	uint64_t numbers;
};

/* Makes `count` insertions possible without memory. VMM_NO_MEMORY. */
vmm_status vmm_va_tree_reserve(struct vmm_va_tree *tree, uint32_t count) VMM_MUST_CHECK;
/* Returns the first piece that ends above the address, and moves the cursor there; NULL: none. */
struct vmm_va_piece *vmm_va_tree_seek(struct vmm_va_tree *tree, uint64_t address);
/* Inserts a piece, which overlaps no other. The insertion has been reserved. */
void vmm_va_tree_insert(struct vmm_va_tree *tree, struct vmm_va_piece *piece);
void vmm_va_tree_remove(struct vmm_va_tree *tree, const struct vmm_va_piece *piece);
/* Updates the tree after the size of a piece has changed. */
void vmm_va_tree_resize(struct vmm_va_tree *tree, const struct vmm_va_piece *piece);
/* Finds the lowest free place for the request. */
bool vmm_va_tree_hole(struct vmm_va_tree *tree, const struct vmm_va_request *request,
		      uint64_t *base);

#endif
