/* SPDX-License-Identifier: MIT */
/* The prediction of the next use (src/policy/order.h), as tables. */
#include "support/test.h"

#include "policy/order.h"

#include <string.h>

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
		/* 2, 5: of two the lower one; from 2 on the other one. */
		{{10, 12, 17}, 17, 2},
		{{10, 12, 17}, 18, 1},
		{{10, 12, 17}, 19, 3},
		{{10, 12, 17}, 20, 2},
	};

	(void)state;
	check(cases, VMM_ARRAY_LENGTH(cases));
}

/* Intervals in the comments: the oldest first. */
static void q_301_intervals_that_followed_ones_like_the_last_count(void **state)
{
	static const struct history cases[] = {
		/* 10, 40, 10, 40, 10: after a 10 came a 40; then: after a 40 came a 10. */
		{{100, 110, 150, 160, 200, 210}, 211, 39},
		{{100, 110, 150, 160, 200}, 201, 9},
		/* 20, 5, 90, 5, 20, 5: after 20, 5 came the 90, after a 5 also a 20. */
		{{100, 120, 125, 215, 220, 240, 245}, 246, 89},
		/* 6, 60, 6, 60, 6, 30, 6: 60, 6 is like 30, 6; 60 and 30 followed. */
		{{100, 106, 166, 172, 232, 238, 268, 274}, 275, 29},
		/* 5, 90, 5, 70, 5, 20, 5: nothing is like 20, 5; after a 5 came 20, 70 and 90. */
		{{100, 105, 195, 200, 270, 275, 295, 300}, 301, 69},
		/* It was not used after 20: of 70 and 90 the lower one, then the 90. */
		{{100, 105, 195, 200, 270, 275, 295, 300}, 320, 50},
		{{100, 105, 195, 200, 270, 275, 295, 300}, 370, 20},
		/* 9, 9, 100: nothing followed an interval like 100, so that all three count. */
		{{100, 109, 118, 218}, 219, 8},
		/* 8, 4, 50, 4: half as long is alike; 9, 4, 50, 4: less than half is not. */
		{{100, 108, 112, 162, 166}, 167, 3},
		{{100, 109, 113, 163, 167}, 168, 49},
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

/* The intervals of a history of uses, the oldest first, at most those that are remembered. */
struct intervals {
	uint64_t interval[VMM_POLICY_INTERVALS];
	size_t count;
};

static void add_interval(struct intervals *of, uint64_t interval)
{
	if (of->count == VMM_POLICY_INTERVALS)
		memmove(of->interval, of->interval + 1, --of->count * sizeof(of->interval[0]));
	of->interval[of->count++] = interval;
}

/* Whether the LENGTH intervals before the one at END are like the last LENGTH ones. */
static bool ends_alike(const struct intervals *of, size_t end, size_t length)
{
	if (end < length)
		return false;
	for (size_t k = 1; k <= length; k++) {
		uint64_t one = of->interval[end - k], other = of->interval[of->count - k];

		if (one * 2 < other || other * 2 < one)
			return false;
	}
	return true;
}

/* The lower median of those above IDLE after LENGTH ones like the last; 0: there is none. */
static uint64_t median_after(const struct intervals *of, uint64_t idle, size_t length)
{
	uint64_t longer[VMM_POLICY_INTERVALS];
	size_t found = 0;

	for (size_t i = 0; i < of->count; i++) {
		size_t at = found;

		if (of->interval[i] <= idle || !ends_alike(of, i, length))
			continue;
		for (; at && longer[at - 1] > of->interval[i]; at--)
			longer[at] = longer[at - 1];
		longer[at] = of->interval[i];
		found++;
	}
	return found ? longer[(found - 1) / 2] : 0;
}

static uint64_t defined_distance(const struct intervals *of, uint64_t idle)
{
	uint64_t longest = 0;

	for (size_t length = VMM_POLICY_CONTEXT + 1; length--;) {
		uint64_t median = median_after(of, idle, length);

		if (median)
			return median - idle;
	}
	for (size_t i = 0; i < of->count; i++)
		longest = of->interval[i] > longest ? of->interval[i] : longest;
	return !of->count ? idle : idle < 2 * longest ? 1 : DEAD;
}

/* Nothing is stale at any idle time until the candidate is dead: 2, 1 and no intervals match. */
static void q_301_the_remembered_prediction_follows_the_idle_time(void **state)
{
	static const uint64_t lengths[] = {20, 5, 90, 5, 20, 5, 90, 7, 20, 5};
	struct vmm_policy_uses uses = {0};
	struct intervals intervals = {0};
	uint64_t now = 100;

	(void)state;
	vmm_policy_use(&uses, now);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(lengths); i++) {
		vmm_policy_use(&uses, now += lengths[i]);
		add_interval(&intervals, lengths[i]);
		if (i == 4) { /* a later use without an interval */
			vmm_policy_missed(&uses, now += 33);
			assert_int_equal(vmm_policy_distance(&uses, now + 1),
					 defined_distance(&intervals, 1));
		}
		for (uint64_t idle = 0; idle <= 200; idle++) {
			struct vmm_policy_uses copy = uses;

			assert_int_equal(vmm_policy_distance(&copy, now + idle),
					 defined_distance(&intervals, idle));
		}
	}
	for (uint64_t idle = 0; idle <= 200; idle++)
		assert_int_equal(vmm_policy_distance(&uses, now + idle),
				 defined_distance(&intervals, idle));
	assert_int_equal(vmm_policy_distance(&uses, now + 200), DEAD);
}

/* Compares with the definition, for random uses: nothing is stale after any step of time. */
static void q_301_the_prediction_is_that_of_its_definition(void **state)
{
	uint64_t random = 12345, now = 1, last = 0;
	struct vmm_policy_uses uses = {0};
	struct intervals intervals = {0};
	uint32_t count = 0;

	(void)state;
	for (uint32_t step = 0; step < 20000; step++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		now += random >> 61;
		if (random >> 33 & 1 && now > last) {
			if (last)
				add_interval(&intervals, now - last);
			count += last != 0;
			last = now;
			vmm_policy_use(&uses, now);
		}
		assert_int_equal(vmm_policy_distance(&uses, now),
				 defined_distance(&intervals, now - last));
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
		cmocka_unit_test(q_301_intervals_that_followed_ones_like_the_last_count),
		cmocka_unit_test(q_301_overdue_is_expected_next_and_then_dead),
		cmocka_unit_test(q_301_without_intervals_the_distance_is_the_idle_time),
		cmocka_unit_test(q_301_only_the_last_16_intervals_count),
		cmocka_unit_test(q_301_a_long_interval_is_stored_as_the_longest),
		cmocka_unit_test(q_301_a_time_with_uses_left_out_is_no_interval),
		cmocka_unit_test(q_301_the_remembered_prediction_follows_the_idle_time),
		cmocka_unit_test(q_301_the_prediction_is_that_of_its_definition),
		cmocka_unit_test(q_300_policies_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
