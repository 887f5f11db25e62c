/* SPDX-License-Identifier: MIT */
#include "whatif.h"

#include <stdio.h>

int whatif_main(int argc, const char **argv)
{
	struct whatif_options options;
	struct whatif_grid grid;
	enum replay_status status = REPLAY_ENVIRONMENT;
	int exit_code;

	if (!whatif_options_parse(argc, argv, &options, &exit_code)) {
		whatif_options_finish(&options);
		return exit_code;
	}
	if (whatif_grid_make(&grid, &options) && whatif_grid_run(&grid))
		status = whatif_report(&options.files, &grid);
	else
		fputs("vidmm what-if: out of memory\n", stderr);
	whatif_grid_finish(&grid);
	whatif_options_finish(&options);
	return (int)status;
}
