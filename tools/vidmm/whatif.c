/* SPDX-License-Identifier: MIT */
#include "whatif.h"

#include <stdio.h>

#include "whatif_store.h"

static enum replay_status out_of_memory(void)
{
	fputs("vidmm what-if: out of memory\n", stderr);
	return REPLAY_ENVIRONMENT;
}

static enum replay_status run_and_report(struct whatif_grid *grid, struct whatif_store *store)
{
	if (!whatif_grid_run(grid, store))
		return out_of_memory();
	whatif_grid_failures(grid);
	return whatif_report(&grid->options->files, grid);
}

/* A part of the result is no table: it says what the file has. */
static enum replay_status run_shard(struct whatif_grid *grid, struct whatif_store *store)
{
	const struct whatif_options *options = grid->options;
	unsigned own = 0;

	if (!whatif_shard_choose(grid) || !whatif_grid_run(grid, store))
		return out_of_memory();
	whatif_grid_failures(grid);
	for (unsigned i = 0; i < grid->total; i++)
		own += !grid->cells[i].elsewhere;
	printf("shard %u/%u: %u of %u replays, in %s\n", options->shard, options->shards, own,
	       grid->total, options->state_path);
	return whatif_grid_status(grid);
}

/* Replays what is not in the file yet, and appends that. */
static enum replay_status run_with_store(struct whatif_grid *grid, struct whatif_store *store)
{
	int finished;

	if (!whatif_store_begin(store, grid))
		return REPLAY_ENVIRONMENT;
	finished = whatif_store_take(store, grid, true);
	if (finished < 0)
		return out_of_memory();
	if (finished > 0)
		fprintf(stderr, "vidmm what-if: %d of %u replays are in %s\n", finished,
			grid->total, grid->options->state_path);
	return grid->options->shards ? run_shard(grid, store) : run_and_report(grid, store);
}

static enum replay_status run(struct whatif_options *options, struct whatif_store *store)
{
	struct whatif_grid grid;
	enum replay_status status;

	if (!whatif_grid_make(&grid, options, whatif_readings_make(options)))
		status = out_of_memory();
	else if (store)
		status = run_with_store(&grid, store);
	else
		status = run_and_report(&grid, NULL);
	whatif_grid_finish(&grid);
	return status;
}

static enum replay_status open_and_run(struct whatif_options *options)
{
	struct whatif_store store;
	enum replay_status status = REPLAY_ENVIRONMENT;

	if (whatif_store_init(&store, options->verb, &options->state_path))
		status = whatif_store_open(&store);
	if (status == REPLAY_CLEAN)
		status = run(options, &store);
	if (!whatif_store_finish(&store))
		status = REPLAY_ENVIRONMENT;
	return status;
}

int whatif_main(int argc, const char **argv)
{
	struct whatif_options options;
	enum replay_status status;
	int exit_code;

	if (!whatif_options_parse(argc, argv, &options, &exit_code)) {
		whatif_options_finish(&options);
		return exit_code;
	}
	status = options.state_path ? open_and_run(&options) : run(&options, NULL);
	whatif_options_finish(&options);
	return (int)status;
}
