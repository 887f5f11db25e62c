/* SPDX-License-Identifier: MIT */
/*
 * test_lock_race [SEED]: eight threads whose locked memory is evicted and paged; no store of
 * theirs is lost.
 */
#include <stdio.h>

#include "lock_race.h"
#include "world.h"

enum { OPERATIONS = 10000 };

static void race(void **state, uint64_t first_seed, uint32_t seeds)
{
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
		struct race_statistics f = race_run(*(uint32_t *)*state, seed, OPERATIONS);

		print_message("# seed %llu: %llu operations, %llu evictions, %llu renames\n",
			      (unsigned long long)seed, (unsigned long long)f.operations,
			      (unsigned long long)f.evictions, (unsigned long long)f.renames);
		assert_true(f.evictions > 0 && f.renames > 0);
	}
}

static void lock_04_pag_16_lkr_04_no_store_to_locked_memory_is_lost_when_it_moves(void **state)
{
	race(state, 1, *(uint32_t *)*state == VIDMM_HOST_SIM ? 4 : 2);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		BOTH(lock_04_pag_16_lkr_04_no_store_to_locked_memory_is_lost_when_it_moves),
	};

	if (count > 1) { /* repeats one seed of the simulator */
		void *kind = &on_sim;

		race(&kind, strtoull(arguments[1], NULL, 0), 1);
		return 0;
	}
	return cmocka_run_group_tests_name("lock race", tests, NULL, NULL);
}
