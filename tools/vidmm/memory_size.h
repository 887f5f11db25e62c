/* SPDX-License-Identifier: MIT */
/* memory_size: an amount of video memory as options take it, a size or a percentage. */
#ifndef VIDMM_TOOLS_MEMORY_SIZE_H
#define VIDMM_TOOLS_MEMORY_SIZE_H

#include "replay.h"

/* The video memory of a run, as given. */
struct memory_size {
	uint64_t bytes; /* 0: `percent` applies */
	double percent; /* of the peak of the programs' live bytes */
	bool largest;   /* `percent` is of the buffers of the largest submission instead */
};

/*
 * Parses "64M", "50%" or "50%largest". Returns false for other texts, for less than a page and for
 * more than a page less than 1 TiB, the largest video memory of an adapter.
 */
bool memory_size_parse(const char *text, struct memory_size *size);
/* Returns what a percentage is of, as the output says it: "peak" or "largest". */
const char *memory_size_percent_of(const struct memory_size *size);
/*
 * Returns the video memory for a size, a number of pages. A percentage of the peak is rounded up to
 * 1 MiB. One of the largest submission is rounded up to a page, and is at least the largest buffer,
 * which cannot be split, plus 256 KiB for rows of tiles and the report buffer.
 */
uint64_t memory_size_bytes(const struct memory_size *size, const struct replay_measure *measure);

#endif
