/* SPDX-License-Identifier: MIT */
/*
 * workers: a replay against a host in another process. This process forks one worker process for
 * each recording, each with a connection to the host, waits for all of them and adds up their
 * results.
 */
#ifndef VIDMM_TOOLS_WORKERS_H
#define VIDMM_TOOLS_WORKERS_H

#include "world.h"

/*
 * Plays one recording in the calling process: options->inputs[0], which is number worker->index of
 * all.
 */
typedef enum replay_status worker_play_fn(const struct replay_options *options,
					  const struct world_worker *worker,
					  struct replay_result *result);
/*
 * Does what replay_run does, for options->connect. The calling process must have no other thread.
 */
enum replay_status workers_run(const struct replay_options *options, worker_play_fn *play,
			       struct replay_result *result);

#endif
