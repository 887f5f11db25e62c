/* SPDX-License-Identifier: MIT */
/* What tinyumd.c and tinykmd.c say to each other through the DDI's opaque parameters. */
#ifndef TINY_H
#define TINY_H

#include <stdint.h>

/* pPrivateDriverData of an allocation. */
struct tiny_allocation {
	uint64_t bytes;
};

/* The one command: so many bytes of the allocation list's entry are set to a 32-bit value. */
struct tiny_fill {
	uint32_t allocation, value;
	uint64_t offset, bytes;
};

#endif
