/* SPDX-License-Identifier: MIT */
/*
 * pool: independent pieces of work, each in a forked child process, a limited number at a time. A
 * piece that crashes ends its own process only. The caller has one thread and no other child
 * processes.
 */
#ifndef VIDMM_TOOLS_POOL_H
#define VIDMM_TOOLS_POOL_H

/* How a process ended. All 0: its work returned. */
struct pool_end {
	int error;  /* errno: there was no process */
	int signal; /* that ended it */
	int exit_code;
};

struct pool {
	unsigned count, jobs; /* pieces of work; processes at a time */
	/* In a child process. What it writes reaches the caller through shared memory only. */
	void (*work)(void *context, unsigned index);
	/* In the caller, once for each piece, in the order of the ends. */
	void (*ended)(void *context, unsigned index, const struct pool_end *end);
	/* In the caller, after each end and every 100 ms; NULL: never */
	void (*tick)(void *context);
	void *context;
};

/* Returns when all pieces have ended. Begins them in the order of their indices. */
void pool_run(const struct pool *pool);

#endif
