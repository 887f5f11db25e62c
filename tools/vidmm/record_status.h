/* SPDX-License-Identifier: MIT */
/* record_status: what a verb does with the results of reading a recording of events. */
#ifndef VIDMM_TOOLS_RECORD_STATUS_H
#define VIDMM_TOOLS_RECORD_STATUS_H

#include "record_read.h"
#include "replay.h"

/* Returns the status for a result of record_open. */
enum replay_status record_open_status(enum record_result result);
/* Opens a recording. After a failure a message was printed; *READER must be closed in any case. */
enum replay_status record_open_or_say(const char *path, struct record_reader **reader);
/*
 * For the result that ended the reading: prints what is wrong, and returns its status. A recording
 * that ends in the middle of a chunk is used as far as it goes.
 */
enum replay_status record_end(const struct record_reader *reader, enum record_result result);

#endif
