/* SPDX-License-Identifier: MIT */
#include "verb_help.h"

#include <stdio.h>
#include <string.h>

#include "replay.h"

bool verb_help(int argc, const char **argv, int least, int most, const char *usage, int *exit_code)
{
	const char *unknown = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			*exit_code = REPLAY_CLEAN;
			return true;
		}
		if (argv[i][0] == '-' && argv[i][1] && !unknown)
			unknown = argv[i];
	}
	if (!unknown && argc - 1 >= least && argc - 1 <= most)
		return false;
	if (unknown)
		fprintf(stderr, "vidmm %s: unknown option %s\n", argv[0], unknown);
	else
		fprintf(stderr, "vidmm %s: too %s arguments\n", argv[0],
			argc - 1 < least ? "few" : "many");
	fputs(usage, stderr);
	*exit_code = REPLAY_USAGE;
	return true;
}
