/* SPDX-License-Identifier: MIT */
/* Recordings made by a test, in memory. */
#ifndef VMM_TESTS_REPLAY_RECORDING_H
#define VMM_TESTS_REPLAY_RECORDING_H

#include "support/test.h"

struct recording {
	char *bytes;
	size_t length, room;
	unsigned events; /* lines added since recording_begin */
};

/* The header; t0 in ns. */
void recording_begin(struct recording *recording, const char *program, uint64_t t0_ns);
/* One event without its newline; at most 255 characters. */
void recording_event(struct recording *recording, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A line in parts: recording_part ... recording_part, then recording_line. */
void recording_part(struct recording *recording, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void recording_line(struct recording *recording);
/* The #end line. */
void recording_end(struct recording *recording);
void recording_free(struct recording *recording);
/* The bytes of a file; fails the test when it cannot be read. */
struct recording recording_read(const char *path);

#endif
