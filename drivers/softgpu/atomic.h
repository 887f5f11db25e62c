/* SPDX-License-Identifier: MIT */
/*
 * Single words that one thread writes while another reads, outside any lock: memory through which GPU and CPU signal
 * each other (load, store: acquire and release), user memory that is read exactly once (read_once: no order), and the ring of an
 * engine (look, put, exchange: who has exchanged one word and then looks at another sees what the other one wrote, or is seen).
 * On x64 all of them are plain moves with every compiler.
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

static inline uint64_t softgpu_read_once64(const void *word)
{
	return __atomic_load_n((const uint64_t *)word, __ATOMIC_RELAXED);
}

static inline uint32_t softgpu_read_once32(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint32_t softgpu_look(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static inline void softgpu_put(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint32_t softgpu_exchange(uint32_t *word, uint32_t value)
{
	return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
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

static inline uint64_t softgpu_read_once64(const void *word)
{
	return *(const volatile uint64_t *)word;
}

static inline uint32_t softgpu_read_once32(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

static inline uint32_t softgpu_look(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

static inline void softgpu_put(uint32_t *word, uint32_t value)
{
	*(volatile uint32_t *)word = value;
}

static inline uint32_t softgpu_exchange(uint32_t *word, uint32_t value)
{
	return (uint32_t)_InterlockedExchange((volatile long *)word, (long)value);
}

#endif

/* For a few lines that call nothing; 0: free. */
static inline void softgpu_guard(uint32_t *word)
{
	while (softgpu_exchange(word, 1))
		;
}
static inline void softgpu_unguard(uint32_t *word)
{
	(void)softgpu_exchange(word, 0);
}

#endif
