/* SPDX-License-Identifier: MIT */
#include "json_text.h"

#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text)
{
	json_t *string = json_string(text);
	char *ascii = string ? NULL : strdup(text);

	for (char *c = ascii; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	if (ascii)
		string = json_string(ascii);
	free(ascii);
	return string;
}

bool json_write(FILE *file, json_t *document)
{
	bool good = document && json_dumpf(document, file, JSON_INDENT(2)) == 0 &&
		    fputc('\n', file) != EOF;

	json_decref(document);
	return good;
}
