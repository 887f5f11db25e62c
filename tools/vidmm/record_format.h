/* SPDX-License-Identifier: MIT */
/*
 * The format of a recording of events (docs/record-format.md). A file is a sequence of zstd frames,
 * each with its size and a checksum, so `zstd -d` accepts it, and a file that ends in the middle of
 * a frame is readable up to that frame. The content of a frame is a chunk: this head, and what it
 * says. All numbers are little-endian.
 */
#ifndef VIDMM_TOOLS_RECORD_FORMAT_H
#define VIDMM_TOOLS_RECORD_FORMAT_H

#include <stdint.h>

#define RECORD_VERSION     1u
#define RECORD_EVENTS_MAX  4096u               /* in a chunk */
#define RECORD_TEXT_MAX    1023u               /* bytes of a text, without its end */
#define RECORD_CHUNK_BYTES ((uint32_t)1 << 20) /* a longer chunk is invalid */

enum record_kind {
	/* The first chunk, no other: a JSON object of `bytes` bytes that describes the file. */
	RECORD_JSON = 1,
	/*
	 * `events` events in columns, each in the order of the events: time_ns and sequence (the
	 * difference from the event before, modulo 2^64; from 0 for the first), arg[0] to arg[3]
	 * (64 bits each), process, object, bytes of the text with its end (0: no text; 32 bits
	 * each), type, reason (16 bits each). Behind them the texts, `bytes` bytes.
	 */
	RECORD_EVENTS = 2
};

struct record_chunk {
	uint32_t kind, events, bytes, reserved;
};

/* Bytes of an event in all columns. */
#define RECORD_EVENT_BYTES (6 * sizeof(uint64_t) + 3 * sizeof(uint32_t) + 2 * sizeof(uint16_t))

#endif
