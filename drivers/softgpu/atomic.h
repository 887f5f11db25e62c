/* SPDX-License-Identifier: MIT */
/*
 * Single words that one thread writes while another reads, outside any lock: memory that GPU and CPU signal each
 * other through, and flags. Acquire loads and release stores; on x64 plain moves with every compiler.
 */
#ifndef SOFTGPU_ATOMIC_H
#define SOFTGPU_ATOMIC_H

#include <stdint.h>

#if defined(__GNUC__)

static inline uint64_t softgpu_load(const volatile uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static inline void softgpu_store(volatile uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#else /* MSVC: volatile accesses have these semantics on x64 */

static inline uint64_t softgpu_load(const volatile uint64_t *word)
{
	return *word;
}
static inline void softgpu_store(volatile uint64_t *word, uint64_t value)
{
	*word = value;
}

#endif
#endif
