/* SPDX-License-Identifier: MIT */
/* The link between the GPU and system memory, by its name: "pcie3x16". */
#ifndef VIDMM_TOOLS_LINK_H
#define VIDMM_TOOLS_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_DEFAULT "pcie3x16"

/* bytes_per_us 0: no link is modeled; memory is equally fast everywhere */
struct link_model {
	uint64_t bytes_per_us; /* in each direction */
	uint64_t latency_ns;   /* of a paging operation */
	/* how often a submission moves each byte of a buffer in the aperture over the link */
	uint32_t passes;
};

/*
 * NAME: "none", or "pcieGxN" with a generation G of 1 to 6 and N of 1, 2, 4, 8 or 16 lanes. Returns
 * false for other names.
 */
bool link_parse(const char *name, struct link_model *link);

#endif
