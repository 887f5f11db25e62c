/* SPDX-License-Identifier: MIT */
/* Options of `vidmm replay` about the model of time. */
#ifndef VIDMM_TOOLS_TIME_OPTIONS_H
#define VIDMM_TOOLS_TIME_OPTIONS_H

#include <popt.h>

#include "options.h"

#define TIME_OPTIONS 7u /* the end of the table included */

/* Values as popt stores them. NULL: the option was not given. */
struct time_raw {
	char *pace, *link, *link_passes, *paging_engine, *cpu_costs, *content;
};

/* Fills a table of TIME_OPTIONS elements that stores into RAW. */
void time_options_table(struct time_raw *raw, struct poptOption *table);
/*
 * Interprets RAW after the connection and the time of the GPU. Prints a message and returns false
 * for a wrong value, or one that does not apply.
 */
bool time_options_apply(const struct time_raw *raw, bool has_events, struct options *options);
void time_options_free(struct time_raw *raw);

#endif
