/* SPDX-License-Identifier: MIT */
#include "merge.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "whatif_store.h"

static const char verb[] = "merge";

static enum replay_status out_of_memory(void)
{
	fputs("vidmm merge: out of memory\n", stderr);
	return REPLAY_ENVIRONMENT;
}

/* Cells that no file has are rows without figures. */
static void end_missing(struct whatif_grid *grid)
{
	for (unsigned i = 0; i < grid->total; i++)
		if (grid->cells[i].measured && !grid->cells[i].finished)
			whatif_cell_end(&grid->cells[i], REPLAY_BAD_INPUT, "missing");
}

/* The messages that the run printed when it read the recordings. */
static void print_unreadable(const struct whatif_grid *grid)
{
	for (unsigned i = 0; i < grid->options->recording_count; i++)
		if (grid->readings[i].status != REPLAY_CLEAN)
			fprintf(stderr, "vidmm merge: %s\n", grid->readings[i].message);
}

static enum replay_status report(const struct whatif_store *store, struct whatif_options *options,
				 struct whatif_reading *readings)
{
	struct whatif_grid grid;
	enum replay_status status;

	if (!whatif_grid_make(&grid, options, readings) ||
	    whatif_store_take(store, &grid, false) < 0) {
		status = out_of_memory();
	} else {
		end_missing(&grid);
		print_unreadable(&grid);
		whatif_grid_failures(&grid);
		status = whatif_report(&options->files, &grid);
	}
	whatif_grid_finish(&grid);
	return status;
}

static enum replay_status merge(struct whatif_store *store, struct whatif_options *options)
{
	struct whatif_reading *readings;
	char error[160];

	for (unsigned i = 0; store->paths[i]; i++) {
		enum replay_status status = whatif_store_read(store, i);

		if (status != REPLAY_CLEAN)
			return status;
	}
	if (!store->sweep) {
		fprintf(stderr, "vidmm merge: %s: no sweep: the run ended before it began\n",
			store->paths[0]);
		return REPLAY_BAD_INPUT;
	}
	readings = whatif_sweep_parse(store->sweep, options, error);
	if (readings)
		return report(store, options, readings);
	fprintf(stderr, "vidmm merge: %s:%u: %s\n", store->paths[store->sweep_file],
		store->sweep_line, error);
	return REPLAY_BAD_INPUT;
}

static bool read_options(poptContext context, const int *help, struct whatif_files *files,
			 int *exit_code)
{
	if (!options_read(context, verb, help, exit_code))
		return false;
	if (!poptPeekArg(context)) {
		fputs("vidmm merge: no file was given\ntry: vidmm merge --help\n", stderr);
		return false;
	}
	return whatif_files_valid(files, verb);
}

int merge_main(int argc, const char **argv)
{
	struct whatif_options options = {.verb = verb};
	struct whatif_store store;
	int help = 0, exit_code = REPLAY_USAGE;
	const struct poptOption table[] = {
		WHATIF_FILE_OPTIONS(options.files),
		{"help", 'h', POPT_ARG_NONE, &help, 0, "this help text", NULL},
		POPT_TABLEEND};
	poptContext context;

	argv[0] = "vidmm merge"; /* the name that popt shows in its help */
	context = poptGetContext(NULL, argc, argv, table, 0);
	poptSetOtherOptionHelp(context, "FILE... [OPTION...]");
	if (read_options(context, &help, &options.files, &exit_code)) {
		exit_code = REPLAY_ENVIRONMENT;
		if (whatif_store_init(&store, verb, (char **)poptGetArgs(context)))
			exit_code = (int)merge(&store, &options);
		else
			out_of_memory();
		whatif_store_finish(&store);
	}
	whatif_options_finish(&options);
	poptFreeContext(context);
	return exit_code;
}
