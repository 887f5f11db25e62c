/* SPDX-License-Identifier: MIT */
/*
 * Bulk copies and fills. No state, no locks; runs on engine threads.
 *
 * Paging moves more than the caches hold, and what it writes is not read soon. Stores that bypass
 * the caches save the read of each destination line. Below the threshold the C library is as fast
 * as the memory.
 */
#include "copy.h"

#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define SOFTGPU_STREAM 1
#else
#define SOFTGPU_STREAM 0
#endif

static uint32_t rotate_pattern(uint32_t pattern, size_t phase)
{
	unsigned bits = (unsigned)(phase & 3) * 8;

	return bits ? pattern >> bits | pattern << (32 - bits) : pattern;
}

static void fill_bytes(char *destination, uint32_t pattern, size_t length, size_t phase)
{
	size_t i;

	for (i = 0; i < length; i++)
		destination[i] = (char)(pattern >> ((phase + i) & 3) * 8);
}

#if SOFTGPU_STREAM

#define LINE           64u
/*
 * Far enough ahead to hide DRAM latency, near enough to stay in L1. Below 1 KiB the data arrives
 * late; above 4 KiB it is evicted before use.
 */
#define PREFETCH_AHEAD 1024u

static size_t to_line(const void *address)
{
	return (size_t)(-(uintptr_t)address & (LINE - 1));
}

static void stream_copy(char *destination, const char *source, size_t length)
{
	size_t head = to_line(destination);
	size_t i;

	memcpy(destination, source, head);
	destination += head;
	source += head;
	length -= head;
	for (; length >= LINE; length -= LINE, destination += LINE, source += LINE) {
		_mm_prefetch(source + PREFETCH_AHEAD, _MM_HINT_T0);
		for (i = 0; i < LINE; i += 16) {
			__m128i data = _mm_loadu_si128((const __m128i *)(const void *)(source + i));

			_mm_stream_si128((__m128i *)(void *)(destination + i), data);
		}
	}
	_mm_sfence();
	memcpy(destination, source, length);
}

static void stream_fill(char *destination, uint32_t pattern, size_t length, size_t phase)
{
	size_t head = to_line(destination);
	__m128i data;

	fill_bytes(destination, pattern, head, phase);
	phase += head;
	destination += head;
	length -= head;
	data = _mm_set1_epi32((int)rotate_pattern(pattern, phase));
	for (; length >= LINE; length -= LINE, destination += LINE, phase += LINE) {
		_mm_stream_si128((__m128i *)(void *)(destination + 0), data);
		_mm_stream_si128((__m128i *)(void *)(destination + 16), data);
		_mm_stream_si128((__m128i *)(void *)(destination + 32), data);
		_mm_stream_si128((__m128i *)(void *)(destination + 48), data);
	}
	_mm_sfence();
	fill_bytes(destination, pattern, length, phase);
}

#else

static void stream_copy(char *destination, const char *source, size_t length)
{
	memcpy(destination, source, length);
}

#endif

static void cached_fill(char *destination, uint32_t pattern, size_t length, size_t phase)
{
	uint32_t word = rotate_pattern(pattern, phase);
	size_t i;

	if (word == (word & 0xFF) * 0x01010101u) {
		memset(destination, (int)(word & 0xFF), length);
		return;
	}
	for (i = 0; i + 4 <= length; i += 4)
		memcpy(destination + i, &word, 4);
	fill_bytes(destination + i, pattern, length - i, phase + i);
}

void softgpu_copy(void *destination, const void *source, size_t length)
{
	if (length >= SOFTGPU_STREAM_BYTES)
		stream_copy(destination, source, length);
	else
		memcpy(destination, source, length);
}

void softgpu_fill(void *destination, uint32_t pattern, size_t length, size_t phase)
{
#if SOFTGPU_STREAM
	if (length >= SOFTGPU_STREAM_BYTES) {
		stream_fill(destination, pattern, length, phase);
		return;
	}
#endif
	cached_fill(destination, pattern, length, phase);
}
