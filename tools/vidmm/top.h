/* SPDX-License-Identifier: MIT */
/* `vidmm top`: a live view of a recording of events in a terminal (docs/top.md). */
#ifndef VIDMM_TOOLS_TOP_H
#define VIDMM_TOOLS_TOP_H

#include "replay.h"
#include "top_feed.h"

/* ---- top_screen.c ---- */
/* Shows the recording until the user quits, or SIGINT or SIGTERM comes. DELAY_MS: between reads. */
enum replay_status top_screen(struct top_feed *feed, uint32_t delay_ms);

int top_main(int argc, const char **argv);

#endif
