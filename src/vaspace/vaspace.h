/* SPDX-License-Identifier: MIT */
/*
 * vaspace: the GPU virtual addresses of one process on one adapter, and what each page of them is (VA-01 to VA-04,
 * VA-07, VA-09). A *range* is what a client got in one piece, by mapping or by reserving, and gives back whole. *Pieces*
 * cover each range without a hole; one says what its pages are: nothing, zero, or pages of an object.
 * Pure: no lock, no I/O, no page tables; the owner locks. Addresses and sizes are bytes, multiples of VMM_PAGE_SIZE.
 */
#ifndef VMM_VASPACE_VASPACE_H
#define VMM_VASPACE_VASPACE_H

#include "base/base.h"

/* A place in a tree of intervals that do not overlap, by address; the members are the tree's. */
struct vmm_va_node {
	uint64_t base, size;
	struct vmm_va_node *left, *right;
	uint32_t weight;
	/* of the subtree: where it begins and ends, and its largest hole */
	uint64_t first, end, gap;
};

enum vmm_va_origin {
	VMM_VA_BY_MAP,
	VMM_VA_BY_RESERVE,
	VMM_VA_BY_SYSTEM, /* of the library or the miniport: no client maps into it or frees it */
};

struct vmm_va_range {
	struct vmm_va_node node;
	enum vmm_va_origin origin;
	uint64_t number; /* 1, 2, 3 ... of the space's, in the order in which they were got */
	uint32_t mapped; /* pieces of it that map something */
};

enum vmm_va_kind {
	VMM_VA_NOTHING,
	VMM_VA_ZERO,
	VMM_VA_MAPPED,
	VMM_VA_PAGES /* of no object, from the bus address `offset` on */
};

/* What pages are. Of VMM_VA_MAPPED everything counts, of the others the kind and the driver's protection. */
struct vmm_va_content {
	enum vmm_va_kind kind;
	uint64_t protection, driver_protection; /* the owner's */
	void *object;
	uint64_t offset;       /* of the first page in the object */
	struct vmm_list *list; /* the object's: its pieces are in there */
};

struct vmm_va_piece {
	struct vmm_va_node node;
	struct vmm_va_range *range;
	struct vmm_list link; /* in content.list; detached unless it maps something */
	struct vmm_va_content content;
	bool live; /* the owner's: the page tables have it; a part of a live piece is live */
};

struct vmm_vaspace;

/* VMM_NO_MEMORY; VMM_INVALID_PARAMETER: nothing is between low and high. */
vmm_status vmm_vaspace_create(uint64_t low, uint64_t high,
			      struct vmm_vaspace **space) VMM_MUST_CHECK;
/* With everything that is in it. */
void vmm_vaspace_destroy(struct vmm_vaspace *space);

struct vmm_va_request {
	uint64_t base;             /* 0: anywhere between minimum and maximum, as low as possible */
	uint64_t minimum, maximum; /* maximum 0: no limit */
	uint64_t size, alignment;  /* a power of two */
	uint64_t phase; /* below the alignment: what a chosen base is beyond a multiple of it */
};
/*
 * A new range, all of it that content. VMM_INVALID_PARAMETER: base is given, and not all of it is free or inside the space.
 * VMM_NO_MEMORY: no room between minimum and maximum, or no memory for it.
 */
vmm_status vmm_vaspace_take(struct vmm_vaspace *space, const struct vmm_va_request *request,
			    enum vmm_va_origin origin, const struct vmm_va_content *content,
			    struct vmm_va_range **range) VMM_MUST_CHECK;
void vmm_vaspace_release(struct vmm_vaspace *space, struct vmm_va_range *range);
/* The range that holds all of it; NULL: none does. */
struct vmm_va_range *vmm_vaspace_range(const struct vmm_vaspace *space, uint64_t base,
				       uint64_t size);
/* Is any of it taken? */
bool vmm_vaspace_is_taken(const struct vmm_vaspace *space, uint64_t base, uint64_t size);
/* Pages of one range become that content. Only VMM_NO_MEMORY is possible, and has changed nothing. */
vmm_status vmm_vaspace_set(struct vmm_vaspace *space, uint64_t base, uint64_t size,
			   const struct vmm_va_content *content) VMM_MUST_CHECK;
/* What becomes of pages whose object goes: needs no memory. */
void vmm_vaspace_unmap_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece);
/* The piece that has the address, or else the next one behind it; NULL: there is none. */
struct vmm_va_piece *vmm_vaspace_piece(const struct vmm_vaspace *space, uint64_t address);
static inline struct vmm_va_piece *vmm_vaspace_next(const struct vmm_vaspace *space,
						    const struct vmm_va_piece *piece)
{
	return vmm_vaspace_piece(space, piece->node.base + piece->node.size);
}
/* The lowest range that ends behind the address; NULL: there is none. */
struct vmm_va_range *vmm_vaspace_next_range(const struct vmm_vaspace *space, uint64_t address);

uint64_t vmm_vaspace_low(const struct vmm_vaspace *space);
uint64_t vmm_vaspace_high(const struct vmm_vaspace *space);

/* Walks everything and asserts the invariants. */
void vmm_vaspace_check(const struct vmm_vaspace *space);

#endif
