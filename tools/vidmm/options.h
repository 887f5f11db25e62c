/* SPDX-License-Identifier: MIT */
/* The command line of `vidmm replay`, as the user gave it. */
#ifndef VIDMM_TOOLS_OPTIONS_H
#define VIDMM_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "replay.h"

#define OPTIONS_RUNS_MAX 8u

/* How much video memory a run gets. */
struct memory_size {
	uint64_t bytes; /* 0: by percent */
	double percent; /* of the most bytes that the programs had alive */
	bool largest;   /* or of what the largest submission refers to */
};

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct options {
	struct replay_options replay; /* vram_bytes is set for each run */
	struct replay_input *inputs;
	struct memory_size runs[OPTIONS_RUNS_MAX];
	unsigned run_count;
	bool compare; /* runs side by side, even when there is one */
	bool json, quiet, parse_only;
	enum color_mode color;
	char *events_path;  /* NULL: none */
	char *connect_path; /* of replay.connect */
};

/*
 * Parses argv[1..] of the verb; argv[0] is set to the name that help shows. REPLAY_CLEAN: go on. Otherwise everything has been said and the
 * program ends with *exit_code (--help ends with 0).
 */
bool options_parse(int argc, const char **argv, struct options *options, int *exit_code);
void options_finish(struct options *options);
/* "auto", "always", "never"; NULL is auto. */
bool color_parse(const char *text, enum color_mode *mode);
/* Color on that stream? */
bool color_wanted(enum color_mode mode, int fd);
bool options_color(const struct options *options, int fd);

#endif
