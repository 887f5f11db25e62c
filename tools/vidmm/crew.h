/* SPDX-License-Identifier: MIT */
/*
 * crew: a replay whose processes are programs of their own, each with a connection to the host. This program forks one for each recording,
 * waits for all of them, and adds up what they found.
 */
#ifndef VIDMM_TOOLS_CREW_H
#define VIDMM_TOOLS_CREW_H

#include "world.h"

/* Plays one recording, options->inputs[crew->index], in this program. */
typedef enum replay_status crew_play_fn(const struct replay_options *options,
					const struct world_crew *crew,
					struct replay_result *result);
/* As replay_run, for options->connect. No other thread runs in this program. */
enum replay_status crew_run(const struct replay_options *options, crew_play_fn *play,
			    struct replay_result *result);

#endif
