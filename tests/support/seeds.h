/* SPDX-License-Identifier: MIT */
/*
 * Seeds of random tests that take long. Each build of `./x test` (gcc, clang, the sanitizers)
 * draws from different seeds: the builds share the work instead of repeating it. A test adds the
 * build's number, times the count of its seeds, to its first seed. A message of a failure has the
 * whole seed.
 */
#ifndef VMM_TESTS_SEEDS_H
#define VMM_TESTS_SEEDS_H

#include <stdint.h>
#include <stdlib.h>

/* 0 to 3; 0 without tests/meson.build's environment. */
static inline uint64_t seeds_build_number(void)
{
	const char *number = getenv("VIDMM_BUILD_NUMBER");

	return number ? strtoull(number, NULL, 10) : 0;
}

#endif
