/* SPDX-License-Identifier: MIT */
/* report_stalls: the calls of a recording that took longest, and why each of them did. */
#ifndef VIDMM_TOOLS_REPORT_STALLS_H
#define VIDMM_TOOLS_REPORT_STALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <vidmm/vidmm.h>

#include "timeline.h"

#define REPORT_STALLS_MAX 20u

struct report_stall {
	uint64_t ns;
	uint32_t call; /* row of the timeline */
	char *text;    /* sentences, one in each line (explain_call_time) */
};

/* All zero at first. */
struct report_stalls {
	struct explain_history *history;
	struct report_stall row[REPORT_STALLS_MAX]; /* the longest first */
	unsigned count;
	bool failed; /* out of memory */
};

/* Applies an event that the timeline has got. */
void report_stalls_add(struct report_stalls *stalls, const struct timeline *timeline,
		       const struct vidmm_event *event, const char *text);
/* Ends the stream. Returns false when out of memory, now or before. */
bool report_stalls_end(struct report_stalls *stalls);
/* Returns an array of calls, the longest first. */
json_t *report_stalls_json(const struct report_stalls *stalls, const struct timeline *timeline);
void report_stalls_finish(struct report_stalls *stalls);

#endif
