/* SPDX-License-Identifier: MIT */
/* Arenas: the memory objects that system memory is carved from (arena.c). */
#ifndef VMM_MEMORY_ARENA_H
#define VMM_MEMORY_ARENA_H

#include "memory/state/types.h"

#define VMM_ARENA_BYTES ((uint64_t)64 << 20)
#define VMM_ARENAS_MAX  4096u

/*
 * Backing pages to be freed once the paging timeline has completed `sequence`: a packet up to that
 * one reads them.
 */
struct vmm_deferred {
	struct vmm_list link;
	struct vmm_backing backing;
	uint64_t sequence;
};

/*
 * The file that holds all arenas of one owner, so that none needs a descriptor when an eviction or
 * a packet needs system memory. An arena is at the same offset in it as its slot has among all
 * slots.
 */
struct vmm_arena_pool {
	struct vmm_list link;
	uint64_t owner, size_bytes;
	uint32_t arenas; /* in it */
	bool orphan;     /* the owner has ended */
	int file;
};

/*
 * One memory object that backing stores are carved from. A closed arena has no heap and no memory;
 * its slot keeps the physical address range for the next arena.
 */
struct vmm_arena {
	struct vmm_os_memory memory;
	struct vmm_range_heap *heap;
	uint64_t physical, physical_bytes;
	uint64_t pool_offset;        /* where the slot begins in the pool of any owner */
	struct vmm_arena_pool *pool; /* NULL: a separate file */
	uint64_t clean_from;         /* offset; pages from here on were never used and are zero */
	uint64_t used_bytes;
	uint64_t owner;       /* the out-of-process client that may map all of it; 0: none */
	bool orphan;          /* that client has ended */
	bool has_freed_pages; /* some were freed since free pages were last discarded */
};

/*
 * Makes the owner's pool, if there is none. VMM_NO_MEMORY: no memory, or no descriptor.
 */
vmm_status vmm_arenas_prepare(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);
/*
 * The client of that owner number has ended. Each of its arenas is closed as soon as it is empty.
 */
void vmm_arenas_end_owner(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class);

#endif
