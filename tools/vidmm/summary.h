/* SPDX-License-Identifier: MIT */
/* The result of a replay as text, or as JSON (docs/replay.md). */
#ifndef VIDMM_TOOLS_SUMMARY_H
#define VIDMM_TOOLS_SUMMARY_H

#include <stdio.h>

#include "options.h"

/* One finished run and its video memory. */
struct run {
	struct memory_size memory;
	uint64_t vram_bytes;
	struct replay_result result;
};

void summary_print(FILE *file, const struct options *options, const struct run *run, bool color);
/* Prints several runs in columns. */
void summary_compare(FILE *file, const struct options *options, const struct run *runs,
		     unsigned count, bool color);
/*
 * Writes one run as an object, compared runs as an object with "runs". Returns false when out of
 * memory or if FILE cannot be written.
 */
bool summary_json(FILE *file, const struct options *options, const struct run *runs,
		  unsigned count);

#endif
