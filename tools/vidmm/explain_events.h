/* SPDX-License-Identifier: MIT */
/* The event stream as text, one event a line (vidmm_event_format), read back. */
#ifndef VIDMM_TOOLS_EXPLAIN_EVENTS_H
#define VIDMM_TOOLS_EXPLAIN_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define LOGGED_VALUES 4u

struct logged_event {
	uint64_t number, time_ns;
	uint32_t process, object; /* object 0: none */
	char type[16], reason[32];
	struct {
		char name[16];
		uint64_t value;
	} value[LOGGED_VALUES];
	unsigned value_count;
	const char *text; /* into the line; NULL: none */
};

/* False: not an event. The line has no newline; text points into it. */
bool logged_event_parse(const char *line, struct logged_event *event);
/* 0 when the event has no such value. */
uint64_t logged_value(const struct logged_event *event, const char *name);

#endif
