/* SPDX-License-Identifier: MIT */
/* record_describe: the description that a recording of events begins with. */
#ifndef VIDMM_TOOLS_RECORD_DESCRIBE_H
#define VIDMM_TOOLS_RECORD_DESCRIBE_H

#include <jansson.h>

/*
 * Returns a new object: format, version, vidmm_version, and for each type of event its name, the
 * names of its arguments and of its reasons. NULL: out of memory.
 */
json_t *record_describe(void);

#endif
