/* SPDX-License-Identifier: MIT */
/* What a replay found out, for people (text) and for programs (JSON, docs/replay.md). */
#ifndef VIDMM_TOOLS_SUMMARY_H
#define VIDMM_TOOLS_SUMMARY_H

#include <stdio.h>

#include "options.h"

/* One finished run and the memory it had. */
struct run {
	struct memory_size memory;
	uint64_t vram_bytes;
	struct replay_result result;
};

void summary_print(FILE *file, const struct options *options, const struct run *run, bool color);
/* Side by side. */
void summary_compare(FILE *file, const struct options *options, const struct run *runs,
		     unsigned count, bool color);
/* False when out of memory. One run: an object; compared ones: an object with "runs". */
bool summary_json(FILE *file, const struct options *options, const struct run *runs,
		  unsigned count);

#endif
