/* SPDX-License-Identifier: MIT */
/* Lists and ranges of amounts of video memory. */
#include "size_list.h"
#include "support/test.h"

#define MIB ((uint64_t)1 << 20)

static void expect_mib(const char *text, const uint64_t *mib, unsigned count)
{
	struct size_list list;

	assert_true(size_list_parse(text, &list));
	assert_int_equal(list.count, count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(list.sizes[i].bytes, mib[i] * MIB);
}

static void a_list_keeps_its_order(void **state)
{
	struct size_list list;

	(void)state;
	expect_mib("64M", (uint64_t[]){64}, 1);
	expect_mib("64M,1G,16M", (uint64_t[]){64, 1024, 16}, 3);
	assert_true(size_list_parse("50%,8M,150%largest", &list));
	assert_int_equal(list.count, 3);
	assert_true(list.sizes[0].percent == 50 && !list.sizes[0].largest);
	assert_int_equal(list.sizes[1].bytes, 8 * MIB);
	assert_true(list.sizes[2].percent == 150 && list.sizes[2].largest);
}

static void a_range_doubles_up_to_its_end(void **state)
{
	(void)state;
	expect_mib("64M..8G:geometric", (uint64_t[]){64, 128, 256, 512, 1024, 2048, 4096, 8192}, 8);
	expect_mib("64M..200M:geometric", (uint64_t[]){64, 128, 200}, 3);
	expect_mib("64M..65M:geometric", (uint64_t[]){64, 65}, 2);
}

static void a_range_with_a_count_has_a_constant_ratio(void **state)
{
	struct size_list list;

	(void)state;
	expect_mib("64M..1G:geometric:5", (uint64_t[]){64, 128, 256, 512, 1024}, 5);
	expect_mib("64M..1G:geometric:3", (uint64_t[]){64, 256, 1024}, 3);
	expect_mib("64M..1G:geometric:2", (uint64_t[]){64, 1024}, 2);
	/* 1 MiB times the square root of 2 is 362.04 pages. */
	assert_true(size_list_parse("1M..2M:geometric:3", &list));
	assert_int_equal(list.sizes[1].bytes, 362 * 4096);
	assert_true(size_list_parse("1M..2M:geometric:64", &list));
	assert_int_equal(list.count, 64);
	assert_int_equal(list.sizes[63].bytes, 2 * MIB);
}

static void percentages_have_ranges_too(void **state)
{
	struct size_list list;

	(void)state;
	assert_true(size_list_parse("25%..100%:geometric", &list));
	assert_int_equal(list.count, 3);
	assert_true(list.sizes[0].percent == 25 && list.sizes[1].percent == 50 &&
		    list.sizes[2].percent == 100);
	assert_true(size_list_parse("25%largest..100%largest:geometric:3,1M", &list));
	assert_int_equal(list.count, 4);
	assert_true(list.sizes[1].largest && list.sizes[1].bytes == 0);
	assert_true(list.sizes[1].percent > 49.999 && list.sizes[1].percent < 50.001);
	assert_int_equal(list.sizes[3].bytes, MIB);
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		",",
		"64M,",
		",64M",
		"64M,,1G",
		"much",
		"0",
		"64M..8G",
		"64M..8G:linear",
		"64M..8G:geometric:",
		"64M..8G:geometric:1",
		"64M..8G:geometric:65",
		"64M..8G:geometric:x",
		"64M..8G:geometric:4:4",
		"64M..8G:geometrical",
		"64M..:geometric",
		"..8G:geometric",
		"8G..64M:geometric",
		"64M..64M:geometric",
		"64M..100%:geometric",
		"50%..100%largest:geometric",
		"64M:geometric",
		"64M..128M..1G:geometric",
		"1M..2M:geometric:60,1M..2M:geometric:5",
		"1..1T:geometric,1..1T:geometric",
	};
	struct size_list list;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (size_list_parse(texts[i], &list))
			fail_msg("\"%s\" was taken as a list of sizes", texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_keeps_its_order),
		cmocka_unit_test(a_range_doubles_up_to_its_end),
		cmocka_unit_test(a_range_with_a_count_has_a_constant_ratio),
		cmocka_unit_test(percentages_have_ranges_too),
		cmocka_unit_test(other_texts_are_refused),
	};

	return cmocka_run_group_tests_name("size_list", tests, NULL, NULL);
}
