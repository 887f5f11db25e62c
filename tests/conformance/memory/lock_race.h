/* SPDX-License-Identifier: MIT */
/*
 * Threads that lock, write, unlock, discard and let the GPU write, on an adapter that is too small for them, so that what
 * they have locked is evicted and paged under them. Each checks every page that it is owed. On the simulator a seed is a
 * run; on threads it is what each thread does, not when.
 */
#ifndef VMM_TESTS_CONFORMANCE_LOCK_RACE_H
#define VMM_TESTS_CONFORMANCE_LOCK_RACE_H

#include <stdint.h>

struct race_figures {
	uint64_t operations, evictions, renames;
};

/* So many operations in all, by eight threads, on a host of that kind. Aborts with the seed on the first wrong byte. */
struct race_figures race_run(uint32_t kind, uint64_t seed, uint64_t operations);

#endif
