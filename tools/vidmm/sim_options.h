/* SPDX-License-Identifier: MIT */
/* sim_options: the command line of `vidmm sim`. */
#ifndef VIDMM_TOOLS_SIM_OPTIONS_H
#define VIDMM_TOOLS_SIM_OPTIONS_H

#include "sim.h"

struct sim_options {
	struct sim_setup setup; /* seed, processes, model, no_contents, packets */
	uint64_t seeds, steps;
	uint32_t weights[SIM_OPS];
	uint32_t setup_faults; /* bit n: enum sim_fault n */
	vidmm_driver_entry_fn *entry;
	bool minimise, quiet;
	char *script, *output, *record, *driver; /* NULL: none */
};

/* Parses argv[1..]; returns as options_parse does (options.h). sim_options_finish must follow. */
bool sim_options_parse(int argc, const char **argv, struct sim_options *options, int *exit_code);
void sim_options_finish(struct sim_options *options);

#endif
