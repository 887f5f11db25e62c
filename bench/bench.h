/* SPDX-License-Identifier: MIT */
/*
 * bench: measures operations relative to lower bounds of the machine (floors) in one process and
 * one run. Rounds are interleaved over all cases, so that a disturbance affects case and peer
 * alike. The report has the median of the rounds and, for a case with a peer, the ratio of the two
 * medians. Ratios have goals (--gate); absolute times are for information.
 *
 * A file bench/bench_<topic>.c has one BENCH(...) for each case. It needs no other registration.
 */
#ifndef VMM_BENCH_BENCH_H
#define VMM_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_ROUNDS_MAX = 99 };

struct bench_case {
	/* constant, written by BENCH(...) */
	const char *name; /* unique, "topic.case" */
	const char *peer; /* the case that the ratio refers to; NULL: none */
	double ratio_max; /* the goal: the maximum of median / peer's median; 0: none */
	/* bytes per operation: reported as GB/s instead of ns; the goal is still on time */
	uint64_t bytes;
	uint64_t per_run; /* operations in one step of `run`; 0: 1 */
	/* A round has at least so many steps, however long that takes; 0: as many as fit in it. */
	uint64_t steps_min;
	/* 2: skipped on one CPU; its goal is judged only on two CPUs that do not share a core */
	unsigned threads;
	uint64_t parameter; /* value for cases that share code */
	/* NULL: none. If it returns NULL, the case is skipped. */
	void *(*setup)(const struct bench_case *self);
	void (*run)(void *state, uint64_t steps);
	void (*teardown)(void *state);

	/* written by the harness */
	struct bench_case *next;
	void *state;
	uint64_t steps;
	const char *skipped; /* the reason, or NULL */
	/* ns per operation in each round; sorted after the last round */
	double ns[BENCH_ROUNDS_MAX];
};

void bench_register(struct bench_case *bench);

#define BENCH_JOIN_(a, b) a##b
#define BENCH_JOIN(a, b)  BENCH_JOIN_(a, b)
/* BENCH(.name = "lock.idle", .run = run_lock, .peer = "floor.xadd", .ratio_max = 2.8); */
#define BENCH(...)                                                                           \
	static struct bench_case BENCH_JOIN(bench_case_, __LINE__) = {__VA_ARGS__};          \
	__attribute__((constructor)) static void BENCH_JOIN(bench_register_, __LINE__)(void) \
	{                                                                                    \
		bench_register(&BENCH_JOIN(bench_case_, __LINE__));                          \
	}                                                                                    \
	struct bench_case /* so that a semicolon may follow */

/* Compiler barriers: force a value to be computed, or all of memory to be written and read. */
#define bench_use(value) __asm__ volatile("" : : "r"(value) : "memory")
#define bench_barrier()  __asm__ volatile("" : : : "memory")

uint64_t bench_now_ns(void);

/*
 * What the running case just did must have worked: if not, the program ends with exit code 1 and
 * the name of the case on stderr. The time of a call that failed is not that of the operation.
 */
void bench_require(bool good);

/*
 * Moves the calling thread to the N-th CPU that this process may use. Returns false if there is no
 * such CPU.
 */
bool bench_pin(unsigned n);

#endif
