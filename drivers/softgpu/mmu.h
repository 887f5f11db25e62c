/* SPDX-License-Identifier: MIT */
/*
 * The memory management unit of an engine: it walks page tables in video memory and caches
 * translations (TLB). Used by the engine's thread inside the bus. Entries are written by the paging
 * node while other engines walk; a table's entry is read and written as one word.
 *
 * Invalid entries are not cached, so an entry that becomes valid needs no flush (VA-13).
 */
#ifndef SOFTGPU_MMU_H
#define SOFTGPU_MMU_H

#include <stdint.h>

#include "memory.h"

/* An address space: its root table. */
struct softgpu_space {
	uint64_t root;    /* offset in video memory */
	uint32_t entries; /* of the root table; 0: there is none */
};

/* Sets of direct-mapped TLBs, one for each page size. */
#define SOFTGPU_TLB_SMALL 256u
#define SOFTGPU_TLB_LARGE 64u

struct softgpu_translation {
	uint64_t root;
	uint64_t page; /* address >> shift of the page size */
	char *host;    /* address of the page's first byte; NULL: no translation */
	uint32_t can_write;
	uint32_t is_zero; /* reads give zero, writes change nothing */
};

/* The last access that failed, or the address of a command that is wrong. */
struct softgpu_fault {
	uint64_t address;
	uint32_t is_write;
	uint32_t is_instruction; /* 1: a wrong command, not an access */
	uint32_t level;          /* of the invalid entry; 0 also for a write to a read-only page */
};

struct softgpu_mmu {
	/* constant after start */
	const struct softgpu_memory *memory;
	uint32_t levels;

	struct softgpu_fault fault;
	struct softgpu_translation small[SOFTGPU_TLB_SMALL], large[SOFTGPU_TLB_LARGE];
	char zero[4096];      /* what a zero page gives */
	char discarded[4096]; /* what was written to zero pages */
};

void softgpu_mmu_init(struct softgpu_mmu *mmu, const struct softgpu_memory *memory,
		      uint32_t levels);
/*
 * Returns the host address of `address`, or NULL: page fault (mmu->fault). *bytes: in, the bytes
 * wanted, at least 1; out, how many of them are contiguous.
 */
char *softgpu_translate(struct softgpu_mmu *mmu, const struct softgpu_space *space,
			uint64_t address, uint64_t *bytes, enum softgpu_access access);
/*
 * Removes the translations of a root for addresses from `start` to before `end`; both 0: all
 * addresses. The engine is outside the bus, or the caller is its thread.
 */
void softgpu_mmu_flush(struct softgpu_mmu *mmu, uint64_t root, uint64_t start, uint64_t end);
void softgpu_mmu_flush_all(struct softgpu_mmu *mmu);

/* Writes an entry of a table. Returns 0 if `offset` is not one of an entry in video memory. */
int softgpu_table_write(const struct softgpu_memory *memory, uint64_t offset, uint64_t entry);

#endif
