/* SPDX-License-Identifier: MIT */
/*
 * fuzz_locks [SECONDS [SEED]]: races of locks (lock_race.h): rounds of 10^6 operations on real
 * threads, and shorter rounds on the simulator in between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <support/test.h>

#include <vidmm/vidmm.h>

#include "lock_race.h"

enum { FEW = 2000, SOME = 20000, MANY = 1000000 };

static void round_of(uint64_t seed, uint64_t on_threads, uint64_t on_sim)
{
	struct race_statistics threads = race_run(VIDMM_HOST_LINUX, seed, on_threads);
	struct race_statistics sim = race_run(VIDMM_HOST_SIM, seed, on_sim);

	printf("# seed %llu: %llu and %llu operations, %llu and %llu evictions\n",
	       (unsigned long long)seed, (unsigned long long)threads.operations,
	       (unsigned long long)sim.operations, (unsigned long long)threads.evictions,
	       (unsigned long long)sim.evictions);
	fflush(stdout);
}

static void lock_03_a_few_rounds(void **state)
{
	(void)state;
	for (uint64_t seed = 1000; seed < 1003; seed++)
		round_of(seed, FEW, FEW);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lock_03_a_few_rounds)};

	if (count < 2)
		return cmocka_run_group_tests_name("fuzz_locks", tests, NULL, NULL);
	time_t end = time(NULL) + strtol(arguments[1], NULL, 0);
	uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 0) : 1;

	do
		round_of(seed++, MANY, SOME);
	while (time(NULL) < end);
	return 0;
}
