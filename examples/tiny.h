/* SPDX-License-Identifier: MIT */
/* What tinyumd.c and tinykmd.c pass to each other through opaque parameters of the DDI. */
#ifndef TINY_H
#define TINY_H

#include <stdint.h>

/* pPrivateDriverData of an allocation. */
struct tiny_allocation {
	uint64_t bytes;
};

/*
 * The only command: sets `bytes` bytes of an entry of the allocation list, from `offset` on, to a
 * 32-bit value.
 */
struct tiny_fill {
	uint32_t allocation, value;
	uint64_t offset, bytes;
};

#endif
