/* SPDX-License-Identifier: MIT */
/*
 * The order of eviction as a function of the embedder, instead of one of the policies that
 * VidmmEvictionPolicy names (vidmm.h). It decides only between candidates of one eviction class, of
 * the process whose turn it is: offered memory, priorities and the shares of processes come first.
 */
#ifndef VIDMM_EVICTION_H
#define VIDMM_EVICTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VIDMM_EVICTION_INTERVALS 16u

/* An allocation that may be evicted. Times are counted in submissions of the adapter. */
struct vidmm_eviction_candidate {
	uint32_t process, allocation; /* as in events: id of the process, and handle */
	uint64_t size_bytes;
	uint64_t idle; /* submissions since its last use */
	/*
	 * The submissions between its last uses, the latest first; more than 65535 are stored as
	 * that. A time with uses that were left out (the journal was full) is not among them.
	 */
	const uint16_t *intervals;
	uint32_t interval_count; /* up to VIDMM_EVICTION_INTERVALS */
};

/*
 * Returns the distance to the next use of the candidate, in any unit: the candidate with the
 * greatest distance is evicted. Of equal distances the least recently used one is. UINT64_MAX: no
 * use will follow, so that the other candidates need not be compared. Called on any thread with
 * mutexes held: it must not block and must not call vidmm. For the same arguments, and as long as
 * the embedder's data do not change, it must return the same.
 */
typedef uint64_t vidmm_eviction_rank_fn(void *context,
					const struct vidmm_eviction_candidate *candidate);

#ifdef __cplusplus
}
#endif

#endif
