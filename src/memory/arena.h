/* SPDX-License-Identifier: MIT */
/* Where system memory comes from: arena.c. Guarded by the paging lock. */
#ifndef VMM_MEMORY_ARENA_H
#define VMM_MEMORY_ARENA_H

#include "memory/memory_private.h"

/* A memory object out of which backing stores are carved; without a heap there is none, and physical addresses for the next one there. */
struct vmm_arena {
	struct vmm_os_memory memory;
	struct vmm_range_heap *heap;
	uint64_t physical, physical_bytes;
	uint64_t clean_from; /* pages from here on were never given out: they are zero */
	uint64_t used_bytes;
	uint64_t owner; /* who may see all of it, elsewhere; 0: nobody */
	bool orphan;    /* he has gone */
	bool loose;     /* pages came free since they were given back to the system */
};

/* He has gone: what only he might be shown goes as soon as nothing is in it. */
void vmm_arenas_end_owner(struct vmm_memory *memory, uint64_t owner);

#endif
