/* SPDX-License-Identifier: MIT */
/* The prediction of the next use (src/policy/order.h), as tables. */
#include "support/test.h"

#include "policy/order.h"

#define DEAD VMM_POLICY_DEAD

/* Uses in these submissions, 0 ends the list; then the distance in submission NOW. */
struct history {
	uint64_t use[24], now, distance;
};

static void check(const struct history *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct vmm_policy_uses uses = {0};

		for (const uint64_t *use = cases[i].use; *use; use++)
			vmm_policy_use(&uses, *use);
		assert_int_equal(vmm_policy_distance(&uses, cases[i].now), cases[i].distance);
		/* The remembered prediction is the same. */
		assert_int_equal(vmm_policy_distance(&uses, cases[i].now), cases[i].distance);
	}
}

static void q_301_the_next_use_is_expected_after_the_median_of_the_intervals(void **state)
{
	static const struct history cases[] = {
		{{10, 15, 20, 25}, 25, 5},
		{{10, 15, 20, 25}, 27, 3},
		{{10, 15, 20, 25}, 29, 1},
		/* 1, 1, 8: the median is 1. The next submission did not use it: the 8 is left. */
		{{10, 11, 12, 20}, 20, 1},
		{{10, 11, 12, 20}, 21, 7},
		{{10, 11, 12, 20}, 22, 6},
		/* 2, 4: of two the lower one; from 2 on the other one. */
		{{10, 12, 16}, 16, 2},
		{{10, 12, 16}, 17, 1},
		{{10, 12, 16}, 18, 2},
		{{10, 12, 16}, 19, 1},
	};

	(void)state;
	check(cases, VMM_ARRAY_LENGTH(cases));
}

static void q_301_overdue_is_expected_next_and_then_dead(void **state)
{
	static const struct history cases[] = {
		{{10, 15, 20}, 24, 1},    {{10, 15, 20}, 25, 1},         {{10, 15, 20}, 29, 1},
		{{10, 15, 20}, 30, DEAD}, {{10, 15, 20}, 1000000, DEAD},
	};

	(void)state;
	check(cases, VMM_ARRAY_LENGTH(cases));
}

static void q_301_without_intervals_the_distance_is_the_idle_time(void **state)
{
	static const struct history cases[] = {
		{{0}, 7, 7},
		{{10}, 10, 0},
		{{10}, 17, 7},
		/* Several uses in one submission are one use. */
		{{10, 10, 10}, 17, 7},
	};

	(void)state;
	check(cases, VMM_ARRAY_LENGTH(cases));
}

static void q_301_only_the_last_16_intervals_count(void **state)
{
	struct vmm_policy_uses uses = {0};
	uint64_t now = 100;

	(void)state;
	vmm_policy_use(&uses, now);
	vmm_policy_use(&uses, now += 1000);
	for (int i = 0; i < 15; i++)
		vmm_policy_use(&uses, now += 3);
	assert_int_equal(vmm_policy_distance(&uses, now + 3), 997);
	vmm_policy_use(&uses, now += 3);
	assert_int_equal(vmm_policy_distance(&uses, now + 2), 1);
	assert_int_equal(vmm_policy_distance(&uses, now + 6), DEAD);
}

static void q_301_a_long_interval_is_stored_as_the_longest(void **state)
{
	static const struct history cases[] = {
		{{10, 1000010}, 1000010, VMM_POLICY_INTERVAL_MAX},
		{{10, 1000010}, 1000010 + 2 * VMM_POLICY_INTERVAL_MAX, DEAD},
	};

	(void)state;
	check(cases, VMM_ARRAY_LENGTH(cases));
}

static void q_301_a_time_with_uses_left_out_is_no_interval(void **state)
{
	struct vmm_policy_uses uses = {0};

	(void)state;
	vmm_policy_use(&uses, 10);
	vmm_policy_use(&uses, 15);
	vmm_policy_missed(&uses, 500);
	assert_int_equal(vmm_policy_distance(&uses, 502), 3);
	vmm_policy_missed(&uses, 400); /* older than what is known */
	assert_int_equal(vmm_policy_distance(&uses, 502), 3);
	vmm_policy_use(&uses, 505);
	assert_int_equal(uses.count, 2);
}

/* Compares with the definition, for random uses: nothing is stale after any step of time. */
static void q_301_the_prediction_is_that_of_its_definition(void **state)
{
	uint64_t random = 12345, now = 1, last = 0;
	uint64_t interval[VMM_POLICY_INTERVALS];
	struct vmm_policy_uses uses = {0};
	uint32_t count = 0;

	(void)state;
	for (uint32_t step = 0; step < 20000; step++) {
		uint64_t longer[VMM_POLICY_INTERVALS], longest = 0, expected;
		uint32_t found = 0;

		random = random * 6364136223846793005u + 1442695040888963407u;
		now += random >> 61;
		if (random >> 33 & 1 && now > last) {
			if (last)
				interval[count++ % VMM_POLICY_INTERVALS] = now - last;
			last = now;
			vmm_policy_use(&uses, now);
		}
		for (uint32_t i = 0; i < count && i < VMM_POLICY_INTERVALS; i++) {
			uint32_t at = found;

			longest = interval[i] > longest ? interval[i] : longest;
			if (interval[i] <= now - last)
				continue;
			for (; at && longer[at - 1] > interval[i]; at--)
				longer[at] = longer[at - 1];
			longer[at] = interval[i];
			found++;
		}
		expected = !count ? now - last : now - last < 2 * longest ? 1 : DEAD;
		if (found)
			expected = longer[(found - 1) / 2] - (now - last);
		assert_int_equal(vmm_policy_distance(&uses, now), expected);
	}
	assert_true(count > 5000);
}

static void q_300_policies_have_names(void **state)
{
	static const char *const names[] = {"lru", "clock", "mru", "predicted"};

	(void)state;
	assert_int_equal(VMM_ARRAY_LENGTH(names), VMM_POLICY_NAMED);
	for (uint32_t i = 0; i < VMM_POLICY_NAMED; i++)
		assert_string_equal(vmm_policy_order(i)->name, names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_301_the_next_use_is_expected_after_the_median_of_the_intervals),
		cmocka_unit_test(q_301_overdue_is_expected_next_and_then_dead),
		cmocka_unit_test(q_301_without_intervals_the_distance_is_the_idle_time),
		cmocka_unit_test(q_301_only_the_last_16_intervals_count),
		cmocka_unit_test(q_301_a_long_interval_is_stored_as_the_longest),
		cmocka_unit_test(q_301_a_time_with_uses_left_out_is_no_interval),
		cmocka_unit_test(q_301_the_prediction_is_that_of_its_definition),
		cmocka_unit_test(q_300_policies_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
