/* SPDX-License-Identifier: MIT */
/* proto: messages in the wire format of Protocol Buffers, appended field by field. */
#ifndef VIDMM_TOOLS_PROTO_H
#define VIDMM_TOOLS_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: an empty message. */
struct proto {
	unsigned char *bytes;
	size_t count, capacity;
	bool failed; /* out of memory: fields are missing */
};

void proto_number(struct proto *message, uint32_t field, uint64_t value);
void proto_fixed64(struct proto *message, uint32_t field, uint64_t value);
void proto_text(struct proto *message, uint32_t field, const char *text);
/* Appends a message as a field, and empties it. */
void proto_message(struct proto *message, uint32_t field, struct proto *inner);
void proto_clear(struct proto *message);
void proto_finish(struct proto *message);

#endif
