/* SPDX-License-Identifier: MIT */
#include "record_status.h"

#include <stdio.h>

enum replay_status record_open_status(enum record_result result)
{
	if (result == RECORD_EVENT)
		return REPLAY_CLEAN;
	return result == RECORD_IO ? REPLAY_ENVIRONMENT : REPLAY_BAD_INPUT;
}

enum replay_status record_open_or_say(const char *path, struct record_reader **reader)
{
	enum record_result result = record_open(path, reader);

	if (result != RECORD_EVENT)
		fprintf(stderr, "vidmm: %s\n", record_error(*reader));
	return record_open_status(result);
}

enum replay_status record_end(const struct record_reader *reader, enum record_result result)
{
	if (result == RECORD_END)
		return REPLAY_CLEAN;
	fprintf(stderr, "vidmm: %s\n", record_error(reader));
	if (result == RECORD_CUT)
		return REPLAY_CLEAN;
	return result == RECORD_IO ? REPLAY_ENVIRONMENT : REPLAY_BAD_INPUT;
}
