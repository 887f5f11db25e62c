/* SPDX-License-Identifier: MIT */
/*
 * Conversion between linear and tiled surfaces. No state; runs on engine threads.
 *
 * The Y form is converted in blocks of 4 rows x 64 bytes. On the linear side each cache line is
 * then accessed once; one column at a time would reload lines, because a power-of-two stride maps
 * all rows to the same cache set. On the tiled side each of the 4 columns gets one full line, which
 * non-temporal stores need.
 */
#include "tile.h"

#include <string.h>

#include "copy.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define SOFTGPU_STREAM 1
#else
#define SOFTGPU_STREAM 0
#endif

#define TILE_BYTES     4096u
#define Y_COLUMN       16u /* width in bytes */
#define Y_COLUMN_BYTES 512u
#define Y_WIDTH        128u
#define Y_ROWS         32u
#define X_WIDTH        512u
#define X_ROWS         8u
#define BLOCK_ROWS     4u
#define BLOCK_COLUMNS  4u
#define TILES_AT_ONCE  8u

uint64_t softgpu_tile_linear_offset(enum softgpu_tile_mode mode, uint32_t stride_bytes,
				    uint64_t tiled_offset)
{
	uint64_t row_bytes = softgpu_tile_row_bytes(mode, stride_bytes);
	uint64_t tile_row = tiled_offset / row_bytes;
	uint64_t tile = tiled_offset % row_bytes / TILE_BYTES;
	uint32_t in_tile = (uint32_t)(tiled_offset % TILE_BYTES);
	uint32_t x, y;

	if (mode == SOFTGPU_TILE_X) {
		x = in_tile % X_WIDTH;
		y = in_tile / X_WIDTH;
	} else {
		x = in_tile / Y_COLUMN_BYTES * Y_COLUMN + in_tile % Y_COLUMN;
		y = in_tile % Y_COLUMN_BYTES / Y_COLUMN;
	}
	return tile_row * row_bytes + (uint64_t)y * stride_bytes + tile * softgpu_tile_width(mode) +
	       x;
}

uint64_t softgpu_tile_tiled_offset(enum softgpu_tile_mode mode, uint32_t stride_bytes,
				   uint64_t linear_offset)
{
	uint64_t row_bytes = softgpu_tile_row_bytes(mode, stride_bytes);
	uint64_t tile_row = linear_offset / row_bytes;
	uint64_t y = linear_offset % row_bytes / stride_bytes;
	uint64_t across = linear_offset % stride_bytes;
	uint64_t tile = across / softgpu_tile_width(mode), x = across % softgpu_tile_width(mode);
	uint64_t in_tile;

	if (mode == SOFTGPU_TILE_X)
		in_tile = y * X_WIDTH + x;
	else
		in_tile = x / Y_COLUMN * Y_COLUMN_BYTES + y * Y_COLUMN + x % Y_COLUMN;
	return tile_row * row_bytes + tile * TILE_BYTES + in_tile;
}

#if SOFTGPU_STREAM

static inline void move16(char *destination, const char *source, int stream)
{
	__m128i data = _mm_loadu_si128((const __m128i *)(const void *)source);

	if (stream)
		_mm_stream_si128((__m128i *)(void *)destination, data);
	else
		_mm_storeu_si128((__m128i *)(void *)destination, data);
}

/*
 * Transposes a 4 x 4 block of 16-byte elements: reads four lines of 64 bytes, `in` bytes apart, and
 * writes four lines, `out` bytes apart. All loads come before the first store. Otherwise, with
 * addresses a power of two apart, a load would wait for a store that only seems to alias it.
 */
static inline void transpose(char *destination, size_t out, const char *source, size_t in)
{
	__m128i data[BLOCK_ROWS][BLOCK_COLUMNS];
	size_t i, j;

	for (i = 0; i < BLOCK_ROWS; i++)
		for (j = 0; j < BLOCK_COLUMNS; j++)
			data[i][j] = _mm_loadu_si128(
				(const __m128i *)(const void *)(source + i * in + j * Y_COLUMN));
	for (j = 0; j < BLOCK_COLUMNS; j++)
		for (i = 0; i < BLOCK_ROWS; i++)
			_mm_storeu_si128((__m128i *)(void *)(destination + j * out + i * Y_COLUMN),
					 data[i][j]);
}

static inline void prefetch(const char *address)
{
	_mm_prefetch(address, _MM_HINT_T0);
}

static inline void store_fence(int stream)
{
	if (stream)
		_mm_sfence();
}

#else

static inline void move16(char *destination, const char *source, int stream)
{
	(void)stream;
	memcpy(destination, source, 16);
}

static inline void transpose(char *destination, size_t out, const char *source, size_t in)
{
	size_t i, j;

	for (i = 0; i < BLOCK_ROWS; i++)
		for (j = 0; j < BLOCK_COLUMNS; j++)
			memcpy(destination + j * out + i * Y_COLUMN, source + i * in + j * Y_COLUMN,
			       Y_COLUMN);
}

static inline void prefetch(const char *address)
{
	(void)address;
}

static inline void store_fence(int stream)
{
	(void)stream;
}

#endif

/* Converts one Y tile with non-temporal stores. */
static inline void y_pack(char *tile, const char *linear, size_t stride)
{
	size_t half, y, column, row;

	for (half = 0; half < Y_WIDTH; half += 64) {
		for (y = 0; y < Y_ROWS; y += BLOCK_ROWS) {
			const char *in = linear + y * stride + half;
			char *out = tile + half / Y_COLUMN * Y_COLUMN_BYTES + y * Y_COLUMN;

			for (row = 0; row < BLOCK_ROWS; row++)
				prefetch(in + row * stride + Y_WIDTH);
			for (column = 0; column < BLOCK_COLUMNS; column++)
				for (row = 0; row < BLOCK_ROWS; row++)
					move16(out + column * Y_COLUMN_BYTES + row * Y_COLUMN,
					       in + row * stride + column * Y_COLUMN, 1);
		}
	}
}

/*
 * Converts `count` adjacent tiles with non-temporal stores, so that lines next to each other are
 * written one after the other.
 */
static inline void y_unpack(char *linear, const char *tiles, size_t stride, size_t count)
{
	size_t line, y, column;

	for (y = 0; y < Y_ROWS; y++) {
		for (line = 0; line < count * Y_WIDTH; line += 64) {
			const char *in = tiles + line / Y_COLUMN * Y_COLUMN_BYTES + y * Y_COLUMN;
			char *out = linear + y * stride + line;

			for (column = 0; column < BLOCK_COLUMNS; column++)
				move16(out + column * Y_COLUMN, in + column * Y_COLUMN_BYTES, 1);
			/* One line of the next tiles for each line. */
			prefetch(tiles + count * TILE_BYTES + y * count * Y_WIDTH + line);
		}
	}
}

/* Converts one Y tile that fits the caches, and reads pairs of lines next to each other. */
static void y_pack_cached(char *tile, const char *linear, size_t stride)
{
	size_t half, y;

	for (y = 0; y < Y_ROWS; y += BLOCK_ROWS)
		for (half = 0; half < Y_WIDTH; half += 64)
			transpose(tile + half / Y_COLUMN * Y_COLUMN_BYTES + y * Y_COLUMN,
				  Y_COLUMN_BYTES, linear + y * stride + half, stride);
}

/* Converts `count` adjacent tiles, so that consecutive lines are written one after the other. */
static void y_unpack_cached(char *linear, const char *tiles, size_t stride, size_t count)
{
	size_t line, y;

	for (y = 0; y < Y_ROWS; y += BLOCK_ROWS)
		for (line = 0; line < count * Y_WIDTH; line += 64)
			transpose(linear + y * stride + line, stride,
				  tiles + line / Y_COLUMN * Y_COLUMN_BYTES + y * Y_COLUMN,
				  Y_COLUMN_BYTES);
}

/* `stream` is constant in every call, so that each caller gets its own loop. */
static inline void x_run(char *destination, const char *source, int stream)
{
	size_t i;

	for (i = 0; i < X_WIDTH; i += 16)
		move16(destination + i, source + i, stream);
}

static inline void x_pack(char *tile, const char *linear, size_t stride, int stream)
{
	size_t y, line;

	for (y = 0; y < X_ROWS; y++) {
		for (line = 0; line < X_WIDTH; line += 64)
			prefetch(linear + y * stride + X_WIDTH + line);
		x_run(tile + y * X_WIDTH, linear + y * stride, stream);
	}
}

static inline void x_unpack(char *linear, const char *tile, size_t stride, int stream)
{
	size_t y, line;

	for (y = 0; y < X_ROWS; y++) {
		for (line = 0; line < X_WIDTH; line += 64)
			prefetch(tile + (y + 2) * X_WIDTH + line);
		x_run(linear + y * stride, tile + y * X_WIDTH, stream);
	}
}

/* Non-temporal stores need aligned lines; an unaligned surface is converted through the caches. */
static int can_stream(const void *destination, uint32_t stride_bytes, uint64_t length)
{
	return SOFTGPU_STREAM && length >= SOFTGPU_STREAM_BYTES &&
	       ((uintptr_t)destination | stride_bytes) % 16 == 0;
}

void softgpu_tile_pack(enum softgpu_tile_mode mode, uint32_t stride_bytes, char *tiled,
		       const char *linear, uint64_t length)
{
	uint64_t row_bytes = softgpu_tile_row_bytes(mode, stride_bytes);
	uint32_t width = softgpu_tile_width(mode);
	int stream = can_stream(tiled, stride_bytes, length);
	uint64_t row, x;

	for (row = 0; row < length; row += row_bytes) {
		for (x = 0; x < stride_bytes; x += width, tiled += TILE_BYTES) {
			const char *in = linear + row + x;

			if (mode == SOFTGPU_TILE_X && stream)
				x_pack(tiled, in, stride_bytes, 1);
			else if (mode == SOFTGPU_TILE_X)
				x_pack(tiled, in, stride_bytes, 0);
			else if (stream)
				y_pack(tiled, in, stride_bytes);
			else
				y_pack_cached(tiled, in, stride_bytes);
		}
	}
	store_fence(stream);
}

static void y_unpack_all(char *linear, const char *tiled, size_t stride, uint64_t length,
			 int stream)
{
	size_t tiles = stride / Y_WIDTH, x, count;
	uint64_t row;

	for (row = 0; row < length; row += stride * Y_ROWS)
		for (x = 0; x < tiles; x += count, tiled += count * TILE_BYTES) {
			count = tiles - x < TILES_AT_ONCE ? tiles - x : TILES_AT_ONCE;
			if (stream)
				y_unpack(linear + row + x * Y_WIDTH, tiled, stride, count);
			else
				y_unpack_cached(linear + row + x * Y_WIDTH, tiled, stride, count);
		}
}

void softgpu_tile_unpack(enum softgpu_tile_mode mode, uint32_t stride_bytes, char *linear,
			 const char *tiled, uint64_t length)
{
	uint64_t row_bytes = softgpu_tile_row_bytes(mode, stride_bytes);
	uint32_t width = softgpu_tile_width(mode);
	int stream = can_stream(linear, stride_bytes, length);
	uint64_t row, x;

	if (mode == SOFTGPU_TILE_Y) {
		y_unpack_all(linear, tiled, stride_bytes, length, stream);
		store_fence(stream);
		return;
	}
	for (row = 0; row < length; row += row_bytes) {
		for (x = 0; x < stride_bytes; x += width, tiled += TILE_BYTES) {
			char *out = linear + row + x;

			if (stream)
				x_unpack(out, tiled, stride_bytes, 1);
			else
				x_unpack(out, tiled, stride_bytes, 0);
		}
	}
	store_fence(stream);
}
