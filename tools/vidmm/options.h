/* SPDX-License-Identifier: MIT */
/* The parsed command line of `vidmm replay`. */
#ifndef VIDMM_TOOLS_OPTIONS_H
#define VIDMM_TOOLS_OPTIONS_H

#include <popt.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory_size.h"

#define OPTIONS_RUNS_MAX 8u

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct caps_options;

struct options {
	struct replay_options replay; /* vram_bytes is set before each run */
	struct replay_input *inputs;
	struct memory_size runs[OPTIONS_RUNS_MAX];
	unsigned run_count;
	bool compare; /* --compare was given, possibly with one run */
	bool json, quiet, parse_only;
	enum color_mode color;
	char *events_path;  /* NULL: none */
	char *record_path;  /* NULL: none */
	char *connect_path; /* storage of replay.connect */
	/* of --driver: its path and storage of replay.settings; NULL: softgpu */
	struct caps_options *driver;
};

/*
 * Parses argv[1..] of the verb and sets argv[0] to the name that the help shows. Returns true to
 * continue. If it returns false, all messages have been printed and the program ends with
 * *EXIT_CODE (0 for --help).
 */
bool options_parse(int argc, const char **argv, struct options *options, int *exit_code);
void options_finish(struct options *options);
/*
 * Reads the options of the verb. Returns false if the program ends here: after a message about a
 * wrong option, or after the help, with *EXIT_CODE 0. *HELP: set by the option --help.
 */
bool options_read(poptContext context, const char *verb, const int *help, int *exit_code);
/* Returns the index of TEXT in WORDS, 0 if TEXT is NULL, -1 if it is not in WORDS. */
int options_choose(const char *text, const char *const *words);
/* Prints a message about wrong usage, with VALUE for the %s in FORMAT. Returns false. */
bool options_usage(const char *format, const char *value) __attribute__((format(printf, 1, 0)));
/* Parses "auto", "always" or "never"; NULL is auto. Returns false for other texts. */
bool color_parse(const char *text, enum color_mode *mode);
/*
 * Returns whether output to FD is colored: by MODE, the environment variable NO_COLOR, and isatty.
 */
bool color_wanted(enum color_mode mode, int fd);
bool options_color(const struct options *options, int fd);

#endif
