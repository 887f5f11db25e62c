/* SPDX-License-Identifier: MIT */
/* Names functions in findings about spin locks, whose text has only the addresses of calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "code_address.h"

#define BEFORE_ADDRESS "taken at 0x"

/* Writes "FUNCTION at FILE:LINE" with the last part of the path. */
static void describe(uintptr_t address, char *text, size_t size)
{
	char *file, *slash;

	code_address_describe((const void *)address, true, text, size);
	text[strcspn(text, "(")] = '\0';
	file = strstr(text, " at ");
	slash = strrchr(text, '/');
	if (file && slash > file)
		memmove(file + strlen(" at "), slash + 1, strlen(slash));
	if (text[0] && text[strlen(text) - 1] == ' ')
		text[strlen(text) - 1] = '\0';
}

static void name_in(char *text, size_t size)
{
	char named[1024] = "", function[320];
	const char *rest = text, *at;
	size_t used = 0;

	while ((at = strstr(rest, BEFORE_ADDRESS)) && used < sizeof(named)) {
		char *end;
		uintptr_t address = (uintptr_t)strtoull(at + strlen("taken at "), &end, 16);

		describe(address, function, sizeof(function));
		used += (size_t)snprintf(named + used, sizeof(named) - used, "%.*staken at %s",
					 (int)(at - rest), rest, function);
		rest = end;
	}
	if (used < sizeof(named))
		snprintf(named + used, sizeof(named) - used, "%s", rest);
	snprintf(text, size, "%s", named);
}

void caps_name_callers(struct caps_result *result)
{
	for (unsigned i = 0; i < result->complaint_count; i++)
		if (strcmp(result->complaints[i].rule, "NT-22") == 0)
			name_in(result->complaints[i].text, sizeof(result->complaints[i].text));
}
