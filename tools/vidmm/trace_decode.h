/* SPDX-License-Identifier: MIT */
/*
 * trace_decode: the text of one file or memory range, decompressed if it is a zstd stream. Used by
 * one thread at a time.
 */
#ifndef VIDMM_TOOLS_TRACE_DECODE_H
#define VIDMM_TOOLS_TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#define TRACE_DECODE_INPUT_BYTES ((size_t)128 << 10)

enum trace_decode_form { TRACE_DECODE_UNKNOWN, TRACE_DECODE_PLAIN, TRACE_DECODE_ZSTD };

struct trace_decode {
	int fd; /* -1: not open, -2: reading from memory */
	bool owns_fd;
	enum trace_decode_form form;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer input;
	char *input_bytes; /* NULL when reading from memory */
	bool input_ended;
	bool frame_open; /* a zstd frame has begun and not ended */
	bool may_hold;   /* zstd may return more output without more input */
	bool bad_data;
	uint64_t read_bytes; /* of the file or memory range, including those in `input` */
	uint64_t size;       /* 0: unknown */
	char why[160];
};

/* Returns false when out of memory. A file that cannot be opened is an error of the first read. */
bool trace_decode_init_file(struct trace_decode *decode, const char *path);
bool trace_decode_init_memory(struct trace_decode *decode, const void *data, size_t size);
void trace_decode_finish(struct trace_decode *decode);
/*
 * Reads up to SIZE bytes of text. Returns their number, 0 at the end, or -1: `why` and bad_data say
 * why.
 */
long trace_decode_read(struct trace_decode *decode, char *buffer, size_t size);
/* Returns how many bytes of the file or memory range the text so far was made of. */
uint64_t trace_decode_position(const struct trace_decode *decode);

#endif
