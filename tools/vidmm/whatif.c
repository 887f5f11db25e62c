/* SPDX-License-Identifier: MIT */
#include "whatif.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Writes the result in one form. Returns false when out of memory or if FILE cannot be written. */
typedef bool write_fn(FILE *file, const struct whatif_grid *grid);

static bool write_csv(FILE *file, const struct whatif_grid *grid)
{
	whatif_csv(file, grid);
	return true;
}

static bool failed(const char *path, int error)
{
	fprintf(stderr, "vidmm what-if: %s: %s\n", path, strerror(error));
	return false;
}

static bool write_to(const char *path, write_fn *write, const struct whatif_grid *grid)
{
	bool standard = whatif_is_standard_output(path), good;
	FILE *file;

	if (!path)
		return true;
	file = standard ? stdout : fopen(path, "w");
	if (!file)
		return failed(path, errno);
	errno = 0;
	good = write(file, grid);
	if (fflush(file) != 0)
		good = false;
	if (!good)
		failed(path, errno ? errno : ENOMEM);
	if (!standard)
		fclose(file);
	return good;
}

static enum replay_status report(const struct whatif_options *options,
				 const struct whatif_grid *grid)
{
	enum replay_status status = whatif_grid_status(grid);

	if (!whatif_is_standard_output(options->csv_path) &&
	    !whatif_is_standard_output(options->json_path)) {
		whatif_table(stdout, grid);
		if (fflush(stdout) != 0) {
			failed("standard output", errno);
			status = REPLAY_ENVIRONMENT;
		}
	}
	if (!write_to(options->csv_path, write_csv, grid) ||
	    !write_to(options->json_path, whatif_json, grid))
		status = REPLAY_ENVIRONMENT;
	return status;
}

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
		status = report(&options, &grid);
	else
		failed("replays", ENOMEM);
	whatif_grid_finish(&grid);
	whatif_options_finish(&options);
	return (int)status;
}
