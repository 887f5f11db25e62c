/* SPDX-License-Identifier: MIT */
/*
 * fuzz_range [SECONDS [SEED]]: compares the range heap with its model, on seeds from SEED on, for
 * SECONDS or until they differ. Without arguments a fixed number of seeds, as a test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model/range/range_model.h"

#define FIXED_ROUNDS 20u
#define STEPS        5000u

int main(int count, char **arguments)
{
	time_t end = count > 1 ? time(NULL) + strtol(arguments[1], NULL, 0) : 0;
	uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 0) : 1000000, round = 0;
	bool same = true;

	printf("1..1\n");
	for (; same && (count > 1 ? time(NULL) < end : round < FIXED_ROUNDS); round++)
		same = range_model_run(seed + round, STEPS);
	if (!same)
		printf("# failed with seed %llu\n", (unsigned long long)(seed + round - 1));
	printf("%s 1 - range_model, %llu rounds of %u steps\n", same ? "ok" : "not ok",
	       (unsigned long long)round, STEPS);
	return same ? 0 : 1;
}
