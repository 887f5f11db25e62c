/* SPDX-License-Identifier: MIT */
/*
 * The harness: calibrates each case to a round of fixed length, runs the rounds interleaved, and
 * sorts the results. It has one thread; a case that needs a second one starts it in its setup.
 */
#include "bench_internal.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct bench_case *first_case;
static const char *running; /* name of the case */

void bench_register(struct bench_case *bench)
{
	/*
	 * Constructors run in link order. The list is sorted by name, so that the report does not
	 * depend on it.
	 */
	struct bench_case **link = &first_case;
	while (*link && strcmp((*link)->name, bench->name) < 0)
		link = &(*link)->next;
	bench->next = *link;
	*link = bench;
}

uint64_t bench_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool bench_pin(unsigned n)
{
	static cpu_set_t allowed;
	static bool known;
	if (!known)
		known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || n-- > 0)
			continue;
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	return false;
}

static struct bench_case *find(const char *name)
{
	for (struct bench_case *bench = first_case; bench; bench = bench->next) {
		if (strcmp(bench->name, name) == 0)
			return bench;
	}
	return NULL;
}

void bench_require(bool good)
{
	if (good)
		return;
	fprintf(stderr, "vidmm-bench: %s: a call failed\n", running);
	_Exit(1);
}

static uint64_t time_run(struct bench_case *bench, uint64_t steps)
{
	running = bench->name;
	uint64_t start = bench_now_ns();
	bench->run(bench->state, steps);
	return bench_now_ns() - start;
}

/*
 * Doubles the steps until a run is long enough to be measured, then scales them to the length of
 * a round. The first run may meet cold caches and pages, so a second one decides whether a run is
 * long enough, unless a single step takes many rounds.
 */
static void calibrate(struct bench_case *bench, uint64_t round_ns)
{
	const uint64_t enough = round_ns / 8;
	uint64_t steps = 1;
	uint64_t ns = time_run(bench, steps);

	for (;;) {
		if (ns >= enough && ns < 64 * round_ns) {
			uint64_t again = time_run(bench, steps);

			ns = again < ns ? again : ns;
		}
		if (ns >= enough || steps >= UINT64_C(1) << 40)
			break;
		steps *= 2;
		ns = time_run(bench, steps);
	}
	double scaled = (double)steps * (double)round_ns / (double)(ns ? ns : 1);
	bench->steps = scaled < 1 ? 1 : (uint64_t)scaled;
	if (bench->steps < bench->steps_min)
		bench->steps = bench->steps_min;
}

static void select_cases(const char *only)
{
	if (!only)
		return;
	for (struct bench_case *bench = first_case; bench; bench = bench->next) {
		if (!strstr(bench->name, only))
			bench->skipped = "not selected";
	}
	for (struct bench_case *bench = first_case; bench; bench = bench->next) {
		struct bench_case *peer = bench->peer ? find(bench->peer) : NULL;
		if (peer && strstr(bench->name, only))
			peer->skipped = NULL;
	}
}

static void set_up(struct bench_case *bench, bool two_cpus, const struct bench_options *options)
{
	if (bench->skipped)
		return;
	if (bench->threads > 1 && !two_cpus) {
		bench->skipped = "needs two CPUs";
		return;
	}
	if (bench->setup) {
		bench->state = bench->setup(bench);
		if (!bench->state) {
			bench->skipped = "not possible on this machine";
			return;
		}
	}
	if (options->steps)
		bench->steps = options->steps;
	else
		calibrate(bench, options->round_ns);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void run_rounds(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		for (struct bench_case *bench = first_case; bench; bench = bench->next) {
			if (bench->skipped)
				continue;
			uint64_t operations = bench->steps * (bench->per_run ? bench->per_run : 1);
			bench->ns[round] =
				(double)time_run(bench, bench->steps) / (double)operations;
		}
	}
	for (struct bench_case *bench = first_case; bench; bench = bench->next) {
		if (!bench->skipped)
			qsort(bench->ns, rounds, sizeof(bench->ns[0]), compare_doubles);
	}
}

double bench_median(const struct bench_case *bench, unsigned rounds)
{
	return (bench->ns[(rounds - 1) / 2] + bench->ns[rounds / 2]) / 2;
}

double bench_ratio(const struct bench_result *result, const struct bench_case *bench)
{
	const struct bench_case *peer = bench->peer ? find(bench->peer) : NULL;
	if (!peer || peer->skipped || bench->skipped)
		return 0;
	return bench_median(bench, result->rounds) / bench_median(peer, result->rounds);
}

int bench_verdict(const struct bench_result *result, const struct bench_case *bench)
{
	double ratio = bench_ratio(result, bench);
	/*
	 * Above 1.3 the two CPUs share a core, or other programs use them: a hand-off between
	 * threads cannot be judged.
	 */
	bool judged = bench->threads < 2 || result->two_core_scaling < 1.3;
	if (bench->ratio_max <= 0 || ratio <= 0 || !judged)
		return -1;
	return ratio <= bench->ratio_max;
}

static bool parse(int argc, char **argv, struct bench_options *options)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},        {"gate", no_argument, NULL, 'g'},
		{"list", no_argument, NULL, 'l'},        {"rounds", required_argument, NULL, 'r'},
		{"only", required_argument, NULL, 'o'},  {"round-us", required_argument, NULL, 'u'},
		{"steps", required_argument, NULL, 's'}, {NULL, 0, NULL, 0},
	};
	int option;
	while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (option) {
		case 'j':
			options->json = true;
			break;
		case 'g':
			options->gate = true;
			break;
		case 'l':
			options->list = true;
			break;
		case 'o':
			options->only = optarg;
			break;
		case 'r':
			options->rounds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			options->steps = strtoull(optarg, NULL, 10);
			break;
		case 'u':
			options->round_ns = 1000 * strtoull(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	}
	return optind == argc && options->round_ns && options->rounds >= 1 &&
	       options->rounds <= BENCH_ROUNDS_MAX;
}

int main(int argc, char **argv)
{
	struct bench_options options = {.rounds = 9, .round_ns = 4000000};
	if (!parse(argc, argv, &options)) {
		fprintf(stderr,
			"usage: vidmm-bench [--json] [--gate] [--list] [--rounds 1..%d] "
			"[--round-us N] [--steps N] [--only TEXT]\n",
			BENCH_ROUNDS_MAX);
		return 2;
	}
	if (options.list) {
		for (struct bench_case *bench = first_case; bench; bench = bench->next)
			puts(bench->name);
		return 0;
	}
	struct bench_result result = {.first = first_case, .rounds = options.rounds};
	if (!options.steps)
		result.two_core_scaling = bench_two_core_scaling();
	bench_pin(0);
	select_cases(options.only);
	for (struct bench_case *bench = first_case; bench; bench = bench->next)
		set_up(bench, result.two_core_scaling > 0, &options);
	run_rounds(options.rounds);
	bool missed = false;
	for (struct bench_case *bench = first_case; bench; bench = bench->next) {
		missed = missed || bench_verdict(&result, bench) == 0;
		if (bench->teardown && bench->state)
			bench->teardown(bench->state);
	}
	bool printed = true;
	if (options.json)
		printed = bench_print_json(&result);
	else
		bench_print_table(&result);
	return !printed || (options.gate && missed);
}
