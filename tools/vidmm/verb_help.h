/* SPDX-License-Identifier: MIT */
/* verb_help: the arguments of verbs without options of their own, which popt does not parse. */
#ifndef VIDMM_TOOL_VERB_HELP_H
#define VIDMM_TOOL_VERB_HELP_H

#include <stdbool.h>

/*
 * Returns true if the verb shall end: with USAGE on stdout if an argument is --help or -h, with a
 * message and USAGE on stderr if another one begins with "-", or there are fewer than LEAST or more
 * than MOST. The argument "-" alone is a file. *EXIT_CODE gets what the program exits with.
 */
bool verb_help(int argc, const char **argv, int least, int most, const char *usage, int *exit_code);

#endif
