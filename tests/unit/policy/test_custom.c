/* SPDX-License-Identifier: MIT */
/* What is required of a policy of the embedder (src/policy/custom.h, Q-351), as a table. */
#include "support/test.h"

#include "policy/custom.h"

#include <string.h>

static struct vidmm_policy_description description;

static const struct vidmm_policy_description *describe(void)
{
	return &description;
}

static const struct vidmm_policy_description *describe_nothing(void)
{
	return NULL;
}

static void used(void *state, const struct vidmm_policy_use *use)
{
	(void)state;
	(void)use;
}

static uint64_t value(void *state, const struct vidmm_policy_candidate *candidate)
{
	(void)state;
	return candidate->used;
}

#define GOOD                                                                                     \
	.struct_size = sizeof(description), .version = VIDMM_POLICY_VERSION, .name = "my-own_2", \
	.state_bytes = 64, .flags = 3

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct {
	struct vidmm_policy_description description;
	const char *why; /* NULL: valid */
} cases[] = {
	{{GOOD}, NULL},
	{{GOOD, .state_bytes = 0, .flags = 0}, NULL},
	{{GOOD, .name = "abcdefghijklmnopqrstuvwxyz01234"}, NULL}, /* 31 characters */
	{{GOOD, .struct_size = 0}, "struct_size 0: expected"},
	{{GOOD, .struct_size = sizeof(description) + 8}, "struct_size 32: expected 24"},
	{{GOOD, .version = 0}, "of version 0: expected version 1"},
	{{GOOD, .version = 2, .struct_size = 99}, "of version 2: expected version 1"},
	{{GOOD, .name = NULL}, "name is \"(null)\": expected"},
	{{GOOD, .name = ""}, "name is \"\": expected"},
	{{GOOD, .name = "abcdefghijklmnopqrstuvwxyz012345"}, "expected 1 to 31"},
	{{GOOD, .name = "LRU"}, "the first a letter"},
	{{GOOD, .name = "2nd"}, "the first a letter"},
	{{GOOD, .name = "a/b"}, "the first a letter"},
	{{GOOD, .name = "clock"}, "\"clock\" is one of vidmm's"},
	{{GOOD, .name = "reference"}, "\"reference\" is one of vidmm's"},
	{{GOOD, .name = "all"}, "\"all\" is one of vidmm's"},
	{{GOOD, .state_bytes = 65}, "state_bytes 65: expected up to 64"},
	{{GOOD, .flags = 4}, "flags 0x4: only 0x3 are known"},
};
#pragma GCC diagnostic pop

static void q_351_a_description_is_checked_before_it_is_used(void **state)
{
	const struct vidmm_policy policy = {describe, used, value};
	char why[160];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		description = cases[i].description;
		const struct vidmm_policy_description *found =
			vmm_policy_description(&policy, why, sizeof(why));

		if (!cases[i].why) {
			assert_ptr_equal(found, &description);
			continue;
		}
		assert_null(found);
		assert_memory_equal(why, "Q-351: ", 7);
		assert_non_null(strstr(why, cases[i].why));
	}
}

static void q_351_a_function_that_is_missing_is_named(void **state)
{
	const struct {
		struct vidmm_policy policy;
		const char *why;
	} lacking[] = {
		{{NULL, used, value}, "function describe of the policy is NULL"},
		{{describe, NULL, value}, "function used of the policy is NULL"},
		{{describe, used, NULL}, "function value of the policy is NULL"},
		{{describe_nothing, used, value}, "description is NULL"},
	};
	char why[160];

	(void)state;
	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
		assert_null(vmm_policy_description(&lacking[i].policy, why, sizeof(why)));
		assert_memory_equal(why, "Q-351: ", 7);
		assert_non_null(strstr(why, lacking[i].why));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_351_a_description_is_checked_before_it_is_used),
		cmocka_unit_test(q_351_a_function_that_is_missing_is_named),
	};

	return cmocka_run_group_tests_name("policy_custom", tests, NULL, NULL);
}
