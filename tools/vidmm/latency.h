/* SPDX-License-Identifier: MIT */
/*
 * latency: how long the command buffers of a process took, from the call that submitted them to the
 * interrupt of their completion, by the host's clock. Computed from the event stream. A buffer in
 * several portions ends with the last one.
 */
#ifndef VIDMM_TOOLS_LATENCY_H
#define VIDMM_TOOLS_LATENCY_H

#include <vidmm/vidmm.h>

/* Percentiles have an error of at most 1 %; max_ns is exact. All 0 if count is 0. */
struct latency_summary {
	uint64_t count, p50_ns, p95_ns, p99_ns, max_ns;
};

struct latency;
struct latency *latency_create(struct vidmm_host *host); /* NULL: out of memory */
void latency_destroy(struct latency *latency);           /* NULL is allowed */
/* Of the command buffers that have completed. process 0: of all processes. */
void latency_summary(struct latency *latency, uint32_t process, struct latency_summary *summary);

#endif
