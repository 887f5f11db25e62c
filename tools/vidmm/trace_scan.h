/* SPDX-License-Identifier: MIT */
/*
 * trace_scan: converts numbers in text, at a few ns each. A recording consists mostly of
 * relocations, each of two or three short numbers, so this is the innermost loop of a replay.
 *
 * It classifies 64 bytes at a time into a bit mask of the bytes that are not digits. The fields are
 * the ranges between set bits. No byte is tested twice, and the conversion of one number does not
 * wait for the end of the previous one. A non-digit byte and TRACE_SCAN_SLACK more readable bytes
 * must follow the scanned text.
 */
#ifndef VIDMM_TOOLS_TRACE_SCAN_H
#define VIDMM_TOOLS_TRACE_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define TRACE_SCAN_SLACK 128u

struct trace_scan {
	const char *base;  /* the 64 bytes that `mask` describes */
	uint64_t mask;     /* bit n: base[n] is not a digit and was not passed yet */
	const char *field; /* start of the current field */
	const char *stop;  /* first byte after it that is not a digit */
};

static inline uint64_t trace_scan_mask(const char *p)
{
	uint64_t mask = 0;
	unsigned i;

#if defined(__SSE2__)
	/*
	 * Subtraction maps '0'..'9' to the ten smallest signed bytes: one signed comparison finds
	 * all other bytes.
	 */
	for (i = 0; i < 4; i++) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));

		x = _mm_sub_epi8(x, _mm_set1_epi8((char)('0' - 128)));
		x = _mm_cmpgt_epi8(x, _mm_set1_epi8(9 - 128));
		mask |= (uint64_t)(uint16_t)_mm_movemask_epi8(x) << (16 * i);
	}
#else
	for (i = 0; i < 64; i++)
		mask |= (uint64_t)((unsigned char)(p[i] - '0') > 9) << i;
#endif
	return mask;
}

/* Makes the text at P the current field. */
static inline void trace_scan_at(struct trace_scan *scan, const char *p)
{
	scan->base = p;
	scan->mask = trace_scan_mask(p);
	scan->field = scan->stop = p;
}

/* Advances `stop` to the next byte that is not a digit. */
static inline void trace_scan_stop(struct trace_scan *scan)
{
	while (__builtin_expect(scan->mask == 0, 0)) {
		scan->base += 64;
		scan->mask = trace_scan_mask(scan->base);
	}
	scan->stop = scan->base + __builtin_ctzll(scan->mask);
	scan->mask &= scan->mask - 1;
}

/* Advances to the field after the byte at `stop`. */
static inline void trace_scan_next(struct trace_scan *scan)
{
	scan->field = scan->stop + 1;
	trace_scan_stop(scan);
}

/*
 * Converts 1 to 8 digits at P by SIMD within a register: pairs, then groups of four, then eight (on
 * a little-endian machine).
 */
static inline uint32_t trace_scan_eight(const char *p, size_t digits)
{
	uint64_t x;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&x, p, sizeof(x));
	x = (x - 0x3030303030303030u) << (64 - 8 * digits);
	x = x * 10 + (x >> 8);
	return (uint32_t)(((x & 0x000000FF000000FFu) * 0x000F424000000064u +
			   ((x >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u) >>
			  32);
#else
	size_t i;

	for (x = 0, i = 0; i < digits; i++)
		x = x * 10 + (uint64_t)(p[i] - '0');
	return (uint32_t)x;
#endif
}

#define TRACE_SCAN_BAD UINT64_MAX

/* Converts any number of digits; TRACE_SCAN_BAD on overflow or without digits. */
uint64_t trace_scan_long(const char *p, size_t digits);

/* Returns the current field as a number; TRACE_SCAN_BAD if it has no digits or overflows. */
static inline uint64_t trace_scan_value(const struct trace_scan *scan)
{
	const unsigned char *p = (const unsigned char *)scan->field;
	size_t digits = (size_t)(scan->stop - scan->field);

	/* Relocations consist of short numbers. */
	if (digits == 1)
		return p[0] - (unsigned)'0';
	if (digits == 2)
		return p[0] * 10u + p[1] - '0' * 11u;
	if (__builtin_expect(digits - 1 < 8, 1))
		return trace_scan_eight(scan->field, digits);
	return trace_scan_long(scan->field, digits);
}

static inline bool trace_scan_u64(const struct trace_scan *scan, uint64_t *value)
{
	*value = trace_scan_value(scan);
	return *value != TRACE_SCAN_BAD;
}

static inline bool trace_scan_u32(const struct trace_scan *scan, uint32_t *value)
{
	uint64_t wide = trace_scan_value(scan);

	*value = (uint32_t)wide;
	return wide <= UINT32_MAX;
}

#endif
