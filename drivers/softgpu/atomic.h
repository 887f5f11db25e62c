/* SPDX-License-Identifier: MIT */
/*
 * Single words that one thread writes while another reads them, without a lock.
 * - load and store (acquire and release): memory by which GPU and CPU signal each other.
 * - read_once (no order): user memory that is read exactly once.
 * - load32, store32 and exchange32: the ring of an engine. load32 and exchange32 are sequentially
 *   consistent, for a Dekker pattern: of two threads that each exchange one word and then load the
 *   other's, at least one sees the other's value.
 *
 * On x64 each but the exchange is a plain move with every compiler.
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

static inline uint32_t softgpu_load32(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static inline void softgpu_store32(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline uint32_t softgpu_exchange32(uint32_t *word, uint32_t value)
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

static inline uint32_t softgpu_load32(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

static inline void softgpu_store32(uint32_t *word, uint32_t value)
{
	*(volatile uint32_t *)word = value;
}

static inline uint32_t softgpu_exchange32(uint32_t *word, uint32_t value)
{
	return (uint32_t)_InterlockedExchange((volatile long *)word, (long)value);
}

#endif

/* A spin lock for a few lines that call nothing. 0: free. */
static inline void softgpu_spin_lock(uint32_t *word)
{
	while (softgpu_exchange32(word, 1))
		;
}
static inline void softgpu_spin_unlock(uint32_t *word)
{
	(void)softgpu_exchange32(word, 0);
}

#endif
