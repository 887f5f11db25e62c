/* SPDX-License-Identifier: MIT */
/*
 * Windows: tiled surfaces in video memory that the CPU sees as linear bytes, through a swizzling
 * range.
 *
 * The CPU accesses video memory directly. So while a window is open, the surface's memory holds the
 * linear form, and the GPU's addresses are translated: an address inside a window means the byte
 * that the tiled form has there. Neither side has to know when the other accesses the surface
 * (SWZ-06, SWZ-21).
 *
 * Opening and closing convert in place, one row of tiles after the other. The table and the memory
 * behind it may only change while no thread reads through it (softgpu_bus_hold).
 */
#ifndef SOFTGPU_WINDOW_H
#define SOFTGPU_WINDOW_H

#include <stdint.h>

#include "softgpu_hw.h"

struct softgpu_memory;

struct softgpu_surface {
	uint64_t first, bytes; /* in video memory: whole pages, whole rows of tiles */
	enum softgpu_tile_mode mode;
	uint32_t stride_bytes;
};

struct softgpu_window {
	struct softgpu_surface surface;
	const void *owner; /* identifies the allocation; not used here */
	uint32_t uses;     /* number of ranges that show it */
};

/*
 * Returns the first window that ends after `address` of video memory; it may contain the address or
 * begin after it. NULL: none.
 */
struct softgpu_window *softgpu_window_at(const struct softgpu_memory *memory, uint64_t address);
/* Returns the bytes that the conversion needs besides the surface. */
uint64_t softgpu_window_scratch_bytes(const struct softgpu_surface *surface);
/*
 * Opens a window with one use, the caller's. There must be a free element in the table and no
 * overlap with another window.
 */
struct softgpu_window *softgpu_window_open(struct softgpu_memory *memory,
					   const struct softgpu_surface *surface, char *scratch);
void softgpu_window_close(struct softgpu_memory *memory, struct softgpu_window *window,
			  char *scratch);

/* As softgpu_decode, for an address of video memory while windows are open. */
char *softgpu_window_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes);
/*
 * Returns how many of `bytes` from `address` on are whole rows of tiles of one window (*window). 0:
 * no such row begins at `address`. Both forms have these rows at the same addresses.
 */
uint64_t softgpu_window_rows(const struct softgpu_memory *memory, uint64_t address, uint64_t bytes,
			     const struct softgpu_window **window);

#endif
