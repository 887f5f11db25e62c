/* SPDX-License-Identifier: MIT */
/*
 * CPU caches: writing back and invalidating the lines of a range. The processor's abilities are
 * determined once per world, because CPUID is slow in a virtual machine.
 */
#include "os/os_internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* Bits of CPUID leaf 1 (EDX) and leaf 7 (EBX). */
enum { HAS_CLFLUSH = 1 << 19, HAS_CLFLUSHOPT = 1 << 23 };

struct vmm_os_cache vmm_os_cache_find(void)
{
	struct vmm_os_cache cache = {0};
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(d & HAS_CLFLUSH))
		return cache;
	cache.line_bytes = (b >> 8 & 0xFF) * 8;
	cache.unordered = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & HAS_CLFLUSHOPT);
	return cache;
}

/*
 * CLFLUSHOPT flushes are not ordered with one another; the caller's fence at the end waits for
 * them.
 */
__attribute__((target("clflushopt"))) static void flush_unordered(const char *first,
								  const char *end, uint32_t step)
{
	for (const char *line = first; line < end; line += step)
		_mm_clflushopt((void *)(uintptr_t)line);
}

static void flush_ordered(const char *first, const char *end, uint32_t step)
{
	for (const char *line = first; line < end; line += step)
		_mm_clflush(line);
}

uint64_t vmm_os_cache_flush(const struct vmm_os *os, const void *address, uint64_t length)
{
	const struct vmm_os_cache *cache = &os->cache;
	const char *end = (const char *)address + length, *first;

	if (!cache->line_bytes || !length)
		return 0;
	first = (const char *)((uintptr_t)address & ~(uintptr_t)(cache->line_bytes - 1));
	_mm_mfence(); /* orders the flushes after the preceding stores */
	if (cache->unordered)
		flush_unordered(first, end, cache->line_bytes);
	else
		flush_ordered(first, end, cache->line_bytes);
	_mm_mfence();
	return ((uint64_t)(end - first) + cache->line_bytes - 1) / cache->line_bytes;
}
#else
struct vmm_os_cache vmm_os_cache_find(void)
{
	return (struct vmm_os_cache){0};
}

uint64_t vmm_os_cache_flush(const struct vmm_os *os, const void *address, uint64_t length)
{
	(void)os, (void)address, (void)length;
	return 0;
}
#endif
