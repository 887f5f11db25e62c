/* SPDX-License-Identifier: MIT */
/*
 * vaspace: the GPU virtual addresses of one process on one adapter, and the content of each page
 * (VA-01 to VA-04, VA-07, VA-09). A *range* is what a client got by one Map or Reserve call, and
 * frees as a whole. *Pieces* cover each range without gaps. A piece says what its pages are:
 * nothing, zero, or pages of an object.
 *
 * Pure: no lock, no I/O, no page tables; the caller holds the owner's lock, also for a lookup.
 * Addresses and sizes are bytes, multiples of VMM_PAGE_SIZE.
 */
#ifndef VMM_VASPACE_VASPACE_H
#define VMM_VASPACE_VASPACE_H

#include "base/base.h"

enum vmm_va_origin {
	VMM_VA_BY_MAP,
	VMM_VA_BY_RESERVE,
	/* Clients neither map into the ranges of the library nor into those of the miniport. */
	VMM_VA_BY_SYSTEM,
	VMM_VA_BY_DRIVER, /* a reservation of the miniport, which maps into it (VA-20) */
};

struct vmm_va_range {
	uint64_t base, size;
	enum vmm_va_origin origin;
	uint64_t number; /* 1, 2, 3 ... within the space, in order of creation */
	uint32_t mapped; /* number of its pieces with VMM_VA_MAPPED */
};

enum vmm_va_kind {
	VMM_VA_NOTHING,
	VMM_VA_ZERO,
	VMM_VA_MAPPED,
	VMM_VA_PAGES /* pages without an object, from the bus address `offset` on */
};

/*
 * The content of pages. VMM_VA_MAPPED uses all members, the other kinds only the kind and the
 * driver's protection.
 */
struct vmm_va_content {
	enum vmm_va_kind kind;
	uint64_t protection, driver_protection; /* opaque here; used by the owner */
	void *object;
	uint64_t offset;       /* of the first page in the object */
	struct vmm_list *list; /* the object's list of its pieces */
};

struct vmm_va_piece {
	uint64_t base, size;
	struct vmm_va_range *range;
	struct vmm_list link; /* in content.list; detached unless VMM_VA_MAPPED */
	struct vmm_va_content content;
	/* used by the owner: the page tables have it; a split keeps the flag for both parts */
	bool live;
};

struct vmm_vaspace;

/*
 * Creates a space of the addresses [low, high). VMM_NO_MEMORY; VMM_INVALID_PARAMETER: the interval
 * is empty or not page-aligned.
 */
vmm_status vmm_vaspace_create(uint64_t low, uint64_t high,
			      struct vmm_vaspace **space) VMM_MUST_CHECK;
/* Destroys the space, its ranges and pieces. */
void vmm_vaspace_destroy(struct vmm_vaspace *space);

struct vmm_va_request {
	uint64_t base;             /* 0: the lowest free address between minimum and maximum */
	uint64_t minimum, maximum; /* maximum 0: no limit */
	uint64_t size, alignment;  /* a power of two */
	uint64_t phase; /* below the alignment: offset of a chosen base from a multiple of it */
};
/*
 * Creates a range of one piece, whose pages are nothing. VMM_INVALID_PARAMETER: base is given, and
 * the range is not free or not inside the space. VMM_NO_MEMORY: no free range between minimum and
 * maximum, or no host memory.
 */
vmm_status vmm_vaspace_take(struct vmm_vaspace *space, const struct vmm_va_request *request,
			    enum vmm_va_origin origin, struct vmm_va_range **range) VMM_MUST_CHECK;
/*
 * Sets the content of all pages of a range that is as vmm_vaspace_take created it. Needs no memory.
 */
void vmm_vaspace_fill(struct vmm_vaspace *space, struct vmm_va_range *range,
		      const struct vmm_va_content *content);
void vmm_vaspace_release(struct vmm_vaspace *space, struct vmm_va_range *range);
/* Returns the range that contains [base, base + size), or NULL. */
struct vmm_va_range *vmm_vaspace_range(struct vmm_vaspace *space, uint64_t base, uint64_t size);
/* Returns whether any address of [base, base + size) is in a range. */
bool vmm_vaspace_is_taken(struct vmm_vaspace *space, uint64_t base, uint64_t size);
/*
 * Sets the content of pages, which all belong to one range. Returns VMM_OK, or VMM_NO_MEMORY
 * without a change.
 */
vmm_status vmm_vaspace_set(struct vmm_vaspace *space, uint64_t base, uint64_t size,
			   const struct vmm_va_content *content) VMM_MUST_CHECK;
/* Makes a piece VMM_VA_NOTHING when its object ends. Needs no memory. */
void vmm_vaspace_unmap_piece(struct vmm_vaspace *space, struct vmm_va_piece *piece);
/* Returns the piece that contains the address, else the next one above it; NULL: none. */
struct vmm_va_piece *vmm_vaspace_piece(struct vmm_vaspace *space, uint64_t address);
static inline struct vmm_va_piece *vmm_vaspace_next(struct vmm_vaspace *space,
						    const struct vmm_va_piece *piece)
{
	return vmm_vaspace_piece(space, piece->base + piece->size);
}
/* Returns the lowest range that ends above the address; NULL: none. */
struct vmm_va_range *vmm_vaspace_next_range(struct vmm_vaspace *space, uint64_t address);

uint64_t vmm_vaspace_low(const struct vmm_vaspace *space);
uint64_t vmm_vaspace_high(const struct vmm_vaspace *space);

/* Asserts all invariants. */
void vmm_vaspace_check(struct vmm_vaspace *space);

#endif
