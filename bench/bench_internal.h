/* SPDX-License-Identifier: MIT */
/* Internals of the harness and its report. Bench files include bench.h. */
#ifndef VMM_BENCH_BENCH_INTERNAL_H
#define VMM_BENCH_BENCH_INTERNAL_H

#include "bench.h"

struct bench_options {
	unsigned rounds;
	uint64_t round_ns; /* approximate time of one case in one round */
	/* of each case in one round, for a count of instructions; 0: as many as fit in round_ns */
	uint64_t steps;
	const char *only; /* selects names that contain this, and their peers; NULL: all */
	bool json;
	bool gate; /* exit with 1 if a goal is missed */
	bool list;
};

struct bench_result {
	const struct bench_case *first;
	unsigned rounds;
	/*
	 * time of an arithmetic loop while the other CPU runs the same loop, divided by its time
	 * alone; 0: one CPU only
	 */
	double two_core_scaling;
};

double bench_median(const struct bench_case *bench, unsigned rounds);
/* Returns the median divided by the peer's median; 0 without a peer, or if either was skipped. */
double bench_ratio(const struct bench_result *result, const struct bench_case *bench);
/*
 * Returns 1 if the goal is met, 0 if it is missed, -1 if there is none or it cannot be judged in
 * this run.
 */
int bench_verdict(const struct bench_result *result, const struct bench_case *bench);

void bench_print_table(const struct bench_result *result);
bool bench_print_json(const struct bench_result *result);

/* bench_threads.c */
double bench_two_core_scaling(void);

#endif
