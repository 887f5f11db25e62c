/* SPDX-License-Identifier: MIT */
/*
 * Bulk memory operations of the engines: memcpy while the data fits a cache, non-temporal stores
 * above that. Pure functions on host memory; they know no GPU addresses.
 */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include <stddef.h>
#include <stdint.h>

/* From this size on non-temporal stores are faster (measured: 1.3 to 1.45 times). */
#define SOFTGPU_STREAM_BYTES ((size_t)1 << 20)

void softgpu_copy(void *destination, const void *source, size_t length);
/* Sets byte i to byte (phase + i) mod 4 of the little-endian pattern. */
void softgpu_fill(void *destination, uint32_t pattern, size_t length, size_t phase);

#endif
