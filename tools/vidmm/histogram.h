/* SPDX-License-Identifier: MIT */
/* A logarithmic histogram of times. Its memory does not depend on how many times it counts. */
#ifndef VIDMM_TOOLS_HISTOGRAM_H
#define VIDMM_TOOLS_HISTOGRAM_H

#include <stdint.h>

/* A power of two is divided into 128 classes, so a percentile is within 1 %. */
#define HISTOGRAM_CLASS_BITS 7u
#define HISTOGRAM_CLASSES    ((64u - HISTOGRAM_CLASS_BITS + 1u) << HISTOGRAM_CLASS_BITS)

struct histogram {
	uint64_t count, max_ns; /* max_ns is exact */
	uint64_t of_class[HISTOGRAM_CLASSES];
};

/* All 0 if count is 0. */
struct histogram_summary {
	uint64_t count, p50_ns, p95_ns, p99_ns, max_ns;
};

void histogram_add(struct histogram *to, uint64_t ns);
/* Adds all times of PART. */
void histogram_merge(struct histogram *sum, const struct histogram *part);
struct histogram_summary histogram_summary(const struct histogram *of);

#endif
