/* SPDX-License-Identifier: MIT */
/*
 * Windows: tiled surfaces of video memory that the CPU sees as linear bytes, through a swizzling range.
 *
 * The CPU sees video memory as it is, so for as long as a window is open the surface's memory holds the linear form, and
 * what changes is the GPU's view: an address inside a window means the byte that is there in the tiled form. Neither side
 * has to be told when the other one looks (SWZ-06, SWZ-21).
 *
 * Opening and closing convert in place, row of tiles by row of tiles. The table and the memory under it may only change
 * while nobody reads through it (softgpu_bus_hold).
 */
#ifndef SOFTGPU_WINDOW_H
#define SOFTGPU_WINDOW_H

#include <stdint.h>

#include "softgpu_hw.h"

struct softgpu_memory;

struct softgpu_surface {
	uint64_t first, bytes; /* in video memory: a whole page, whole rows of tiles */
	enum softgpu_tile_mode mode;
	uint32_t stride_bytes;
};

struct softgpu_window {
	struct softgpu_surface surface;
	const void *owner; /* whose surface it is; nothing is done with it here */
	uint32_t uses;     /* ranges that show it */
};

/* The first window that ends behind `address` of video memory, which may lie before it; NULL: none does. */
struct softgpu_window *softgpu_window_at(const struct softgpu_memory *memory, uint64_t address);
/* Bytes that conversion needs beside the surface. */
uint64_t softgpu_window_scratch_bytes(const struct softgpu_surface *surface);
/* There is room for it, and it overlaps no other. The first use is the caller's. */
struct softgpu_window *softgpu_window_open(struct softgpu_memory *memory,
					   const struct softgpu_surface *surface, char *scratch);
void softgpu_window_close(struct softgpu_memory *memory, struct softgpu_window *window,
			  char *scratch);

/* As softgpu_decode, for an address of video memory while there are windows. */
char *softgpu_window_decode(const struct softgpu_memory *memory, uint64_t address, uint64_t *bytes);
/*
 * How many of `bytes` from `address` on are whole rows of tiles of one window (*window); 0: `address` begins none. In both
 * forms they lie at the same place.
 */
uint64_t softgpu_window_rows(const struct softgpu_memory *memory, uint64_t address, uint64_t bytes,
			     const struct softgpu_window **window);

#endif
