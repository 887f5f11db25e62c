/* SPDX-License-Identifier: MIT */
/* record_read: reads the files of record_write. */
#ifndef VIDMM_TOOLS_RECORD_READ_H
#define VIDMM_TOOLS_RECORD_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <vidmm/vidmm.h>

struct record_reader;

enum record_result {
	RECORD_EVENT,
	RECORD_END,
	RECORD_CUT, /* the file ends in the middle of a chunk, as after a crash: the end, too */
	RECORD_BAD, /* the file is no recording of events, or is damaged */
	RECORD_IO   /* the file cannot be read, or out of memory */
};

/* Returns whether the file begins like a recording of events. */
bool record_is_recording(const char *path);
/* Opens a file and reads its description. Returns RECORD_EVENT, or what the first read returns. */
enum record_result record_open(const char *path, struct record_reader **reader);
void record_close(struct record_reader *reader);
/*
 * Reads the next event. TEXT is valid until the next call, NULL for events without one. Results
 * other than RECORD_EVENT are final.
 */
enum record_result record_next(struct record_reader *reader, struct vidmm_event *event,
			       const char **text);
/*
 * Lets a reader that has returned RECORD_END or RECORD_CUT read what the file has got since.
 * Returns false if the file is now shorter than what was read: another recording replaces it.
 */
bool record_continue(struct record_reader *reader);
/* Returns whether the program that writes the file still has it open (docs/record-format.md). */
bool record_is_written(const struct record_reader *reader);
/* Returns the description of the file, an object. */
const json_t *record_about(const struct record_reader *reader);
/* Returns "file: what is wrong" after CUT, BAD or IO. */
const char *record_error(const struct record_reader *reader);

#endif
