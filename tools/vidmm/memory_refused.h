/* SPDX-License-Identifier: MIT */
/*
 * Whether the system refused memory to the program. Much of an output, a JSON value or a list of
 * options, is combined from many parts without a look at each. Such a result must not end with the
 * exit code of a whole one.
 */
#ifndef VIDMM_TOOLS_MEMORY_REFUSED_H
#define VIDMM_TOOLS_MEMORY_REFUSED_H

#include <stdbool.h>

/* Before the first JSON value is made. */
void memory_refused_watch(void);
/*
 * Returns whether the program or the JSON library was refused memory. For the end of main: an
 * exit(1) before that is of the options library, which has no memory, and becomes
 * REPLAY_ENVIRONMENT.
 */
bool memory_refused(void);

#endif
