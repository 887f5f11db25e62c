/* SPDX-License-Identifier: MIT */
/*
 * random_legal [FIRST_SEED [OPERATIONS [EACH]]]: a million random legal operations in all
 * builds together (support/seeds.h), EACH of them on one adapter.
 */
#include "random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/seeds.h"

/* Of each build. One thread: ThreadSanitizer finds little in it. */
static const uint64_t share_of_build[] = {600000, 200000, 200000, 20000};
#define FEW   200000u
#define SEEDS 1000u /* of a build, at most */

static uint64_t first_seed, operations, each = 5000;

static void report(const struct random_totals *t, uint64_t seed)
{
	static const char *const names[RANDOM_KINDS] = {
		[RANDOM_CREATE] = "creates",
		[RANDOM_DESTROY] = "destroys",
		[RANDOM_LOCK] = "locks",
		[RANDOM_UNLOCK] = "unlocks after other work",
		[RANDOM_RENDER] = "renders",
		[RANDOM_COMPARE_BY_COPY] = "comparisons by copy",
		[RANDOM_OFFER] = "offers",
		[RANDOM_RECLAIM] = "reclaims",
		[RANDOM_PRIORITY] = "lists of priorities",
		[RANDOM_QUERY] = "residency queries",
		[RANDOM_MAKE_RESIDENT] = "made resident",
		[RANDOM_EVICT] = "evicted",
		[RANDOM_UPDATE] = "properties changed",
		[RANDOM_GPU] = "turns of the GPU",
	};

	printf("# %" PRIu64 " operations, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64
	       " evictions, %" PRIu64 " MiB paged in, %" PRIu64 " MiB out, %" PRIu64
	       " MiB discarded, %" PRIu64 " MiB compared\n#",
	       t->operations, first_seed, seed - 1, t->evictions, t->paged_in >> 20,
	       t->paged_out >> 20, t->discards >> 20, t->compared_bytes >> 20);
	for (uint32_t k = 0; k < RANDOM_KINDS; k++)
		printf(" %" PRIu64 " %s%s", t->done[k], names[k], k + 1 < RANDOM_KINDS ? "," : "");
	printf("\n# properties drawn below 2.0: 0x%" PRIx64 ", from 2.0 on: 0x%" PRIx64
	       "; flags of locks: 0x%" PRIx64 ", 0x%" PRIx64 "\n",
	       t->properties[0], t->properties[1], t->lock_flags[0], t->lock_flags[1]);
}

static void a_million_legal_operations_keep_every_byte(void **state)
{
	struct random_totals totals = {.operations = 0};
	uint64_t seed = first_seed;

	(void)state;
	while (totals.operations < operations)
		random_run(seed++, each, &totals);
	report(&totals, seed);
	if (operations < FEW) /* a run by hand */
		return;
	for (uint32_t k = 0; k < RANDOM_KINDS; k++)
		assert_true(totals.done[k] > operations / 1000);
	assert_true(totals.evictions > operations / 100);
	/* Every built property and every flag of a lock was drawn. */
	assert_int_equal(totals.properties[0], 0x7FFF);
	assert_int_equal(totals.properties[1], 0x7F | PINNED | NO_LARGE_PAGES | IN_VPR | PHYSICAL |
						       NOTIFY | HARDWARE_PROTECTED | ON_DEMAND |
						       HISTORY | MAP_VISIBLE);
	assert_int_equal(totals.lock_flags[0], LOCK_FLAGS);
	assert_int_equal(totals.lock_flags[1],
			 LOCK_FLAGS & ~(uint32_t)(ACQUIRE_APERTURE | USE_ALTERNATE_VA));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_legal_operations_keep_every_byte),
	};

	first_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 + seeds_build_number() * SEEDS;
	operations =
		argc > 2 ? strtoull(argv[2], NULL, 0) : share_of_build[seeds_build_number() & 3];
	if (argc > 3)
		each = strtoull(argv[3], NULL, 0);
	return cmocka_run_group_tests_name("random_legal", tests, NULL, NULL);
}
