/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <stddef.h>
#include <string.h>

/*
 * MB/s of a lane after the line code: 2.5, 5, 8, 16, 32 and 64 GT/s. What arrives is 88 % of that,
 * and an operation takes 2.5 us besides: both were measured with PCIe 5.0 x16 (docs/link-costs.md).
 */
static const uint32_t lane_mb_per_s[] = {250, 500, 985, 1969, 3938, 7877};
#define ARRIVING_PERCENT 88u
#define LATENCY_NS       2500u
/* docs/replay.md says why */
#define PASSES           2u

bool link_parse(const char *name, struct link_model *link)
{
	static const char prefix[] = "pcie";
	static const struct {
		const char *text;
		uint32_t lanes;
	} widths[] = {{"x1", 1}, {"x2", 2}, {"x4", 4}, {"x8", 8}, {"x16", 16}};
	const size_t length = sizeof(prefix) - 1;

	*link = (struct link_model){0};
	if (strcmp(name, "none") == 0)
		return true;
	if (strncmp(name, prefix, length) != 0 || name[length] < '1' || name[length] > '6')
		return false;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (strcmp(name + length + 1, widths[i].text) != 0)
			continue;
		link->bytes_per_us = (uint64_t)lane_mb_per_s[name[length] - '1'] * widths[i].lanes *
				     ARRIVING_PERCENT / 100;
		link->latency_ns = LATENCY_NS;
		link->passes = PASSES;
		return true;
	}
	return false;
}
