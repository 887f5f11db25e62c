/* SPDX-License-Identifier: MIT */
/*
 * A random workload over the whole stack, in little video memory. Actors (threads) have their own
 * devices, contexts and buffers. They allocate, lock, write, copy and stamp by the GPU, offer,
 * reclaim, rename, deallocate, and destroy contexts and devices. A shadow copy of every buffer
 * holds what the CPU must see at each lock and at the end.
 *
 * The options determine every choice; on a simulator also the event stream.
 */
#ifndef VMM_TESTS_CORE_WORKLOAD_H
#define VMM_TESTS_CORE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A client may write into its own memory while an update from the GPU's copy reads it; the write is
 * transferred later. The thread sanitizer would report that as a race.
 */
#define WORKLOAD_UNDER_TSAN false
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef WORKLOAD_UNDER_TSAN
#define WORKLOAD_UNDER_TSAN true
#endif
#endif

struct workload {
	uint32_t kind; /* enum vidmm_host_kind */
	uint64_t seed;
	uint32_t switch_per_1024;
	uint32_t actors, operations; /* per actor */
	/*
	 * no existing memory of the client, where a lock may write during an update that reads
	 * (LOCK-08)
	 */
	bool no_existing_memory;
	bool wide; /* every supported request (wide.c); smaller memory and buffers */
};

/* Additional actions of wide runs; the result counts how often each was completed. */
enum workload_kind {
	WORKLOAD_LOCK_OTHERWISE,
	WORKLOAD_HOLD,
	WORKLOAD_UNSEEN, /* compared by a copy that the GPU makes */
	WORKLOAD_PRIORITIES,
	WORKLOAD_RESIDENCY,
	WORKLOAD_OFFER_IN_LIST,
	WORKLOAD_SHARE,
	WORKLOAD_KINDS
};

struct workload_result {
	char failure[512]; /* empty: all content equaled the shadow */
	uint64_t hash;     /* of the event stream; sim */
	uint64_t events, evictions, renames, discards, waits;
	uint64_t reached[WORKLOAD_KINDS];
};

/* Runs the workload. A deadlock ends the program with the seed and the report. */
void workload_run(const struct workload *workload, struct workload_result *result);

#endif
