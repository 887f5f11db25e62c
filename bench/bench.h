/* SPDX-License-Identifier: MIT */
/*
 * bench: measures an operation against the floors of the machine it runs on, in one process and one run. Rounds
 * are interleaved over all cases, so that a slow second hits subject and peer alike; what is reported is the
 * median of the rounds and, where a case names a peer, the ratio of the two. Absolute times are for reading,
 * ratios are for gates.
 *
 * A bench file is bench/bench_<topic>.c with one BENCH(...) per case; it needs no registration elsewhere.
 */
#ifndef VMM_BENCH_BENCH_H
#define VMM_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_ROUNDS_MAX = 99 };

struct bench_case {
	/* constant, written by BENCH(...) */
	const char *name; /* "topic.what", unique */
	const char *peer; /* the case this one is divided by; NULL: none */
	double ratio_max; /* the goal: median / peer's median at most this; 0: none */
	uint64_t
		bytes; /* bytes per operation: reported as GB/s instead of ns, the goal is on time all the same */
	uint64_t per_run; /* operations that one step of `run` does, for a batch; 0: 1 */
	unsigned
		threads; /* 2: skipped on one CPU, and its goal waits for two CPUs that do not share a core */
	uint64_t parameter; /* for cases that share code */
	void *(*setup)(
		const struct bench_case *self); /* NULL: none. Returning NULL skips the case */
	void (*run)(void *state, uint64_t steps);
	void (*teardown)(void *state);

	/* the harness's own */
	struct bench_case *next;
	void *state;
	uint64_t steps;
	const char *skipped;         /* why, or NULL */
	double ns[BENCH_ROUNDS_MAX]; /* per operation, one for each round; sorted after the last */
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
	struct bench_case /* takes the semicolon */

/* Keeps a value, or all of memory, out of the optimizer's reach. */
#define bench_use(value) __asm__ volatile("" : : "r"(value) : "memory")
#define bench_barrier()  __asm__ volatile("" : : : "memory")

uint64_t bench_now_ns(void);

/* The calling thread onto the n-th CPU this process may use. Returns false if there is no such CPU. */
bool bench_pin(unsigned n);

#endif
