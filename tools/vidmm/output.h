/* SPDX-License-Identifier: MIT */
/* output: what becomes of a verb whose result could not be written as JSON. */
#ifndef VIDMM_TOOL_OUTPUT_H
#define VIDMM_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "replay.h"

/*
 * Returns STATUS if the JSON was written to standard output, else REPLAY_ENVIRONMENT. main.c
 * reports write errors of standard output; the other cause is memory, which is reported here.
 */
static inline enum replay_status output_status(bool written, enum replay_status status)
{
	if (written)
		return status;
	if (!ferror(stdout))
		fputs("vidmm: out of memory\n", stderr);
	return REPLAY_ENVIRONMENT;
}

#endif
