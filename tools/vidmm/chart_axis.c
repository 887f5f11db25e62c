/* SPDX-License-Identifier: MIT */
#include "chart_axis.h"

#include <math.h>
#include <stdio.h>

/* Units of a quantity, and how many of each make the next. */
struct scale {
	double factor;
	const char *names[5]; /* NULL: no larger one */
};

static const struct scale scales[] = {
	[CHART_BYTES] = {1024, {" B", " KiB", " MiB", " GiB", " TiB"}},
	[CHART_TIME] = {1000, {" ns", " \u00b5s", " ms", " s", NULL}},
	[CHART_PERCENT] = {1000, {" %", NULL}},
	[CHART_FACTOR] = {1000, {"\u00d7", NULL}},
};

/* Of an axis whose values are all the same: 1 MiB, 1 ms, 1 %, 1. */
static const double least_ranges[] = {
	[CHART_BYTES] = 1 << 20,
	[CHART_TIME] = 1e6,
	[CHART_PERCENT] = 1,
	[CHART_FACTOR] = 1,
};

/* Returns the largest unit that is not above VALUE, and its name. */
static double unit_of(enum chart_quantity quantity, double value, const char **name)
{
	const struct scale *scale = &scales[quantity];
	double unit = 1;
	unsigned i = 0;

	while (i < 4 && scale->names[i + 1] && value >= unit * scale->factor) {
		unit *= scale->factor;
		i++;
	}
	*name = scale->names[i];
	return unit;
}

/* Returns the smallest distance of neighbors as a part of the whole. */
static double evenness(const uint64_t *sizes, unsigned count, double (*map)(double))
{
	double whole = map((double)sizes[count - 1]) - map((double)sizes[0]), least = 1;

	for (unsigned i = 1; i < count; i++) {
		double gap = (map((double)sizes[i]) - map((double)sizes[i - 1])) / whole;

		if (sizes[i] > sizes[i - 1] && gap < least)
			least = gap;
	}
	return least;
}

static double itself(double value)
{
	return value;
}

struct chart_axis chart_axis_of_sizes(const uint64_t *sizes, unsigned count)
{
	struct chart_axis axis = {.low = (double)sizes[0], .high = (double)sizes[count - 1]};

	if (axis.low < axis.high)
		axis.logarithmic = evenness(sizes, count, log2) > evenness(sizes, count, itself);
	return axis;
}

/* Returns 1, 2 or 5 times a power of ten, at least VALUE. */
static double round_step(double value)
{
	double power = pow(10, floor(log10(value)));
	double part = value / power;

	if (part <= 1)
		return power;
	return (part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

struct chart_axis chart_axis_of_values(enum chart_quantity quantity, double low, double high)
{
	struct chart_axis axis = {.low = low};
	const char *name;
	double unit;

	if (high <= low)
		high = low + least_ranges[quantity];
	unit = unit_of(quantity, high, &name);
	/* A power of two has a short text in each unit of bytes. */
	if (quantity == CHART_BYTES)
		axis.step = exp2(ceil(log2((high - low) / 6)));
	else
		axis.step = round_step((high - low) / unit / 4) * unit;
	/* Half a byte or half a nanosecond is no tick. */
	if ((quantity == CHART_BYTES || quantity == CHART_TIME) && axis.step < 1)
		axis.step = 1;
	/* Each tick is a multiple of the step. */
	if (axis.step > low)
		axis.low = 0;
	axis.high = ceil(high / axis.step - 1e-9) * axis.step;
	return axis;
}

double chart_axis_at(const struct chart_axis *axis, double value)
{
	double part = 0.5;

	if (axis->low < axis->high && axis->logarithmic)
		part = log2(value / axis->low) / log2(axis->high / axis->low);
	else if (axis->low < axis->high)
		part = (value - axis->low) / (axis->high - axis->low);
	return axis->from + part * (axis->to - axis->from);
}

const char *chart_axis_label(enum chart_quantity quantity, double value, char *text, size_t size)
{
	const char *name;
	double scaled = value / unit_of(quantity, value, &name);

	if (value == 0)
		name = "";
	snprintf(text, size, scaled < 99.95 ? "%.3g%s" : "%.0f%s", scaled, name);
	return text;
}
