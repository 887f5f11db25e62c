/* SPDX-License-Identifier: MIT */
/* Reads and checks recordings without a video memory manager, and prints what reading costs. */
#ifndef VIDMM_TOOLS_PARSE_ONLY_H
#define VIDMM_TOOLS_PARSE_ONLY_H

#include "replay.h"

enum replay_status parse_only(const struct replay_options *options);

#endif
