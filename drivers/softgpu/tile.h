/* SPDX-License-Identifier: MIT */
/*
 * Layouts of tiled surfaces. Pure functions on host memory.
 *
 * A surface is `stride_bytes` wide and consists of tiles of 4 KiB, stored one row of tiles after
 * the other.
 * - X: 512 bytes x 8 rows, one row after the other.
 * - Y: 128 bytes x 32 rows, in 8 columns of 16 bytes; the 32 rows of a column one after the other.
 *   One row of tiles holds the same bytes in both forms, so it can be converted alone.
 */
#ifndef SOFTGPU_TILE_H
#define SOFTGPU_TILE_H

#include <stddef.h>
#include <stdint.h>

#include "softgpu_hw.h"

static inline uint32_t softgpu_tile_width(enum softgpu_tile_mode mode)
{
	return mode == SOFTGPU_TILE_X ? 512 : 128;
}

static inline uint32_t softgpu_tile_height(enum softgpu_tile_mode mode)
{
	return mode == SOFTGPU_TILE_X ? 8 : 32;
}

/* Bytes that are contiguous in both forms, aligned to their size in the tiled one. */
static inline uint32_t softgpu_tile_run(enum softgpu_tile_mode mode)
{
	return mode == SOFTGPU_TILE_X ? 512 : 16;
}

static inline uint64_t softgpu_tile_row_bytes(enum softgpu_tile_mode mode, uint32_t stride_bytes)
{
	return (uint64_t)stride_bytes * softgpu_tile_height(mode);
}

/* Returns the offset in the linear form of a byte of the tiled form. */
uint64_t softgpu_tile_linear_offset(enum softgpu_tile_mode mode, uint32_t stride_bytes,
				    uint64_t tiled_offset);

/* The reverse. Up to softgpu_tile_run bytes are contiguous there. */
uint64_t softgpu_tile_tiled_offset(enum softgpu_tile_mode mode, uint32_t stride_bytes,
				   uint64_t linear_offset);

/*
 * Convert whole rows of tiles; both forms are contiguous in memory. `tiled` is aligned to a page.
 */
void softgpu_tile_pack(enum softgpu_tile_mode mode, uint32_t stride_bytes, char *tiled,
		       const char *linear, uint64_t length);
void softgpu_tile_unpack(enum softgpu_tile_mode mode, uint32_t stride_bytes, char *linear,
			 const char *tiled, uint64_t length);

#endif
