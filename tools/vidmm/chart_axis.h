/* SPDX-License-Identifier: MIT */
/* chart_axis: where values lie on the axis of a chart, and which values its ticks have. */
#ifndef VIDMM_TOOLS_CHART_AXIS_H
#define VIDMM_TOOLS_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chart_quantity {
	CHART_BYTES,
	CHART_TIME, /* in ns */
	CHART_PERCENT,
	CHART_FACTOR
};

struct chart_axis {
	double low, high; /* values */
	double from, to;  /* positions of `low` and `high` */
	double step;      /* between ticks */
	bool logarithmic;
};

/*
 * Returns an axis of sizes, which are positive and ascend. It is logarithmic if the sizes are
 * spread more evenly that way: equal ratios give equal distances.
 */
struct chart_axis chart_axis_of_sizes(const uint64_t *sizes, unsigned count);
/*
 * Returns an axis from LOW, or from 0 if no tick is at LOW, to a round value that is at least HIGH.
 * LOW is 0 or 1. There are three to seven ticks.
 */
struct chart_axis chart_axis_of_values(enum chart_quantity quantity, double low, double high);
double chart_axis_at(const struct chart_axis *axis, double value);
/* Writes the VALUE of a tick with its unit: up to three digits, or a whole number. Returns TEXT. */
const char *chart_axis_label(enum chart_quantity quantity, double value, char *text, size_t size);

#endif
