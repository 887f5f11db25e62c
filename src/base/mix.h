/* SPDX-License-Identifier: MIT */
/* SplitMix64: the random numbers of the library, none of which is secret. */
#ifndef VMM_BASE_MIX_H
#define VMM_BASE_MIX_H

#include <stdint.h>

/* What is added to the state of a stream for each number. */
#define VMM_MIX64_STEP UINT64_C(0x9E3779B97F4A7C15)

/* The output function: numbers that follow each other get unrelated results. */
static inline uint64_t vmm_mix64(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
	return value ^ value >> 31;
}

#endif
