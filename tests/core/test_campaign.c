/* SPDX-License-Identifier: MIT */
/*
 * A million random operations, in all builds together (support/seeds.h): wide runs of the workload,
 * seed after seed, on simulated interleavings and every eighth with real threads. It ends when the
 * operations are done. In a slow build it ends when the time limit is over. It always reports the
 * number done, and fails if that is less than a third.
 *     test_campaign [FIRST_SEED [OPERATIONS [SECONDS]]]    OPERATIONS 0: no limit
 *     test_campaign FIRST_SEED OPERATIONS SECONDS sim|linux    seeds of one kind only
 */
#include "workload.h"

#include <support/client.h>
#include <support/seeds.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ACTORS           4u
#define OPERATIONS_EACH  500u
#define OPERATIONS_LEAST 100000u

/* The thread sanitizer is of use only with real threads, which are every eighth seed. */
#define OPERATIONS (WORKLOAD_UNDER_TSAN ? 200000u : 300000u)
/* of one build, at most */
#define SEEDS      200u

static uint64_t first_seed, operations = OPERATIONS;
static double seconds = 90;
static const char *kind_only = "";

/*
 * Processor time of this program's threads, so that a busy machine does not make the campaign
 * smaller.
 */
static double processor_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint32_t kind_of(uint64_t seed)
{
	if (kind_only[0])
		return strcmp(kind_only, "sim") ? VIDMM_HOST_LINUX : VIDMM_HOST_SIM;
	return seed % 8 == 7 ? VIDMM_HOST_LINUX : VIDMM_HOST_SIM;
}

static void run(uint64_t seed, struct workload_result *totals)
{
	static const uint32_t switches[] = {0, 20, 200, 700};
	const struct workload workload = {.kind = kind_of(seed),
					  .seed = seed,
					  .switch_per_1024 = switches[seed % 4],
					  .actors = ACTORS,
					  .operations = OPERATIONS_EACH,
					  .no_existing_memory = WORKLOAD_UNDER_TSAN,
					  .wide = true};
	struct workload_result result;

	workload_run(&workload, &result);
	if (result.failure[0])
		fail_msg("seed %" PRIu64 " (test_campaign %" PRIu64 " 1 1): %s", seed, seed,
			 result.failure);
	totals->evictions += result.evictions;
	totals->renames += result.renames;
	totals->discards += result.discards;
	totals->waits += result.waits;
	for (uint32_t k = 0; k < WORKLOAD_KINDS; k++)
		totals->reached[k] += result.reached[k];
}

static void report(const struct workload_result *totals, uint64_t done, uint64_t seed)
{
	static const char *const kinds[WORKLOAD_KINDS] = {
		[WORKLOAD_LOCK_OTHERWISE] = "other locks",
		[WORKLOAD_HOLD] = "locks held over work",
		[WORKLOAD_UNSEEN] = "comparisons by copy",
		[WORKLOAD_PRIORITIES] = "priorities",
		[WORKLOAD_RESIDENCY] = "residency queries",
		[WORKLOAD_OFFER_IN_LIST] = "offers in lists",
		[WORKLOAD_SHARE] = "shared resources",
	};

	printf("# %" PRIu64 " operations, seeds %" PRIu64 " to %" PRIu64
	       ", %.1f s of processor time: %" PRIu64 " evictions, %" PRIu64 " renames, %" PRIu64
	       " discards, %" PRIu64 " waits",
	       done, first_seed, seed - 1, processor_seconds(), totals->evictions, totals->renames,
	       totals->discards, totals->waits);
	for (uint32_t k = 0; k < WORKLOAD_KINDS; k++)
		printf(", %" PRIu64 " %s", totals->reached[k], kinds[k]);
	printf("\n");
	if (operations && done < operations)
		printf("# %" PRIu64 " were meant: this build is too slow for the %.0f s it has\n",
		       operations, seconds);
}

static void random_operations_preserve_every_byte(void **state)
{
	struct workload_result totals = {.hash = 0};
	uint64_t seed = first_seed, done = 0;

	(void)state;
	while ((!operations || done < operations) && processor_seconds() < seconds) {
		run(seed++, &totals);
		done += ACTORS * OPERATIONS_EACH;
	}
	report(&totals, done, seed);
	assert_true(done >= operations || done >= OPERATIONS_LEAST);
	if (done < OPERATIONS_LEAST) /* a manual run */
		return;
	/* the workload must reach each of its special cases */
	assert_true(totals.evictions > done / 100);
	assert_true(totals.renames > done / 1000);
	assert_true(totals.discards > done / 10000);
	for (uint32_t k = 0; k < WORKLOAD_KINDS; k++)
		assert_true(totals.reached[k] > done / 1000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_preserve_every_byte),
	};

	first_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 + seeds_build_number() * SEEDS;
	if (argc > 2)
		operations = strtoull(argv[2], NULL, 0);
	if (argc > 3)
		seconds = strtod(argv[3], NULL);
	if (argc > 4)
		kind_only = argv[4];
	return cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
}
