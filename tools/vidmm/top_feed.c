/* SPDX-License-Identifier: MIT */
#include "top_feed.h"

enum record_result top_feed_open(struct top_feed *feed, const char *path)
{
	*feed = (struct top_feed){.path = path};
	return record_open(path, &feed->reader);
}

/* Replaces the state by that of the recording that the file has now. */
static bool restart(struct top_feed *feed)
{
	record_close(feed->reader);
	feed->reader = NULL;
	top_state_finish(&feed->state);
	if (record_open(feed->path, &feed->reader) == RECORD_EVENT)
		return true;
	/* Its description may not be written yet. */
	feed->status = TOP_WAITING;
	return false;
}

static enum top_status status_of(const struct top_feed *feed, enum record_result result)
{
	if (result == RECORD_IO || feed->state.failed)
		return TOP_FAILED;
	if (result == RECORD_BAD)
		return TOP_DAMAGED;
	if (result == RECORD_EVENT || feed->written)
		return TOP_LIVE;
	return result == RECORD_CUT ? TOP_CUT : TOP_ENDED;
}

bool top_feed_read(struct top_feed *feed, uint32_t most)
{
	enum record_result result = RECORD_EVENT;
	struct vidmm_event event;
	const char *text;

	if (feed->status == TOP_DAMAGED || feed->status == TOP_FAILED)
		return false;
	if ((feed->status == TOP_WAITING || !record_continue(feed->reader)) && !restart(feed))
		return false;
	/* Before the end is seen: the program may write and close the file in between. */
	feed->written = record_is_written(feed->reader);
	for (uint32_t i = 0; i < most && !feed->state.failed; i++) {
		result = record_next(feed->reader, &event, &text);
		if (result != RECORD_EVENT)
			break;
		top_state_add(&feed->state, &event, text);
	}
	feed->status = status_of(feed, result);
	return result == RECORD_EVENT && feed->status == TOP_LIVE;
}

const char *top_feed_error(const struct top_feed *feed)
{
	return feed->state.failed ? "out of memory" : record_error(feed->reader);
}

void top_feed_close(struct top_feed *feed)
{
	record_close(feed->reader);
	top_state_finish(&feed->state);
}
