/* SPDX-License-Identifier: MIT */
/*
 * The names come from the lines of vidmm_event_format, whose form is stable: an event with the
 * arguments 1 to 4 shows the name of each.
 */
#include <stdio.h>
#include <string.h>
#include <vidmm/vidmm.h>

#include "explain_events.h"
#include "record_describe.h"
#include "record_format.h"

#define REASONS_MAX 128u

static bool format(uint16_t type, uint16_t reason, struct logged_event *logged, char *line,
		   size_t size)
{
	const struct vidmm_event event = {.type = type, .reason = reason, .arg = {1, 2, 3, 4}};

	vidmm_event_format(&event, NULL, line, (int)size);
	return logged_event_parse(line, logged);
}

static json_t *arguments_of(const struct logged_event *logged)
{
	json_t *names = json_array();

	for (uint64_t argument = 1; argument <= 4; argument++) {
		const char *name = "";

		for (unsigned i = 0; i < logged->value_count; i++)
			if (logged->value[i].value == argument &&
			    strncmp(logged->value[i].name, "arg", 3) != 0)
				name = logged->value[i].name;
		json_array_append_new(names, json_string(name));
	}
	return names;
}

/* A reason without a name is printed as a number, or not at all. */
static json_t *reasons_of(uint16_t type)
{
	json_t *names = json_object();
	struct logged_event logged;
	char line[512], number[16];

	for (uint16_t reason = 0; reason < REASONS_MAX; reason++) {
		snprintf(number, sizeof(number), "%u", reason);
		if (format(type, reason, &logged, line, sizeof(line)) && logged.reason[0] &&
		    strcmp(logged.reason, number) != 0)
			json_object_set_new(names, number, json_string(logged.reason));
	}
	return names;
}

static json_t *events_of(void)
{
	json_t *events = json_array();
	struct logged_event logged;
	char line[512];

	for (uint16_t type = 0; type < VIDMM_EVENT_TYPE_COUNT; type++) {
		if (!format(type, 0, &logged, line, sizeof(line)))
			logged = (struct logged_event){0};
		json_array_append_new(events,
				      json_pack("{s:i,s:s,s:o,s:o}", "type", type, "name",
						logged.type, "arguments", arguments_of(&logged),
						"reasons", reasons_of(type)));
	}
	return events;
}

json_t *record_describe(void)
{
	return json_pack("{s:s,s:i,s:s,s:o}", "format", "vidmm record", "version", RECORD_VERSION,
			 "vidmm_version", vidmm_version(), "events", events_of());
}
