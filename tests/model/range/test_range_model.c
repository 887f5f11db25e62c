/* SPDX-License-Identifier: MIT */
/* test_range_model [SEED]: all seeds of the suite, or one that failed. */
#include <stdlib.h>

#include "support/test.h"

#include "model/range/range_model.h"

#define SEEDS 300u
#define STEPS 600u

static uint64_t only_seed;

static void random_operations_match_the_naive_heap(void **state)
{
	(void)state;
	if (only_seed)
		assert_true(range_model_run(only_seed, STEPS));
	for (uint64_t seed = 1; !only_seed && seed <= SEEDS; seed++)
		assert_true(range_model_run(seed, STEPS));
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_match_the_naive_heap),
	};

	if (count > 1)
		only_seed = strtoull(arguments[1], NULL, 0);
	return cmocka_run_group_tests_name("range_model", tests, NULL, NULL);
}
