/* SPDX-License-Identifier: MIT */
/* size_list: several amounts of video memory, as a list with ranges. */
#ifndef VIDMM_TOOLS_SIZE_LIST_H
#define VIDMM_TOOLS_SIZE_LIST_H

#include "memory_size.h"

#define SIZE_LIST_MAX 64u

struct size_list {
	struct memory_size sizes[SIZE_LIST_MAX];
	unsigned count;
};

/*
 * Parses elements with commas between them, each as memory_size_parse takes it or a range:
 * "FROM..TO:geometric:N" is N amounts (2 to SIZE_LIST_MAX) with a constant ratio, both ends
 * included; those between sizes are whole pages. "FROM..TO:geometric" doubles FROM while it is
 * below TO, and ends with TO. FROM and TO are both sizes, or percentages of the same. Returns false
 * for other texts, and for more than SIZE_LIST_MAX amounts.
 */
bool size_list_parse(const char *text, struct size_list *list);

#endif
