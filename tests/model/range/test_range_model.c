/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "model/range/range_model.h"

#define SEEDS 300u
#define STEPS 600u

static void the_heap_behaves_like_the_naive_one(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		assert_true(range_model_run(seed, STEPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heap_behaves_like_the_naive_one),
	};

	return cmocka_run_group_tests_name("range_model", tests, NULL, NULL);
}
