/* SPDX-License-Identifier: MIT */
/*
 * Threads that lock, write, unlock and discard, and let the GPU write, on an adapter that is too
 * small for them. Their locked memory is evicted and paged meanwhile. Each thread checks the
 * content of every page. On the simulator a seed determines the whole run. On real threads it
 * determines what each thread does, but not when.
 */
#ifndef VMM_TESTS_CONFORMANCE_LOCK_RACE_H
#define VMM_TESTS_CONFORMANCE_LOCK_RACE_H

#include <stdint.h>

struct race_statistics {
	uint64_t operations, evictions, renames;
};

/*
 * Runs that many operations in total on eight threads, on a host of that kind. Aborts with the
 * seed on the first wrong byte.
 */
struct race_statistics race_run(uint32_t kind, uint64_t seed, uint64_t operations);

#endif
