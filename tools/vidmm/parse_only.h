/* SPDX-License-Identifier: MIT */
/*
 * `vidmm replay --parse-only`: reads and checks recordings without a memory manager and prints the
 * time that reading takes.
 */
#ifndef VIDMM_TOOLS_PARSE_ONLY_H
#define VIDMM_TOOLS_PARSE_ONLY_H

#include "replay.h"

enum replay_status parse_only(const struct replay_options *options);

#endif
