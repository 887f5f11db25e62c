/* SPDX-License-Identifier: MIT */
/* The findings of the situation "start", which the other situations do not report again. */
#include <stdio.h>
#include <string.h>

#include "conform.h"

#define TEXT_BYTES sizeof(((struct conform_known *)NULL)->finding[0].text)

static bool is_same(const char *a, const char *b)
{
	return strncmp(a, b, TEXT_BYTES - 1) == 0;
}

static bool has_rule_of(const char *a, const char *b)
{
	size_t length = strcspn(a, ":");

	return strncmp(a, b, length) == 0 && b[length] == ':';
}

void conform_known_add(struct conform_known *known, const char *text, bool at_start)
{
	for (uint32_t i = 0; i < known->count; i++)
		if (known->finding[i].at_start == at_start && is_same(known->finding[i].text, text))
			return;
	if (known->count == CONFORM_KNOWN_MAX)
		return;
	snprintf(known->finding[known->count].text, TEXT_BYTES, "%s", text);
	known->finding[known->count++].at_start = at_start;
}

bool conform_known_has(const struct conform_known *known, const char *text, bool at_start)
{
	for (uint32_t i = 0; i < known->count; i++)
		if (is_same(known->finding[i].text, text) ||
		    (at_start && known->finding[i].at_start &&
		     has_rule_of(known->finding[i].text, text)))
			return true;
	return false;
}

bool conform_known_is_valid(const struct conform_known *known)
{
	if (known->count > CONFORM_KNOWN_MAX)
		return false;
	for (uint32_t i = 0; i < known->count; i++)
		if (!memchr(known->finding[i].text, '\0', TEXT_BYTES))
			return false;
	return true;
}
