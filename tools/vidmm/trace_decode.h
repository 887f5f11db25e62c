/* SPDX-License-Identifier: MIT */
/* trace_decode: the bytes of one file or memory range, decompressed when they are a zstd stream. One thread at a time. */
#ifndef VIDMM_TOOLS_TRACE_DECODE_H
#define VIDMM_TOOLS_TRACE_DECODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zstd.h>

#define TRACE_DECODE_INPUT_BYTES ((size_t)128 << 10)

enum trace_decode_form { TRACE_DECODE_UNKNOWN, TRACE_DECODE_PLAIN, TRACE_DECODE_ZSTD };

struct trace_decode {
	int fd; /* -1: none, -2: memory only */
	bool owns_fd;
	enum trace_decode_form form;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer input;
	char *input_bytes; /* NULL when reading memory */
	bool input_ended;
	bool frame_open; /* a zstd frame has begun and not ended */
	bool may_hold;   /* zstd may give more without more input */
	bool bad_data;
	_Atomic uint64_t consumed;
	uint64_t size; /* 0: unknown */
	char why[160];
};

/* A file that cannot be opened is reported by the first read. False when out of memory. */
bool trace_decode_init_file(struct trace_decode *decode, const char *path);
bool trace_decode_init_memory(struct trace_decode *decode, const void *data, size_t size);
void trace_decode_finish(struct trace_decode *decode);
/* Fills the buffer as far as there is something; 0 at the end; -1: see why and bad_data. */
long trace_decode_read(struct trace_decode *decode, char *buffer, size_t size);

#endif
