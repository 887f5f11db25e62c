/* SPDX-License-Identifier: MIT */
/* The files to which the result of `vidmm what-if` goes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "whatif.h"

/* Writes the result in one form. Returns false when out of memory or if FILE cannot be written. */
typedef bool write_fn(FILE *file, const struct whatif_grid *grid);

static bool write_csv(FILE *file, const struct whatif_grid *grid)
{
	whatif_csv(file, grid);
	return true;
}

static bool write_html(FILE *file, const struct whatif_grid *grid)
{
	whatif_html(file, grid);
	return true;
}

static bool write_svg(FILE *file, const struct whatif_grid *grid)
{
	whatif_svg(file, grid);
	return true;
}

static write_fn *const writers[WHATIF_FORMS] = {write_csv, whatif_json, write_html, write_svg};

static bool is_standard_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static unsigned standard_outputs(const struct whatif_files *files)
{
	unsigned count = 0;

	for (unsigned i = 0; i < WHATIF_FORMS; i++)
		count += is_standard_output(files->paths[i]);
	return count;
}

bool whatif_files_valid(const struct whatif_files *files, const char *verb)
{
	if (standard_outputs(files) <= 1)
		return true;
	fprintf(stderr,
		"vidmm %s: only one of --csv, --json, --html and --svg can go to the standard "
		"output\ntry: vidmm %s --help\n",
		verb, verb);
	return false;
}

void whatif_files_finish(struct whatif_files *files)
{
	for (unsigned i = 0; i < WHATIF_FORMS; i++)
		free(files->paths[i]);
}

static bool failed(const char *verb, const char *path, int error)
{
	fprintf(stderr, "vidmm %s: %s: %s\n", verb, path, strerror(error));
	return false;
}

static bool write_to(const char *path, write_fn *write, const struct whatif_grid *grid)
{
	const char *verb = grid->options->verb;
	bool standard = is_standard_output(path), good;
	FILE *file;

	if (!path)
		return true;
	file = standard ? stdout : fopen(path, "w");
	if (!file)
		return failed(verb, path, errno);
	errno = 0;
	good = write(file, grid);
	if (fflush(file) != 0 || ferror(file))
		good = false;
	if (!good && !(standard && ferror(file))) /* main.c reports those of standard output */
		failed(verb, path, errno ? errno : ENOMEM);
	if (!standard && fclose(file) != 0 && good)
		good = failed(verb, path, errno);
	return good;
}

enum replay_status whatif_report(const struct whatif_files *files, const struct whatif_grid *grid)
{
	enum replay_status status = whatif_grid_status(grid);

	if (standard_outputs(files) == 0)
		whatif_table(stdout, grid);
	for (unsigned i = 0; i < WHATIF_FORMS; i++)
		if (!write_to(files->paths[i], writers[i], grid))
			status = REPLAY_ENVIRONMENT;
	return status;
}
