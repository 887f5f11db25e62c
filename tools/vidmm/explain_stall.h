/* SPDX-License-Identifier: MIT */
/*
 * What a call waited for: its waits, the way of the packet that each waited for, and what else held
 * the GPU up at that time (paging packets, waits without a process, recoveries).
 */
#ifndef VIDMM_TOOLS_EXPLAIN_STALL_H
#define VIDMM_TOOLS_EXPLAIN_STALL_H

#include <stdbool.h>

#include "explain_history.h"
#include "explain_sentences.h"

#define STALL_REASONS_MAX 16u

/* Waits without a process, by reason: of threads of vidmm, or for destruction by any client. */
struct stall_thread_waits {
	char reason[LOGGED_REASON_CHARS];
	uint64_t count, ns;
};

/* All other members are zero at first. */
struct explain_stall {
	const struct explain_history *history;
	const struct logged_event *door;
	uint64_t waited_ns;    /* sum of the waits in the call */
	uint64_t last_wait_ns; /* end of the last of them */
	bool waited;           /* at least one of them has the process of the call */
	bool several_threads;  /* they overlap, or are not in the order of time */
	/* The last fence that the DPC read, the last signal of a context; time_ns 0: none. */
	struct logged_event fence, signal;
	struct stall_thread_waits thread[STALL_REASONS_MAX];
	unsigned thread_count;
};

/* Applies an event of the call and prints the sentences about it. */
void explain_stall_add(struct explain_stall *stall, struct sentences *sentences,
		       const struct logged_event *event);
/* Prints what is summed over the call. */
void explain_stall_print(const struct explain_stall *stall, struct sentences *sentences);

#endif
