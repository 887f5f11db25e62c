/* SPDX-License-Identifier: MIT */
#include "comma_list.h"

#include <stdlib.h>
#include <string.h>

bool comma_list_each(const char *text, comma_list_fn *add, void *context)
{
	char *copy = strdup(text), *element = copy, *next;
	bool good = copy != NULL;

	while (good && element) {
		next = strchr(element, ',');
		if (next)
			*next++ = '\0';
		good = add(context, element);
		element = next;
	}
	free(copy);
	return good;
}
