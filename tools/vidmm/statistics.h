/* SPDX-License-Identifier: MIT */
/* statistics: what an adapter did during a replay, in this process or in another one. */
#ifndef VIDMM_TOOLS_STATISTICS_H
#define VIDMM_TOOLS_STATISTICS_H

#include "replay.h"

/* Stores counters as the difference of two samples; peaks and sizes are those of AFTER. */
void statistics_difference(const struct vidmm_adapter_statistics *before,
			   const struct vidmm_adapter_statistics *after,
			   struct replay_result *result);
/* Copies the statistics of one result to another. */
void statistics_copy(const struct replay_result *from, struct replay_result *result);

#endif
