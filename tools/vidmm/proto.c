/* SPDX-License-Identifier: MIT */
#include "proto.h"

#include <stdlib.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void append(struct proto *message, const void *bytes, size_t count)
{
	size_t capacity = message->capacity ? message->capacity : 256;

	while (capacity - message->count < count)
		capacity *= 2;
	if (capacity != message->capacity) {
		unsigned char *more = realloc(message->bytes, capacity);

		message->failed = message->failed || !more;
		if (!more)
			return;
		message->bytes = more;
		message->capacity = capacity;
	}
	memcpy(message->bytes + message->count, bytes, count);
	message->count += count;
}

static void append_varint(struct proto *message, uint64_t value)
{
	unsigned char bytes[10];
	size_t count = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[count++] = (unsigned char)(value | 0x80);
	bytes[count++] = (unsigned char)value;
	append(message, bytes, count);
}

static void append_tag(struct proto *message, uint32_t field, enum wire_type type)
{
	append_varint(message, (uint64_t)field << 3 | (uint64_t)type);
}

static void append_bytes(struct proto *message, uint32_t field, const void *bytes, size_t count)
{
	append_tag(message, field, WIRE_BYTES);
	append_varint(message, count);
	append(message, bytes, count);
}

void proto_number(struct proto *message, uint32_t field, uint64_t value)
{
	append_tag(message, field, WIRE_VARINT);
	append_varint(message, value);
}

void proto_fixed64(struct proto *message, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	append_tag(message, field, WIRE_FIXED64);
	append(message, bytes, sizeof(bytes));
}

void proto_text(struct proto *message, uint32_t field, const char *text)
{
	append_bytes(message, field, text, strlen(text));
}

void proto_message(struct proto *message, uint32_t field, struct proto *inner)
{
	append_bytes(message, field, inner->bytes ? inner->bytes : (const unsigned char *)"",
		     inner->count);
	message->failed = message->failed || inner->failed;
	proto_clear(inner);
}

void proto_clear(struct proto *message)
{
	message->count = 0;
}

void proto_finish(struct proto *message)
{
	free(message->bytes);
	*message = (struct proto){0};
}
