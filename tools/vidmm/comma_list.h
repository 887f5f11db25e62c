/* SPDX-License-Identifier: MIT */
/* comma_list: the elements of an option's value, with commas between them. */
#ifndef VIDMM_TOOLS_COMMA_LIST_H
#define VIDMM_TOOLS_COMMA_LIST_H

#include <stdbool.h>

/* Takes one element, which it may change. Returns false if the element is not valid. */
typedef bool comma_list_fn(void *context, char *element);
/*
 * Passes each element of TEXT, empty ones included. Returns false at the first one that is not
 * valid, and when out of memory.
 */
bool comma_list_each(const char *text, comma_list_fn *add, void *context);

#endif
