/* SPDX-License-Identifier: MIT */
/* Decisions of src/policy, as tables. */
#include "support/test.h"

#include "policy/policy.h"

enum { NONE, LOW, NORMAL, HIGH, AUTO }; /* D3DDDI_OFFER_PRIORITY */

#define MINIMUM_PRIORITY 0x28000000u
#define LOW_PRIORITY     0x50000000u
#define NORMAL_PRIORITY  0x78000000u
#define HIGH_PRIORITY    0xA0000000u
#define MAXIMUM_PRIORITY 0xC8000000u

static void pri_01_a_value_between_two_named_values_belongs_to_the_lower(void **state)
{
	static const struct {
		uint32_t priority;
		enum vmm_policy_class expected;
	} cases[] = {
		{0, VMM_POLICY_PRIORITY_MINIMUM},
		{1, VMM_POLICY_PRIORITY_MINIMUM},
		{MINIMUM_PRIORITY, VMM_POLICY_PRIORITY_MINIMUM},
		{LOW_PRIORITY - 1, VMM_POLICY_PRIORITY_MINIMUM},
		{LOW_PRIORITY, VMM_POLICY_PRIORITY_LOW},
		{NORMAL_PRIORITY - 1, VMM_POLICY_PRIORITY_LOW},
		{NORMAL_PRIORITY, VMM_POLICY_PRIORITY_NORMAL},
		{NORMAL_PRIORITY + 1, VMM_POLICY_PRIORITY_NORMAL},
		{HIGH_PRIORITY - 1, VMM_POLICY_PRIORITY_NORMAL},
		{HIGH_PRIORITY, VMM_POLICY_PRIORITY_HIGH},
		{MAXIMUM_PRIORITY - 1, VMM_POLICY_PRIORITY_HIGH},
		{MAXIMUM_PRIORITY, VMM_POLICY_PRIORITY_MAXIMUM},
		{UINT32_MAX, VMM_POLICY_PRIORITY_MAXIMUM},
	};

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++)
		assert_int_equal(vmm_policy_class(NONE, cases[i].priority), cases[i].expected);
}

static void ofr_04_offered_memory_is_evicted_low_normal_high_before_the_rest(void **state)
{
	static const struct {
		uint32_t offer, priority;
	} order[] = {
		{LOW, MAXIMUM_PRIORITY},  {NORMAL, MINIMUM_PRIORITY}, {HIGH, MINIMUM_PRIORITY},
		{NONE, MINIMUM_PRIORITY}, {NONE, LOW_PRIORITY},       {NONE, NORMAL_PRIORITY},
		{NONE, HIGH_PRIORITY},    {NONE, MAXIMUM_PRIORITY},
	};

	(void)state;
	assert_int_equal(VMM_ARRAY_LENGTH(order), VMM_POLICY_CLASS_COUNT);
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(order); i++)
		assert_int_equal(vmm_policy_class(order[i].offer, order[i].priority), i);
}

static void ofr_04_auto_is_ranked_by_the_allocations_priority(void **state)
{
	static const struct {
		uint32_t priority;
		enum vmm_policy_class expected;
	} cases[] = {
		{0, VMM_POLICY_OFFERED_LOW},
		{MINIMUM_PRIORITY, VMM_POLICY_OFFERED_LOW},
		{LOW_PRIORITY, VMM_POLICY_OFFERED_LOW},
		{NORMAL_PRIORITY - 1, VMM_POLICY_OFFERED_LOW},
		{NORMAL_PRIORITY, VMM_POLICY_OFFERED_NORMAL},
		{HIGH_PRIORITY - 1, VMM_POLICY_OFFERED_NORMAL},
		{HIGH_PRIORITY, VMM_POLICY_OFFERED_HIGH},
		{MAXIMUM_PRIORITY, VMM_POLICY_OFFERED_HIGH},
		{UINT32_MAX, VMM_POLICY_OFFERED_HIGH},
	};

	(void)state;
	for (size_t i = 0; i < VMM_ARRAY_LENGTH(cases); i++)
		assert_int_equal(vmm_policy_class(AUTO, cases[i].priority), cases[i].expected);
}

static void a_victim_is_idle_movable_and_not_in_the_working_set(void **state)
{
	/* One bit each: busy, pinned, locked, in the working set, locked_allowed. */
	(void)state;
	for (unsigned bits = 0; bits < 32; bits++) {
		struct vmm_policy_victim victim = {.size_bytes = 4096,
						   .busy = bits & 1,
						   .pinned = bits & 2,
						   .locked = bits & 4,
						   .required = bits & 8};
		struct vmm_policy_need need = {
			.size_bytes = 65536, .now = 10, .locked_allowed = bits & 16};
		/*
		 * Allowed: no bit set, only the lock with its permission, or only the permission.
		 */
		bool expected = bits == 0 || bits == 16 || bits == (4 | 16);

		assert_int_equal(vmm_policy_take(&victim, &need), expected);
	}
}

static void an_instance_without_memory_is_no_victim(void **state)
{
	struct vmm_policy_victim victim = {.size_bytes = 0};
	struct vmm_policy_need need = {.size_bytes = 4096, .locked_allowed = true};

	(void)state;
	assert_false(vmm_policy_take(&victim, &need));
}

struct rename {
	uint32_t instances, limit;
	uint64_t bytes;
	bool pressure, expected;
};

static void check_renames(const struct rename *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(vmm_policy_rename_grow(cases[i].instances, cases[i].limit,
							cases[i].bytes, cases[i].pressure),
				 cases[i].expected);
}

static void ren_07_the_limit_is_never_exceeded(void **state)
{
	static const struct rename cases[] = {
		{1, 1, 4096, false, false}, {1, 2, 4096, false, true},  {2, 3, 4096, false, true},
		{3, 3, 4096, false, false}, {4, 3, 4096, false, false}, {3, 3, 4096, true, false},
		{2, 3, 4096, true, true},
	};

	(void)state;
	check_renames(cases, VMM_ARRAY_LENGTH(cases));
}

static void ren_08_zero_is_no_limit(void **state)
{
	(void)state;
	for (uint32_t instances = 1; instances <= 100; instances++)
		assert_true(vmm_policy_rename_grow(instances, 0, 16 << 20, false));
}

static void ren_02_pressure_stops_growth_once_something_can_be_waited_for(void **state)
{
	static const struct rename cases[] = {
		/*
		 * Only the current instance: it is not handed out again, so there is no instance to
		 * wait for.
		 */
		{1, 0, (uint64_t)1 << 40, true, true},
		{2, 0, (uint64_t)1 << 20, true, false},
		/* A list whose total stays small may grow: 4 x 64 KiB, then no more. */
		{3, 0, 65536, true, true},
		{4, 0, 65536, true, false},
		{63, 0, 4096, true, true},
		{64, 0, 4096, true, false},
		{2, 0, UINT64_MAX / 2, true, false},
	};

	(void)state;
	check_renames(cases, VMM_ARRAY_LENGTH(cases));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pri_01_a_value_between_two_named_values_belongs_to_the_lower),
		cmocka_unit_test(ofr_04_offered_memory_is_evicted_low_normal_high_before_the_rest),
		cmocka_unit_test(ofr_04_auto_is_ranked_by_the_allocations_priority),
		cmocka_unit_test(a_victim_is_idle_movable_and_not_in_the_working_set),
		cmocka_unit_test(an_instance_without_memory_is_no_victim),
		cmocka_unit_test(ren_07_the_limit_is_never_exceeded),
		cmocka_unit_test(ren_08_zero_is_no_limit),
		cmocka_unit_test(ren_02_pressure_stops_growth_once_something_can_be_waited_for),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
