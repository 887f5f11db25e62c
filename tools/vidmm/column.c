/* SPDX-License-Identifier: MIT */
#include "column.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define DEFLATE_LEVEL  9
#define CAPACITY_FIRST ((size_t)4096)
#define VALUE_BYTES    10u /* a number of 64 bits at most */

static bool reserve(struct column *column)
{
	size_t capacity = column->capacity ? column->capacity * 2 : CAPACITY_FIRST;
	unsigned char *bytes;

	if (column->failed || column->capacity - column->count >= VALUE_BYTES)
		return !column->failed;
	bytes = realloc(column->bytes, capacity);
	if (!bytes) {
		column->failed = true;
		return false;
	}
	column->bytes = bytes;
	column->capacity = capacity;
	return true;
}

void column_put(struct column *column, uint64_t value)
{
	if (!reserve(column))
		return;
	column->rows++;
	for (; value >= 0x80; value >>= 7)
		column->bytes[column->count++] = (unsigned char)(value | 0x80);
	column->bytes[column->count++] = (unsigned char)value;
}

void column_put_signed(struct column *column, int64_t value)
{
	column_put(column, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void print_base64(FILE *file, const unsigned char *bytes, size_t count)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[4];

	for (size_t i = 0; i < count; i += 3) {
		size_t left = count - i;
		unsigned int word = (unsigned int)bytes[i] << 16;

		word |= left > 1 ? (unsigned int)bytes[i + 1] << 8 : 0;
		word |= left > 2 ? (unsigned int)bytes[i + 2] : 0;
		for (unsigned k = 0; k < 4; k++)
			text[k] = k <= left ? digits[word >> (18 - 6 * k) & 63] : '=';
		fwrite(text, 1, sizeof(text), file);
	}
}

bool column_print(FILE *file, const struct column *column)
{
	uLongf size = compressBound((uLong)column->count);
	unsigned char *packed = column->failed ? NULL : malloc(size);
	bool good = packed && compress2(packed, &size, column->bytes ? column->bytes : packed,
					(uLong)column->count, DEFLATE_LEVEL) == Z_OK;

	if (good)
		print_base64(file, packed, size);
	free(packed);
	return good;
}

void column_finish(struct column *column)
{
	free(column->bytes);
	*column = (struct column){0};
}
