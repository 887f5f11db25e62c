/* SPDX-License-Identifier: MIT */
/*
 * thrash: the buffers of the recordings that were paged most. Computed from the event stream: bytes
 * copied into and out of video memory, and evictions from there. The allocations that a buffer has
 * had one after the other, and their renamed instances, count for it.
 */
#ifndef VIDMM_TOOLS_THRASH_H
#define VIDMM_TOOLS_THRASH_H

#include <stdbool.h>
#include <vidmm/vidmm.h>

/* A buffer, by the index of its recording and its id there. */
struct thrash_entry {
	uint32_t recording, buffer;
	uint64_t size_bytes;
	uint64_t bytes_paged_in, bytes_paged_out; /* bytes_paged_in has first uses, too */
	uint64_t evictions;
	uint64_t first_ns, last_ns; /* of its paging, since the replay began */
};

struct thrash;
/* NULL: out of memory */
struct thrash *thrash_create(struct vidmm_host *host, struct vidmm_adapter *adapter,
			     unsigned recording_count);
void thrash_destroy(struct thrash *thrash); /* NULL is allowed */
/* The process has allocated that handle for a buffer. When out of memory it is not counted. */
void thrash_allocated(struct thrash *thrash, uint32_t process, uint32_t handle,
		      const struct thrash_entry *buffer);
/* Finds the buffer that a handle is or was allocated for. Returns false if there is none. */
bool thrash_buffer_of(struct thrash *thrash, uint32_t process, uint32_t handle, uint32_t *recording,
		      uint32_t *buffer);
/* Is that paging operation (enum vidmm_paging_op) a copy? */
bool thrash_is_copy(uint16_t operation);
/*
 * Does what leaves video memory for system memory for that reason (enum vidmm_residency_reason)
 * count as evicted?
 */
bool thrash_is_eviction(uint16_t reason);
/*
 * Stores up to COUNT buffers that were evicted or paged out, those with the most bytes paged first,
 * and returns their number.
 */
unsigned thrash_top(struct thrash *thrash, struct thrash_entry *entries, unsigned count);

#endif
