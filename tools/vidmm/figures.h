/* SPDX-License-Identifier: MIT */
/* figures: what an adapter did during a replay, in this program or in another one. */
#ifndef VIDMM_TOOLS_FIGURES_H
#define VIDMM_TOOLS_FIGURES_H

#include "replay.h"

/* Counts from `before` on; peaks and sizes as `after` says. */
void figures_take(const struct vidmm_adapter_statistics *before,
		  const struct vidmm_adapter_statistics *after, struct replay_result *result);
/* Those of one result for another. */
void figures_copy(const struct replay_result *from, struct replay_result *result);

#endif
