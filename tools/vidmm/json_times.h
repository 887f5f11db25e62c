/* SPDX-License-Identifier: MIT */
/* The latencies, frames and waits of a run as JSON. */
#ifndef VIDMM_TOOLS_JSON_TIMES_H
#define VIDMM_TOOLS_JSON_TIMES_H

#include <jansson.h>

#include "summary.h"

/* Adds latency, frames and waits, and the arrays of those of each process. */
void json_add_times(json_t *object, const struct options *options,
		    const struct replay_result *result);

#endif
