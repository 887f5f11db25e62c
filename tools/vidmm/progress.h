/* SPDX-License-Identifier: MIT */
/* A bar on stderr, when that is a terminal; drawn at most ten times a second. */
#ifndef VIDMM_TOOLS_PROGRESS_H
#define VIDMM_TOOLS_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	uint64_t drawn_ns; /* when last */
	atomic_bool shown; /* something is on the line; messages come from several threads */
};

/* For struct replay_options. */
void progress_update(void *progress, double fraction);
/* Makes the line empty, before other text. */
void progress_clear(struct progress *progress);

#endif
