/* SPDX-License-Identifier: MIT */
/*
 * A random workload over the whole stack: actors (threads) with their own devices, contexts and buffers allocate, lock,
 * write, copy and stamp by the GPU, offer, reclaim, rename, deallocate, end contexts and devices, in little video memory.
 * A shadow copy of every buffer says what the CPU must see at each lock and at the end.
 *
 * Everything follows from the options; on a simulator so does the event stream.
 */
#ifndef VMM_TESTS_CORE_WORKLOAD_H
#define VMM_TESTS_CORE_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The sanitizer of threads would call it a race that a program may write into its own memory while an update of the
 * GPU's copy reads it; what it writes follows later.
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
	uint32_t actors, operations; /* each */
	bool no_existing_memory; /* of the program's own, where a lock may write beside an update that reads (LOCK-08) */
	bool wide; /* everything that may be asked for (wide.c); smaller memory and buffers */
};

/* What wide runs do beside the usual, and how often they got to the end of it. */
enum workload_kind {
	WORKLOAD_LOCK_OTHERWISE,
	WORKLOAD_HOLD,
	WORKLOAD_UNSEEN, /* compared by a copy of the GPU's */
	WORKLOAD_PRIORITIES,
	WORKLOAD_RESIDENCY,
	WORKLOAD_OFFER_IN_LIST,
	WORKLOAD_SHARE,
	WORKLOAD_KINDS
};

struct workload_result {
	char failure[512]; /* empty: everything was as the shadow says */
	uint64_t hash;     /* of the event stream; sim */
	uint64_t events, evictions, renames, discards, waits;
	uint64_t reached[WORKLOAD_KINDS];
};

/* A deadlock ends the program with the seed and the report. */
void workload_run(const struct workload *workload, struct workload_result *result);

#endif
