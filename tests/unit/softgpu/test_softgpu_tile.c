/* SPDX-License-Identifier: MIT */
/* Tile layouts, compared with a conversion byte by byte. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "../../../drivers/softgpu/copy.h"
#include "../../../drivers/softgpu/tile.h"

/* A second implementation of the layouts, written from the documentation. */
static uint64_t tiled_offset(enum softgpu_tile_mode mode, uint32_t stride, uint64_t x, uint64_t y)
{
	if (mode == SOFTGPU_TILE_X)
		return (y / 8 * (stride / 512) + x / 512) * 4096 + y % 8 * 512 + x % 512;
	return (y / 32 * (stride / 128) + x / 128) * 4096 + x % 128 / 16 * 512 + y % 32 * 16 +
	       x % 16;
}

static void tiling_maps_every_byte_once(void **state)
{
	const enum softgpu_tile_mode modes[] = {SOFTGPU_TILE_X, SOFTGPU_TILE_Y};
	const uint32_t stride = 1536;
	int m;

	(void)state;
	for (m = 0; m < 2; m++) {
		uint64_t x, y;

		for (y = 0; y < 64; y++)
			for (x = 0; x < stride; x++)
				assert_int_equal(softgpu_tile_linear_offset(
							 modes[m], stride,
							 tiled_offset(modes[m], stride, x, y)),
						 y * stride + x);
	}
}

static void convert_and_back(enum softgpu_tile_mode mode, uint32_t stride, uint64_t rows_of_tiles,
			     size_t shift)
{
	uint64_t length = softgpu_tile_row_bytes(mode, stride) * rows_of_tiles, at;
	char *linear = malloc(length + shift), *tiled = aligned_alloc(4096, length),
	     *back = malloc(length + shift);

	assert_non_null(linear);
	assert_non_null(tiled);
	assert_non_null(back);
	for (at = 0; at < length; at++)
		linear[shift + at] = (char)(at * 31 + at / 257);
	softgpu_tile_pack(mode, stride, tiled, linear + shift, length);
	for (at = 0; at < length; at++)
		if (tiled[tiled_offset(mode, stride, at % stride, at / stride)] !=
		    linear[shift + at])
			fail_msg("mode %d stride %u: byte %llu is elsewhere", mode, stride,
				 (unsigned long long)at);
	softgpu_tile_unpack(mode, stride, back + shift, tiled, length);
	assert_memory_equal(back + shift, linear + shift, length);
	free(linear);
	free(tiled);
	free(back);
}

static void small_surfaces_convert_both_ways(void **state)
{
	(void)state;
	convert_and_back(SOFTGPU_TILE_X, 512, 1, 0);
	convert_and_back(SOFTGPU_TILE_X, 2048, 3, 0);
	convert_and_back(SOFTGPU_TILE_Y, 128, 1, 0);
	convert_and_back(SOFTGPU_TILE_Y, 1152, 5, 0);
	convert_and_back(SOFTGPU_TILE_X, 1024, 2, 3);
	convert_and_back(SOFTGPU_TILE_Y, 256, 2, 5);
}

/* From 1 MiB on with stores that bypass the caches, unless the linear side is at an odd address. */
static void large_surfaces_convert_both_ways(void **state)
{
	(void)state;
	convert_and_back(SOFTGPU_TILE_X, 4096, 40, 0);
	convert_and_back(SOFTGPU_TILE_Y, 8192, 5, 0);
	convert_and_back(SOFTGPU_TILE_Y, 8320, 6, 16);
	convert_and_back(SOFTGPU_TILE_X, 4608, 33, 1);
	convert_and_back(SOFTGPU_TILE_Y, 8192, 5, 7);
}

static void copies_and_fills_are_exact_at_every_alignment(void **state)
{
	const size_t sizes[] = {0,
				1,
				63,
				64,
				65,
				4097,
				SOFTGPU_STREAM_BYTES - 1,
				SOFTGPU_STREAM_BYTES,
				SOFTGPU_STREAM_BYTES + 129};
	size_t room = SOFTGPU_STREAM_BYTES + 512, s, shift, i;
	unsigned char *from = malloc(room), *to = malloc(room);

	(void)state;
	assert_non_null(from);
	assert_non_null(to);
	for (i = 0; i < room; i++)
		from[i] = (unsigned char)(i * 13 + i / 255);
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (shift = 0; shift < 4; shift++) {
			unsigned char *at = to + 64 + shift * 5;

			memset(to, 0xCC, room);
			softgpu_copy(at, from + shift * 3, sizes[s]);
			assert_memory_equal(at, from + shift * 3, sizes[s]);
			assert_int_equal(at[-1], 0xCC);
			assert_int_equal(at[sizes[s]], 0xCC);
			softgpu_fill(at, 0x03020100, sizes[s], shift);
			for (i = 0; i < sizes[s]; i++)
				if (at[i] != ((i + shift) & 3))
					fail_msg("size %zu: byte %zu is %u", sizes[s], i, at[i]);
			assert_int_equal(at[-1], 0xCC);
			assert_int_equal(at[sizes[s]], 0xCC);
		}
	}
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiling_maps_every_byte_once),
		cmocka_unit_test(small_surfaces_convert_both_ways),
		cmocka_unit_test(large_surfaces_convert_both_ways),
		cmocka_unit_test(copies_and_fills_are_exact_at_every_alignment),
	};

	return cmocka_run_group_tests_name("softgpu_tile", tests, NULL, NULL);
}
