/* SPDX-License-Identifier: MIT */
/* top_feed: reads a recording, which may grow or be replaced, into a state. */
#ifndef VIDMM_TOOLS_TOP_FEED_H
#define VIDMM_TOOLS_TOP_FEED_H

#include <stdbool.h>

#include "record_read.h"
#include "top_state.h"
#include "top_view.h"

struct top_feed {
	const char *path;
	struct record_reader *reader;
	struct top_state state;
	enum top_status status; /* at the end of the last read */
	bool written;           /* a program writes the file */
};

/* Opens a recording. Returns RECORD_EVENT; otherwise top_feed_error says what is wrong. */
enum record_result top_feed_open(struct top_feed *feed, const char *path);
/* Reads up to MOST events. Returns true if there may be more, false at the end of the file. */
bool top_feed_read(struct top_feed *feed, uint32_t most);
const char *top_feed_error(const struct top_feed *feed);
void top_feed_close(struct top_feed *feed);

#endif
