/* SPDX-License-Identifier: MIT */
/*
 * top_rate: a sum over a sliding window of recorded time, and over all of it. The window has slots
 * of equal length; the newest one is not complete.
 */
#ifndef VIDMM_TOOLS_TOP_RATE_H
#define VIDMM_TOOLS_TOP_RATE_H

#include <stdint.h>

#define TOP_SLOTS     10u
#define TOP_SLOT_NS   UINT64_C(100000000)
#define TOP_WINDOW_NS (TOP_SLOTS * TOP_SLOT_NS)

/* All zero: nothing so far. */
struct top_rate {
	uint64_t total;
	uint64_t newest; /* number of the newest slot: its time divided by TOP_SLOT_NS */
	uint64_t slot[TOP_SLOTS];
};

/* Times never decrease from call to call of all three functions. */
void top_rate_add(struct top_rate *rate, uint64_t now_ns, uint64_t amount);
/* Adds the time from BEGIN_NS to NOW_NS, each part to the slot in which it is. */
void top_rate_add_span(struct top_rate *rate, uint64_t begin_ns, uint64_t now_ns);
/* Returns the sum over the window that ends at NOW_NS. */
uint64_t top_rate_sum(const struct top_rate *rate, uint64_t now_ns);
/* Returns the length of that window in a recording that began at BEGIN_NS. */
uint64_t top_rate_window_ns(uint64_t begin_ns, uint64_t now_ns);

#endif
