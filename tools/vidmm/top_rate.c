/* SPDX-License-Identifier: MIT */
#include "top_rate.h"

#include <string.h>

/* Clears the slots between the newest one and that of NOW_NS, which becomes the newest. */
static void advance(struct top_rate *rate, uint64_t now_ns)
{
	uint64_t newest = now_ns / TOP_SLOT_NS;

	if (newest >= rate->newest + TOP_SLOTS)
		memset(rate->slot, 0, sizeof(rate->slot));
	else
		for (uint64_t i = rate->newest + 1; i <= newest; i++)
			rate->slot[i % TOP_SLOTS] = 0;
	rate->newest = newest;
}

void top_rate_add(struct top_rate *rate, uint64_t now_ns, uint64_t amount)
{
	advance(rate, now_ns);
	rate->slot[rate->newest % TOP_SLOTS] += amount;
	rate->total += amount;
}

/* Returns the number of the first slot of the window. */
static uint64_t first_slot(uint64_t now_ns)
{
	uint64_t newest = now_ns / TOP_SLOT_NS;

	return newest < TOP_SLOTS ? 0 : newest - TOP_SLOTS + 1;
}

void top_rate_add_span(struct top_rate *rate, uint64_t begin_ns, uint64_t now_ns)
{
	uint64_t from = first_slot(now_ns) * TOP_SLOT_NS;

	advance(rate, now_ns);
	if (begin_ns >= now_ns)
		return;
	rate->total += now_ns - begin_ns;
	for (uint64_t at = begin_ns > from ? begin_ns : from; at < now_ns;) {
		uint64_t end = (at / TOP_SLOT_NS + 1) * TOP_SLOT_NS;

		end = end < now_ns ? end : now_ns;
		rate->slot[at / TOP_SLOT_NS % TOP_SLOTS] += end - at;
		at = end;
	}
}

uint64_t top_rate_sum(const struct top_rate *rate, uint64_t now_ns)
{
	uint64_t sum = 0;

	for (uint64_t i = first_slot(now_ns); i <= rate->newest; i++)
		if (rate->newest < i + TOP_SLOTS)
			sum += rate->slot[i % TOP_SLOTS];
	return sum;
}

uint64_t top_rate_window_ns(uint64_t begin_ns, uint64_t now_ns)
{
	uint64_t from = first_slot(now_ns) * TOP_SLOT_NS;

	return now_ns - (begin_ns > from ? begin_ns : from);
}
