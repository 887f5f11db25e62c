/* SPDX-License-Identifier: MIT */
/*
 * Reads bytes and returns plain text. The first four bytes decide whether a stream is compressed,
 * not its name, so that a pipe works as well. zstd refuses a frame that needs more than its default
 * maximum window of 128 MiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_decode.h"

static bool is_zstd(const char *bytes, size_t size)
{
	uint32_t magic;

	if (size < sizeof(magic))
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

bool trace_decode_init_file(struct trace_decode *decode, const char *path)
{
	struct stat st;

	*decode = (struct trace_decode){.fd = -1};
	decode->input_bytes = malloc(TRACE_DECODE_INPUT_BYTES);
	if (!decode->input_bytes)
		return false;
	decode->input.src = decode->input_bytes;
	if (strcmp(path, "-") == 0) {
		decode->fd = STDIN_FILENO;
	} else {
		decode->fd = open(path, O_RDONLY | O_CLOEXEC);
		decode->owns_fd = decode->fd >= 0;
	}
	if (decode->fd < 0)
		snprintf(decode->why, sizeof(decode->why), "cannot be opened: %s", strerror(errno));
	else if (fstat(decode->fd, &st) == 0 && S_ISREG(st.st_mode))
		decode->size = (uint64_t)st.st_size;
	return true;
}

bool trace_decode_init_memory(struct trace_decode *decode, const void *data, size_t size)
{
	*decode = (struct trace_decode){.fd = -2, .input_ended = true, .size = size};
	decode->input = (ZSTD_inBuffer){data, size, 0};
	decode->read_bytes = size;
	return true;
}

void trace_decode_finish(struct trace_decode *decode)
{
	if (decode->owns_fd)
		close(decode->fd);
	ZSTD_freeDCtx(decode->zstd);
	free(decode->input_bytes);
}

/* Returns the bytes read, 0 at the end, -1 on failure. */
static long read_input(struct trace_decode *decode, char *buffer, size_t size)
{
	ssize_t got;

	if (decode->input_ended)
		return 0;
	do {
		got = read(decode->fd, buffer, size);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		snprintf(decode->why, sizeof(decode->why), "cannot be read: %s", strerror(errno));
		return -1;
	}
	decode->input_ended = got == 0;
	decode->read_bytes += (uint64_t)got;
	return got;
}

/* Reads more input behind the unconsumed part of the buffer. */
static bool refill(struct trace_decode *decode)
{
	size_t left = decode->input.size - decode->input.pos;
	long got;

	if (decode->input_ended)
		return true;
	memmove(decode->input_bytes, decode->input_bytes + decode->input.pos, left);
	decode->input.pos = 0;
	decode->input.size = left;
	got = read_input(decode, decode->input_bytes + left, TRACE_DECODE_INPUT_BYTES - left);
	if (got < 0)
		return false;
	decode->input.size += (size_t)got;
	return true;
}

static bool find_form(struct trace_decode *decode)
{
	while (decode->input.size - decode->input.pos < 4 && !decode->input_ended) {
		if (!refill(decode))
			return false;
	}
	decode->form = TRACE_DECODE_PLAIN;
	if (!is_zstd((const char *)decode->input.src + decode->input.pos,
		     decode->input.size - decode->input.pos))
		return true;
	decode->form = TRACE_DECODE_ZSTD;
	decode->zstd = ZSTD_createDCtx();
	if (!decode->zstd)
		snprintf(decode->why, sizeof(decode->why), "out of memory");
	return decode->zstd != NULL;
}

static long read_plain(struct trace_decode *decode, char *buffer, size_t size)
{
	size_t left = decode->input.size - decode->input.pos;

	if (left == 0)
		return read_input(decode, buffer, size);
	if (size > left)
		size = left;
	memcpy(buffer, (const char *)decode->input.src + decode->input.pos, size);
	decode->input.pos += size;
	return (long)size;
}

static long bad_frame(struct trace_decode *decode, const char *what)
{
	snprintf(decode->why, sizeof(decode->why), "broken zstd stream: %s", what);
	decode->bad_data = true;
	return -1;
}

static long read_zstd(struct trace_decode *decode, char *buffer, size_t size)
{
	ZSTD_outBuffer out = {buffer, size, 0};

	while (out.pos < out.size) {
		size_t in_before, out_before = out.pos, rest;

		if (decode->input.pos == decode->input.size && !decode->may_hold) {
			if (!refill(decode))
				return -1;
			if (decode->input.pos == decode->input.size)
				break;
		}
		in_before = decode->input.pos;
		rest = ZSTD_decompressStream(decode->zstd, &out, &decode->input);
		if (ZSTD_isError(rest))
			return bad_frame(decode, ZSTD_getErrorName(rest));
		/*
		 * At the end of a frame and without input, zstd returns the size of the next
		 * frame's header instead of 0: ignore that.
		 */
		if (decode->input.pos != in_before || out.pos != out_before)
			decode->frame_open = rest != 0;
		decode->may_hold = out.pos == out.size;
	}
	if (out.pos == 0 && decode->frame_open)
		return bad_frame(decode, "cut short");
	return (long)out.pos;
}

long trace_decode_read(struct trace_decode *decode, char *buffer, size_t size)
{
	if (decode->why[0] != '\0')
		return -1;
	if (decode->form == TRACE_DECODE_UNKNOWN && !find_form(decode))
		return -1;
	return decode->form == TRACE_DECODE_PLAIN ? read_plain(decode, buffer, size)
						  : read_zstd(decode, buffer, size);
}

uint64_t trace_decode_position(const struct trace_decode *decode)
{
	return decode->read_bytes - (decode->input.size - decode->input.pos);
}
