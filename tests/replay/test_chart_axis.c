/* SPDX-License-Identifier: MIT */
/* The axes of charts: their ticks and labels. */
#include <math.h>

#include "chart_axis.h"
#include "support/test.h"

static void an_axis_has_round_ticks(void **state)
{
	static const struct {
		enum chart_quantity quantity;
		double low, high;
		struct chart_axis expected;
	} cases[] = {
		{CHART_BYTES, 0, 9.1e9, {.low = 0, .high = 10737418240.0, .step = 2147483648.0}},
		{CHART_BYTES, 0, 0, {.low = 0, .high = 1048576, .step = 262144}},
		{CHART_BYTES, 0, 3, {.low = 0, .high = 3, .step = 1}},
		{CHART_TIME, 0, 16.8e6, {.low = 0, .high = 20e6, .step = 5e6}},
		{CHART_PERCENT, 0, 1, {.low = 0, .high = 1, .step = 0.5}},
		{CHART_PERCENT, 0, 100, {.low = 0, .high = 100, .step = 50}},
		{CHART_FACTOR, 1, 1, {.low = 1, .high = 2, .step = 0.5}},
		{CHART_FACTOR, 1, 2.3, {.low = 1, .high = 2.5, .step = 0.5}},
		{CHART_FACTOR, 1, 28.4, {.low = 0, .high = 30, .step = 10}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chart_axis axis =
			chart_axis_of_values(cases[i].quantity, cases[i].low, cases[i].high);

		if (fabs(axis.low - cases[i].expected.low) > 1e-6 ||
		    fabs(axis.high - cases[i].expected.high) > 1e-6 ||
		    fabs(axis.step - cases[i].expected.step) > 1e-6)
			fail_msg("case %zu: %g to %g in steps of %g", i, axis.low, axis.high,
				 axis.step);
	}
}

static void labels_are_short(void **state)
{
	static const struct {
		enum chart_quantity quantity;
		double value;
		const char *text;
	} cases[] = {
		{CHART_BYTES, 0, "0"},
		{CHART_BYTES, 1023, "1023 B"},
		{CHART_BYTES, 512 << 20, "512 MiB"},
		{CHART_BYTES, 1536u << 20, "1.5 GiB"},
		{CHART_BYTES, 0x1p52, "4096 TiB"},
		{CHART_TIME, 2.5e6, "2.5 ms"},
		{CHART_TIME, 9e12, "9000 s"},
		{CHART_PERCENT, 2.5, "2.5 %"},
		{CHART_FACTOR, 1500, "1500\u00d7"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
			chart_axis_label(cases[i].quantity, cases[i].value, text, sizeof(text)),
			cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_axis_has_round_ticks),
		cmocka_unit_test(labels_are_short),
	};

	return cmocka_run_group_tests_name("chart_axis", tests, NULL, NULL);
}
