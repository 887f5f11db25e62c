/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on stderr, drawn at most ten times a second. The caller uses it only if stderr is
 * a terminal.
 */
#ifndef VIDMM_TOOLS_PROGRESS_H
#define VIDMM_TOOLS_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	bool estimate;     /* the bar says how long the rest takes at the speed so far */
	uint64_t drawn_ns; /* time of the last update */
	uint64_t begun_ns; /* time of the first one */
	/* the bar is on the line; atomic, because messages come from several threads */
	atomic_bool shown;
};

/* Draws the bar; for replay_options.progress. FRACTION is 0 to 1. */
void progress_update(void *progress, double fraction);
/* Clears the line of the bar before other text is printed. */
void progress_clear(struct progress *progress);

#endif
