/* SPDX-License-Identifier: MIT */
/*
 * How the GPU accesses memory: translation of GPU addresses to host memory, and access through it.
 *
 * Owns the aperture's page table. Only the execution of MAP and UNMAP paging commands and resets
 * write it, not the building of these commands. So an address is valid from the time when the
 * engine executes the MAP. Functions return 0 for a bus fault; what was done before the fault stays
 * done, as with hardware.
 *
 * No lock: the scheduler orders paging and use on different nodes (SUB-03), a reset stops the
 * engines, and windows change only while the bus is held.
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
	int drops_content; /* copies, fills and windows decode addresses, but move no bytes */
	/* Host address of each page; 0: not mapped. Bit 0: read-only (the dummy page). */
	uintptr_t *aperture;
	const struct softgpu_memory *lead; /* memory of the link's lead; NULL: no link */
	struct softgpu_window *windows;    /* see window.h */

	/* changes only while the bus is held */
	uint32_t window_count;
};
#define SOFTGPU_PAGE_READ_ONLY ((uintptr_t)1)

enum softgpu_access { SOFTGPU_READ, SOFTGPU_WRITE };

/*
 * Returns the host address of `address`, or NULL: bus fault. *bytes: in, the bytes wanted, at least
 * 1; out, how many of them are contiguous.
 */
char *softgpu_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes,
		     enum softgpu_access access);

/* Whether an address that decode or translate returned is in this adapter's video memory. */
static inline int softgpu_is_video_memory(const struct softgpu_memory *memory, const char *host)
{
	return (uintptr_t)host - (uintptr_t)memory->vram < memory->vram_bytes;
}

int softgpu_read(const struct softgpu_memory *memory, uint64_t address, void *data,
		 uint64_t length);
int softgpu_write(const struct softgpu_memory *memory, uint64_t address, const void *data,
		  uint64_t length);
int softgpu_memory_fill(const struct softgpu_memory *memory, uint64_t address, uint64_t length,
			uint32_t pattern);
int softgpu_memory_copy(const struct softgpu_memory *memory, struct softgpu_side destination,
			struct softgpu_side source, uint64_t length);
/* One side is tiled, the other is linear; see struct softgpu_paging_copy. */
int softgpu_memory_copy_tiled(const struct softgpu_memory *memory,
			      const struct softgpu_paging_copy *copy);

int softgpu_aperture_map(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			 uintptr_t host);
int softgpu_aperture_unmap(struct softgpu_memory *memory, uint64_t first_page, uint64_t page_count,
			   uintptr_t dummy);
void softgpu_aperture_clear(struct softgpu_memory *memory);

#endif
