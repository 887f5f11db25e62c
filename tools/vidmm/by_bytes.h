/* SPDX-License-Identifier: MIT */
/*
 * by_bytes: what a policy pages if only bytes count. Every buffer of a submission must be in video
 * memory while it runs, any free bytes do, and the GPU is never busy. A buffer whose content the
 * program gives up (a 0) or that it closes leaves at once and costs nothing. What a replay pages in
 * beyond this is the cost of placement, of alignment, and of work that is in flight.
 */
#ifndef VIDMM_TOOLS_BY_BYTES_H
#define VIDMM_TOOLS_BY_BYTES_H

#include "next_uses.h"
#include "replay.h"

struct by_bytes;

/* Returns whether the policy can be counted by bytes: clock cannot. */
bool by_bytes_knows(enum replay_policy policy);
/*
 * NEXT_USES: of the policy `reference`, at its first submission; each submission advances it. NULL
 * for other policies. Returns NULL when out of memory. by_bytes_destroy: NULL is allowed.
 */
struct by_bytes *by_bytes_create(unsigned process_count, enum replay_policy policy,
				 struct next_uses *next_uses, uint64_t memory_bytes);
void by_bytes_destroy(struct by_bytes *b);
/* Counts the next event, in merged order. Returns false when out of memory. */
bool by_bytes_count(struct by_bytes *b, unsigned process, const struct trace_event *event);
/* Bytes that came in again, after an eviction. First uses are not in it. */
uint64_t by_bytes_again(const struct by_bytes *b);

#endif
