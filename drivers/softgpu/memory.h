/* SPDX-License-Identifier: MIT */
/*
 * The GPU's view of memory: its own translation from GPU addresses to host memory, and access through it.
 *
 * Owns the aperture's page table. It is written by executing MAP and UNMAP paging commands and by resets only, never
 * when those commands are built: an address is valid from the moment the engine gets there. Everything returns 0 for
 * a bus fault, which leaves what was done before it in place, as hardware does.
 *
 * No lock: the order of paging and use on different nodes is the scheduler's (SUB-03), a reset stops the engines, and
 * windows change while the bus is held.
 */
#ifndef SOFTGPU_MEMORY_H
#define SOFTGPU_MEMORY_H

#include "softgpu_hw.h"

struct softgpu_window;

struct softgpu_memory {
	/* constant after start */
	char *vram;
	uint64_t vram_bytes;
	uint64_t aperture_pages;
	/* Host address of each page, 0 where nothing is mapped. Bit 0: may only be read (the dummy page). */
	uintptr_t *aperture;
	const struct softgpu_memory *lead; /* of a link; NULL: there is none */
	struct softgpu_window *windows;    /* see window.h */

	/* changes while the bus is held */
	uint32_t window_count;
};
#define SOFTGPU_PAGE_READ_ONLY ((uintptr_t)1)

enum softgpu_access { SOFTGPU_READ, SOFTGPU_WRITE };

/* Host address of `address`; *bytes (in: wanted, at least 1) becomes how many follow contiguously. NULL: bus fault. */
char *softgpu_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes,
		     enum softgpu_access access);

int softgpu_read(const struct softgpu_memory *memory, uint64_t address, void *data,
		 uint64_t length);
int softgpu_write(const struct softgpu_memory *memory, uint64_t address, const void *data,
		  uint64_t length);
int softgpu_memory_fill(const struct softgpu_memory *memory, uint64_t address, uint64_t length,
			uint32_t pattern);
int softgpu_memory_copy(const struct softgpu_memory *memory, struct softgpu_side destination,
			struct softgpu_side source, uint64_t length);
/* One side is tiled, the other linear; see struct softgpu_paging_copy. */
int softgpu_memory_copy_tiled(const struct softgpu_memory *memory,
			      const struct softgpu_paging_copy *copy);

int softgpu_aperture_map(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			 uintptr_t host);
int softgpu_aperture_unmap(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			   uintptr_t dummy);
void softgpu_aperture_clear(struct softgpu_memory *memory);

#endif
