/* SPDX-License-Identifier: MIT */
/*
 * The random workload over many seeds: on simulated interleavings, and with real threads. Without
 * arguments it runs a fixed number of seeds, as in the suite; otherwise:
 *     test_seeds FIRST [COUNT [OPERATIONS [sim|linux]]]    COUNT 0: until it fails
 */
#include "workload.h"

#include <support/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t first_seed = 1;
static uint32_t sim_seeds = 60, linux_seeds = 8, operations = 120;

static struct workload_result totals;

static void run(uint32_t kind, uint64_t seed)
{
	/* From no thread switch except at blocking calls, to one at nearly every point. */
	static const uint32_t switches[] = {0, 20, 200, 700};
	struct workload workload = {.kind = kind,
				    .seed = seed,
				    .switch_per_1024 = switches[seed % 4],
				    .actors = 4,
				    .operations = operations,
				    .no_existing_memory =
					    WORKLOAD_UNDER_TSAN && kind == VIDMM_HOST_LINUX};
	struct workload_result result;

	workload_run(&workload, &result);
	if (result.failure[0])
		fail_msg("seed %" PRIu64 " (test_seeds %" PRIu64 " 1 %u %s): %s", seed, seed,
			 operations, kind == VIDMM_HOST_SIM ? "sim" : "linux", result.failure);
	totals.events += result.events;
	totals.evictions += result.evictions;
	totals.renames += result.renames;
	totals.discards += result.discards;
	totals.waits += result.waits;
}

static void every_seed_preserves_every_byte(void **state)
{
	(void)state;
	for (uint32_t i = 0; !sim_seeds || i < sim_seeds; i++)
		run(VIDMM_HOST_SIM, first_seed + i);
	printf("# %u seeds: %" PRIu64 " events, %" PRIu64 " evictions, %" PRIu64
	       " renames, %" PRIu64 " discards, %" PRIu64 " waits\n",
	       sim_seeds, totals.events, totals.evictions, totals.renames, totals.discards,
	       totals.waits);
	/* the workload must reach each of its special cases */
	if (first_seed == 1 && sim_seeds >= 60) {
		assert_true(totals.evictions > 1000);
		assert_true(totals.renames > 100);
		assert_true(totals.discards > 10);
		assert_true(totals.waits > 1000);
	}
}

/*
 * In these runs the worker waits for the submit lock while a submission with that lock waits for a
 * DMA buffer. The packet in flight needs a new fence id, which only a thread at PASSIVE_LEVEL can
 * give it. In seed 167 a DPC holds the paging lock at that moment.
 */
static void a_submission_that_waits_for_a_buffer_feeds_the_gpu(void **state)
{
	static const uint64_t seeds[] = {167, 304, 374, 762, 930, 1070, 1314, 1405};

	(void)state;
	for (uint32_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
		run(VIDMM_HOST_SIM, seeds[i]);
}

static void runs_on_threads_preserve_every_byte(void **state)
{
	(void)state;
	for (uint32_t i = 0; !linux_seeds || i < linux_seeds; i++)
		run(VIDMM_HOST_LINUX, first_seed + i);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_seed_preserves_every_byte),
		cmocka_unit_test(a_submission_that_waits_for_a_buffer_feeds_the_gpu),
		cmocka_unit_test(runs_on_threads_preserve_every_byte),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		sim_seeds = linux_seeds = (uint32_t)strtoul(argv[2], NULL, 0);
	if (argc > 3)
		operations = (uint32_t)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		cmocka_set_test_filter(strcmp(argv[4], "sim") ? "runs_on_threads*" : "every_seed*");
	return cmocka_run_group_tests_name("seeds", tests, NULL, NULL);
}
