/* SPDX-License-Identifier: MIT */
/* Parser of the event stream as text, one event in each line (vidmm_event_format). */
#ifndef VIDMM_TOOLS_EXPLAIN_EVENTS_H
#define VIDMM_TOOLS_EXPLAIN_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define LOGGED_VALUES 4u

enum { LOGGED_REASON_CHARS = 64 };

struct logged_event {
	uint64_t number, time_ns;
	uint32_t process, object;                   /* object 0: none */
	char type[16], reason[LOGGED_REASON_CHARS]; /* longer than any name */
	struct {
		char name[16];
		uint64_t value;
	} value[LOGGED_VALUES];
	unsigned value_count;
	const char *text; /* points into the line; NULL: none */
};

/*
 * Parses a line without its newline. Returns false if it is not an event. EVENT->text points into
 * LINE.
 */
bool logged_event_parse(const char *line, struct logged_event *event);
/* Returns the value of that name, 0 if the event has none. */
uint64_t logged_value(const struct logged_event *event, const char *name);
/* REASON NULL: any. */
bool logged_is(const struct logged_event *event, const char *type, const char *reason);
/* Returns whether the status of a call or DDI is an error. */
bool logged_failed(const struct logged_event *event);

#endif
