/* SPDX-License-Identifier: MIT */
/* Parsing and printing of sizes, percentages and counts. */
#include "link.h"
#include "support/test.h"
#include "units.h"

static uint64_t size_of(const char *text)
{
	uint64_t bytes = 0;

	return units_parse_size(text, &bytes) ? bytes : 0;
}

static void sizes_have_powers_of_1024(void **state)
{
	(void)state;
	assert_int_equal(size_of("4096"), 4096);
	assert_int_equal(size_of("512K"), 512 * 1024);
	assert_int_equal(size_of("256m"), 256u << 20);
	assert_int_equal(size_of("256MiB"), 256u << 20);
	assert_int_equal(size_of("256MB"), 256u << 20);
	assert_int_equal(size_of("1.5G"), 1536u << 20);
	assert_int_equal(size_of("1T"), (uint64_t)1 << 40);
	assert_int_equal(size_of("10B"), 10);
}

static void other_texts_are_refused_as_sizes(void **state)
{
	static const char *const texts[] = {"",    "M",    "-1",    "+1",       "0",    "0.5",
					    "1e6", "0x10", "1 M",   "1MM",      "1MX",  "50%",
					    "inf", "nan",  "1KiBs", "9999999T", "1.2.3"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (size_of(texts[i]) != 0)
			fail_msg("\"%s\" was taken as a size", texts[i]);
	}
}

static void percentages_end_with_their_sign(void **state)
{
	double percent;

	(void)state;
	assert_true(units_parse_percent("50%", &percent) && percent == 50);
	assert_true(units_parse_percent("12.5%", &percent) && percent == 12.5);
	assert_false(units_parse_percent("50", &percent));
	assert_false(units_parse_percent("0%", &percent));
	assert_false(units_parse_percent("-5%", &percent));
	assert_false(units_parse_percent("5%%", &percent));
}

static void numbers_are_printed_with_units(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(units_count(0, text, sizeof(text)), "0");
	assert_string_equal(units_count(999, text, sizeof(text)), "999");
	assert_string_equal(units_count(1000, text, sizeof(text)), "1,000");
	assert_string_equal(units_count(UINT64_MAX, text, sizeof(text)),
			    "18,446,744,073,709,551,615");
	assert_string_equal(units_bytes(1023, text, sizeof(text)), "1023 B");
	assert_string_equal(units_bytes(1536, text, sizeof(text)), "1.50 KiB");
	assert_string_equal(units_bytes((uint64_t)321 << 20, text, sizeof(text)), "321 MiB");
	assert_string_equal(units_bytes(1048575, text, sizeof(text)), "1.00 MiB");
	assert_string_equal(units_time(950, text, sizeof(text)), "950 ns");
	assert_string_equal(units_time(2500000, text, sizeof(text)), "2.50 ms");
	assert_string_equal(units_time(39700000000, text, sizeof(text)), "39.7 s");
}

static void plain_numbers_have_no_sign(void **state)
{
	uint64_t value;

	(void)state;
	assert_true(units_parse_u64("0", &value) && value == 0);
	assert_true(units_parse_u64("18446744073709551615", &value) && value == UINT64_MAX);
	assert_true(units_parse_u64("0x10", &value) && value == 16);
	assert_false(units_parse_u64("-1", &value));
	assert_false(units_parse_u64("1x", &value));
	assert_false(units_parse_u64("", &value));
	assert_false(units_parse_u64("18446744073709551616", &value));
}

static void links_have_the_rate_of_their_lanes(void **state)
{
	struct link_model link;

	(void)state;
	assert_true(link_parse("pcie3x16", &link));
	assert_int_equal(link.bytes_per_us, 13868);
	assert_int_equal(link.latency_ns, 2500);
	assert_true(link_parse("pcie5x16", &link));
	assert_int_equal(link.bytes_per_us, 55447);
	assert_true(link_parse("pcie1x1", &link));
	assert_int_equal(link.bytes_per_us, 220);
	assert_true(link_parse("none", &link));
	assert_int_equal(link.bytes_per_us, 0);
	assert_int_equal(link.latency_ns, 0);
}

static void other_names_of_links_are_refused(void **state)
{
	static const char *const names[] = {"",         "pcie",    "pcie3",    "pcie0x1",
					    "pcie7x1",  "pcie3x3", "pcie3x32", "pcie3x16 ",
					    "PCIE3x16", "none "};
	struct link_model link;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (link_parse(names[i], &link))
			fail_msg("\"%s\" was taken as a link", names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_powers_of_1024),
		cmocka_unit_test(other_texts_are_refused_as_sizes),
		cmocka_unit_test(percentages_end_with_their_sign),
		cmocka_unit_test(numbers_are_printed_with_units),
		cmocka_unit_test(plain_numbers_have_no_sign),
		cmocka_unit_test(links_have_the_rate_of_their_lanes),
		cmocka_unit_test(other_names_of_links_are_refused),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
