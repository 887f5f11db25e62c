/* SPDX-License-Identifier: MIT */
/* The versions that the driver expects in blocks, one by one and in runs. */
#include "support/test.h"
#include "content.h"

static void new_content_is_version_zero_in_one_run(void **state)
{
	struct content *content = content_create(1, 5 * 65536 + 4096, 65536);

	(void)state;
	assert_int_equal(content->block_count, 6);
	assert_int_equal(content_version(content, 5), 0);
	assert_int_equal(content_run(content, 0), 6);
	assert_int_equal(content_run(content, 4), 2);
	content_put(content);
}

static void blocks_differ_and_agree_again(void **state)
{
	struct content *content = content_create(1, 4 * 4096, 4096);
	uint32_t version = content_next_version(content);

	(void)state;
	assert_int_equal(version, 1);
	assert_true(content_set(content, 2, version));
	assert_int_equal(content_run(content, 0), 2);
	assert_int_equal(content_run(content, 2), 1);
	assert_int_equal(content_run(content, 3), 1);
	assert_int_equal(content_version(content, 2), 1);
	assert_int_equal(content_version(content, 3), 0);
	content_set_all(content, CONTENT_UNKNOWN);
	assert_int_equal(content_run(content, 0), 4);
	assert_true(content_set(content, 0, content_next_version(content)));
	assert_int_equal(content_version(content, 0), 2);
	assert_int_equal(content_version(content, 1), CONTENT_UNKNOWN);
	content_put(content);
}

static void a_single_block_is_always_uniform(void **state)
{
	struct content *content = content_create(1, 4096, 65536);

	(void)state;
	assert_true(content_set(content, 0, 7));
	assert_true(content->uniform);
	assert_int_equal(content_version(content, 0), 7);
	content_put(content);
}

static void versions_skip_the_two_with_a_meaning(void **state)
{
	struct content *content = content_create(1, 4096, 4096);

	(void)state;
	content->last_version = CONTENT_UNKNOWN - 2;
	assert_int_equal(content_next_version(content), CONTENT_UNKNOWN - 1);
	assert_int_equal(content_next_version(content), 1);
	content_put(content);
}

static void shared_content_lives_until_its_last_holder(void **state)
{
	struct content *content = content_create(1, 4096, 4096);
	struct content *other = content_get(content);

	(void)state;
	content_put(content);
	content_set_all(other, 3);
	assert_int_equal(content_version(other, 0), 3);
	content_put(other);
	content_put(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_content_is_version_zero_in_one_run),
		cmocka_unit_test(blocks_differ_and_agree_again),
		cmocka_unit_test(a_single_block_is_always_uniform),
		cmocka_unit_test(versions_skip_the_two_with_a_meaning),
		cmocka_unit_test(shared_content_lives_until_its_last_holder),
	};

	return cmocka_run_group_tests_name("content", tests, NULL, NULL);
}
