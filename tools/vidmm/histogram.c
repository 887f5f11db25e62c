/* SPDX-License-Identifier: MIT */
#include "histogram.h"

static uint32_t class_of(uint64_t ns)
{
	uint32_t bits = 64u - (uint32_t)__builtin_clzll(ns | 1);
	uint32_t shift = bits > HISTOGRAM_CLASS_BITS + 1 ? bits - HISTOGRAM_CLASS_BITS - 1 : 0;

	return (shift << HISTOGRAM_CLASS_BITS) + (uint32_t)(ns >> shift);
}

/* The middle of the class. */
static uint64_t value_of(uint32_t class)
{
	uint32_t shift = class >> HISTOGRAM_CLASS_BITS;

	if (shift == 0)
		return class;
	shift--;
	return ((uint64_t)(class - (shift << HISTOGRAM_CLASS_BITS)) << shift) +
	       ((uint64_t)1 << shift) / 2;
}

void histogram_add(struct histogram *to, uint64_t ns)
{
	to->count++;
	to->of_class[class_of(ns)]++;
	if (ns > to->max_ns)
		to->max_ns = ns;
}

void histogram_merge(struct histogram *sum, const struct histogram *part)
{
	sum->count += part->count;
	if (part->max_ns > sum->max_ns)
		sum->max_ns = part->max_ns;
	for (uint32_t i = 0; i < HISTOGRAM_CLASSES; i++)
		sum->of_class[i] += part->of_class[i];
}

static uint64_t percentile(const struct histogram *of, uint64_t percent)
{
	uint64_t wanted = (of->count * percent + 99) / 100, seen = 0;

	for (uint32_t i = 0; i < HISTOGRAM_CLASSES; i++) {
		seen += of->of_class[i];
		if (seen >= wanted && seen > 0)
			return value_of(i) < of->max_ns ? value_of(i) : of->max_ns;
	}
	return 0;
}

struct histogram_summary histogram_summary(const struct histogram *of)
{
	return (struct histogram_summary){
		.count = of->count,
		.p50_ns = percentile(of, 50),
		.p95_ns = percentile(of, 95),
		.p99_ns = percentile(of, 99),
		.max_ns = of->max_ns,
	};
}
