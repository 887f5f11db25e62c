/* SPDX-License-Identifier: MIT */
/* verb_help: the arguments of verbs without options of their own, which popt does not parse. */
#ifndef VIDMM_TOOL_VERB_HELP_H
#define VIDMM_TOOL_VERB_HELP_H

#include <stdbool.h>

/*
 * Prints USAGE if --help or -h is among the arguments. Refuses other options, and fewer than LEAST
 * or more than MOST arguments, with a message. "-" is no option but a file. Returns true if the
 * verb must not run; *EXIT_CODE is then set.
 */
bool verb_help(int argc, const char **argv, int least, int most, const char *usage, int *exit_code);

#endif
