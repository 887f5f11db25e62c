/* SPDX-License-Identifier: MIT */
/* Writes PNG files: a header, one IDAT chunk that zlib compresses, and an end chunk. */
#include "png.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SIDE_MAX      65535u
#define CHANNELS      3u
#define TRUE_COLOR    2
#define DEFLATE_LEVEL 6

static void put32(unsigned char *to, uint32_t value)
{
	to[0] = (unsigned char)(value >> 24);
	to[1] = (unsigned char)(value >> 16);
	to[2] = (unsigned char)(value >> 8);
	to[3] = (unsigned char)value;
}

/* Writes a chunk: length, type, data, and the CRC-32 of type and data. */
static bool put_chunk(FILE *file, const char type[4], const unsigned char *data, uint32_t bytes)
{
	unsigned char head[8], tail[4];
	uLong crc;

	put32(head, bytes);
	memcpy(head + 4, type, 4);
	crc = crc32(crc32(0, NULL, 0), head + 4, 4);
	if (bytes)
		crc = crc32(crc, data, bytes);
	put32(tail, (uint32_t)crc);
	return fwrite(head, sizeof(head), 1, file) == 1 &&
	       (!bytes || fwrite(data, bytes, 1, file) == 1) &&
	       fwrite(tail, sizeof(tail), 1, file) == 1;
}

/*
 * Returns the rows as PNG stores them: a filter byte (0, none), then red, green and blue of each
 * pixel.
 */
static unsigned char *rows_of(const void *pixels, uint32_t width, uint32_t height,
			      uint32_t pitch_bytes, size_t row_bytes)
{
	unsigned char *rows = calloc(height, row_bytes);

	for (uint32_t y = 0; rows && y < height; y++) {
		const unsigned char *from = (const unsigned char *)pixels + (size_t)y * pitch_bytes;
		unsigned char *to = rows + y * row_bytes + 1;

		for (uint32_t x = 0; x < width; x++, from += 4) {
			*to++ = from[2];
			*to++ = from[1];
			*to++ = from[0];
		}
	}
	return rows;
}

static bool put_pixels(FILE *file, const unsigned char *rows, size_t bytes)
{
	uLongf packed_bytes = compressBound(bytes);
	unsigned char *packed = malloc(packed_bytes);
	bool done = packed &&
		    compress2(packed, &packed_bytes, rows, bytes, DEFLATE_LEVEL) == Z_OK &&
		    packed_bytes <= INT32_MAX &&
		    put_chunk(file, "IDAT", packed, (uint32_t)packed_bytes);

	free(packed);
	return done;
}

bool png_write(FILE *file, const void *pixels, uint32_t width, uint32_t height,
	       uint32_t pitch_bytes)
{
	static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
	unsigned char header[13] = {[8] = 8, [9] = TRUE_COLOR};
	size_t row_bytes = (size_t)width * CHANNELS + 1;

	if (!width || !height || width > SIDE_MAX || height > SIDE_MAX) {
		errno = EINVAL;
		return false;
	}
	put32(header, width);
	put32(header + 4, height);
	unsigned char *rows = rows_of(pixels, width, height, pitch_bytes, row_bytes);
	bool done = rows && fwrite(signature, sizeof(signature), 1, file) == 1 &&
		    put_chunk(file, "IHDR", header, sizeof(header)) &&
		    put_pixels(file, rows, row_bytes * height) && put_chunk(file, "IEND", NULL, 0);

	free(rows);
	return done;
}
