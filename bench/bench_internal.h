/* SPDX-License-Identifier: MIT */
/* What the harness and its report share; bench files use bench.h. */
#ifndef VMM_BENCH_BENCH_INTERNAL_H
#define VMM_BENCH_BENCH_INTERNAL_H

#include "bench.h"

struct bench_options {
	unsigned rounds;
	uint64_t round_ns; /* how long one case runs in one round, about */
	const char *only;  /* names that contain this, and their peers; NULL: all */
	bool json;
	bool gate; /* a missed goal is a failure */
	bool list;
};

struct bench_result {
	const struct bench_case *first;
	unsigned rounds;
	double two_core_scaling; /* time of an arithmetic loop beside its twin / alone; 0: one CPU only */
};

double bench_median(const struct bench_case *bench, unsigned rounds);
/* Median over the peer's median, or 0 where there is no peer or it was skipped. */
double bench_ratio(const struct bench_result *result, const struct bench_case *bench);
/* 1 the goal holds, 0 it is missed, -1 there is none or it cannot be judged in this run. */
int bench_verdict(const struct bench_result *result, const struct bench_case *bench);

void bench_print_table(const struct bench_result *result);
bool bench_print_json(const struct bench_result *result);

/* bench_threads.c */
double bench_two_core_scaling(void);

#endif
