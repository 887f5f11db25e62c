/* SPDX-License-Identifier: MIT */
/* record_write: writes the events of a host into a file (record_format.h). */
#ifndef VIDMM_TOOLS_RECORD_WRITE_H
#define VIDMM_TOOLS_RECORD_WRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <vidmm/vidmm.h>

struct record_writer;

/*
 * Creates the file. ABOUT is a JSON object that says what is recorded; its members are added to the
 * description of the file. Returns NULL after a message on stderr.
 */
struct record_writer *record_create(const char *path, json_t *about);
/*
 * A vidmm_event_fn. A thread of the writer compresses and writes full chunks, and twice a second
 * what there is. Waits if it does not keep up.
 */
void record_event(void *writer, const struct vidmm_event *event, const char *text);
/*
 * Writes the rest, closes the file and frees the writer. Returns false after a message on stderr if
 * something could not be written. NULL: nothing.
 */
bool record_finish(struct record_writer *writer);

#endif
