/* SPDX-License-Identifier: MIT */
/* Parses the lines that vidmm_event_format writes. */
#include "explain_events.h"

#include <stdlib.h>
#include <string.h>

struct cursor {
	const char *at;
	bool good;
};

static void expect_text(struct cursor *c, const char *text)
{
	size_t length = strlen(text);

	if (c->good && strncmp(c->at, text, length) == 0)
		c->at += length;
	else
		c->good = false;
}

static uint64_t number(struct cursor *c, int base)
{
	char *end = NULL;
	uint64_t value = 0;

	/* strtoull accepts leading blanks and signs as well: refuse them. */
	if (c->good && ((*c->at >= '0' && *c->at <= '9') || base == 16))
		value = strtoull(c->at, &end, base);
	if (!end || end == c->at)
		c->good = false;
	else
		c->at = end;
	return value;
}

/*
 * Copies the characters before one of STOPS, or before the end of the line. An empty or too long
 * word is an error.
 */
static void word(struct cursor *c, const char *stops, char *into, size_t size)
{
	size_t length = strcspn(c->at, stops);

	if (!c->good || length == 0 || length >= size) {
		c->good = false;
		return;
	}
	memcpy(into, c->at, length);
	into[length] = '\0';
	c->at += length;
}

static void name_and_value(struct cursor *c, struct logged_event *event)
{
	unsigned i = event->value_count;

	if (i == LOGGED_VALUES) {
		c->good = false;
		return;
	}
	word(c, "= ", event->value[i].name, sizeof(event->value[i].name));
	expect_text(c, "=");
	event->value[i].value = number(c, c->good && c->at[0] == '0' && c->at[1] == 'x' ? 16 : 10);
	event->value_count++;
}

bool logged_event_parse(const char *line, struct logged_event *event)
{
	struct cursor c = {line, true};

	*event = (struct logged_event){0};
	expect_text(&c, "#");
	event->number = number(&c, 10);
	expect_text(&c, " ");
	event->time_ns = number(&c, 10);
	expect_text(&c, "ns p");
	event->process = (uint32_t)number(&c, 10);
	expect_text(&c, " ");
	word(&c, "/ ", event->type, sizeof(event->type));
	if (c.good && *c.at == '/') {
		c.at++;
		word(&c, " ", event->reason, sizeof(event->reason));
	}
	if (c.good && strncmp(c.at, " 0x", 3) == 0) {
		c.at++;
		event->object = (uint32_t)number(&c, 16);
	}
	while (c.good && *c.at) {
		if (strncmp(c.at, " : ", 3) == 0) {
			event->text = c.at + 3;
			break;
		}
		expect_text(&c, " ");
		name_and_value(&c, event);
	}
	return c.good;
}

uint64_t logged_value(const struct logged_event *event, const char *name)
{
	for (unsigned i = 0; i < event->value_count; i++)
		if (strcmp(event->value[i].name, name) == 0)
			return event->value[i].value;
	return 0;
}

bool logged_is(const struct logged_event *event, const char *type, const char *reason)
{
	return strcmp(event->type, type) == 0 && (!reason || strcmp(event->reason, reason) == 0);
}

bool logged_failed(const struct logged_event *event)
{
	return logged_value(event, "status") >> 30 == 3;
}
