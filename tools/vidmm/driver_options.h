/* SPDX-License-Identifier: MIT */
/* driver_options: the options of `vidmm replay` about a driver that is not built in. */
#ifndef VIDMM_TOOLS_DRIVER_OPTIONS_H
#define VIDMM_TOOLS_DRIVER_OPTIONS_H

#include "caps.h"

#define DRIVER_OPTIONS 7u /* elements of the table */

/* Values as popt stores them. NULL: not given. */
struct driver_raw {
	struct caps_adapter_words adapter;
	char *commands;
};

void driver_options_table(struct driver_raw *raw, struct poptOption table[DRIVER_OPTIONS]);
/*
 * Loads the driver and its command adapter. Returns false, after a message, if an option is not
 * valid (then *EXIT_CODE stays as it is) or a file cannot be used.
 */
bool driver_options_apply(const struct driver_raw *raw, struct options *options, int *exit_code);
void driver_options_free(struct driver_raw *raw);

#endif
