/* SPDX-License-Identifier: MIT */
/*
 * whatif: `vidmm what-if` replays each recording once for each combination of memory size, policy,
 * link and model, and compares what was paged and how late the frames were (docs/what-if.md).
 *
 * A combination is a cell. Each cell runs in a process (pool.h), and leaves its outcome in memory
 * that it shares with the caller.
 */
#ifndef VIDMM_TOOLS_WHATIF_H
#define VIDMM_TOOLS_WHATIF_H

#include <stdatomic.h>
#include <stdio.h>

#include "policy.h"
#include "size_list.h"

#define WHATIF_POLICIES_MAX ((unsigned)REPLAY_POLICY_REFERENCE + POLICY_FILES_MAX)
#define WHATIF_LINKS_MAX    31u
#define WHATIF_MODELS_MAX   2u
#define WHATIF_JOBS_MAX     1024u

struct whatif_link {
	char name[16];
	struct link_model model;
	struct cost_model costs; /* of the CPU, with this link */
};

/* Files for the result, in the forms of CSV, JSON, HTML and SVG. */
#define WHATIF_FORMS 4u
struct whatif_files {
	char *paths[WHATIF_FORMS]; /* "-": the standard output; NULL: none */
};
/* Rows of a table of popt for the paths of FILES, for whatif_options.c and merge.c. */
#define WHATIF_FILE_OPTIONS(files)                                                      \
	{"csv",                                                                         \
	 0,                                                                             \
	 POPT_ARG_STRING,                                                               \
	 &(files).paths[0],                                                             \
	 0,                                                                             \
	 "file for the results as comma-separated values (-: standard output)",         \
	 "FILE"},                                                                       \
		{"json",                                                                \
		 0,                                                                     \
		 POPT_ARG_STRING,                                                       \
		 &(files).paths[1],                                                     \
		 0,                                                                     \
		 "file for the results as JSON (-: standard output)",                   \
		 "FILE"},                                                               \
		{"html",                                                                \
		 0,                                                                     \
		 POPT_ARG_STRING,                                                       \
		 &(files).paths[2],                                                     \
		 0,                                                                     \
		 "file for charts and tables as a page (-: standard output)",           \
		 "FILE"},                                                               \
	{                                                                               \
		"svg", 0, POPT_ARG_STRING, &(files).paths[3], 0,                        \
			"file for the charts as a picture (-: standard output)", "FILE" \
	}

/* The lists as texts. */
struct whatif_lists {
	char *vram, *policy, *link, *model;
};

struct whatif_options {
	const char *verb; /* of `vidmm`, for messages */
	char **recordings;
	unsigned recording_count;
	struct whatif_lists lists;
	/* what the lists contain */
	struct size_list sizes;
	enum replay_policy policies[WHATIF_POLICIES_MAX];
	unsigned policy_count;
	bool bad_policy_file; /* after a message */
	struct whatif_link links[WHATIF_LINKS_MAX];
	unsigned link_count;
	bool wddm2[WHATIF_MODELS_MAX];
	unsigned model_count;
	unsigned jobs; /* processes at a time */
	struct whatif_files files;
	char *state_path; /* of the file of finished cells; NULL: none */
	/* Part `shard` of `shards`, from 1, is replayed; shards 0: all cells. */
	unsigned shard, shards;
};

/* Parses argv[1..] of `vidmm what-if`; returns as options_parse does (options.h). */
bool whatif_options_parse(int argc, const char **argv, struct whatif_options *options,
			  int *exit_code);
void whatif_options_finish(struct whatif_options *options);

/* ---- whatif_lists.c ---- */
struct whatif_list_error {
	const char *option, *value, *expected;
};

/* Parses options->lists, none of which is NULL. Returns false and fills *ERROR for a wrong one. */
bool whatif_lists_parse(struct whatif_options *options, struct whatif_list_error *error);
void whatif_lists_finish(struct whatif_lists *lists);

/* ---- whatif_reading.c ---- */
/* What a first pass over a recording found. */
struct whatif_reading {
	struct replay_measure measure;
	enum replay_status status;
	char message[240]; /* empty: none */
	char content[48];  /* tells recordings with other bytes apart; empty: not computed */
};

/* Returns one for each recording; NULL: out of memory. Prints a message for each that fails. */
struct whatif_reading *whatif_readings_make(const struct whatif_options *options);

/* ---- whatif_cell.c ---- */
/* Written by the process of the cell. */
struct whatif_outcome {
	atomic_uint permille; /* progress */
	enum replay_status status;
	char message[240]; /* the first one; empty: none */
	/* valid if the status is REPLAY_CLEAN */
	uint64_t bytes_paged_in, frames, late_frames, p99_ns, stall_ns, slowdown_permille;
};

struct whatif_cell {
	const char *recording;
	const struct whatif_reading *reading;
	const struct memory_size *size;
	const struct whatif_link *link;
	enum replay_policy policy;
	bool wddm2;
	uint64_t vram_bytes;
	/* The policy lru with 100 % of the memory, which pages in what is used first. */
	const struct whatif_cell *first;
	struct whatif_outcome *outcome;
	bool measured;          /* the recording was read, so that the sizes are known */
	bool finished;          /* the outcome is from a file of cells */
	bool elsewhere;         /* the cell belongs to another shard */
	enum replay_status end; /* REPLAY_CLEAN: there are figures */
	char status_text[40];   /* "clean", or why there are none */
};

/* Replays the cell, in its own process. */
void whatif_cell_run(const struct whatif_cell *cell);
/* Stores the bytes that were paged in beyond first uses. Returns false if they are unknown. */
bool whatif_cell_again(const struct whatif_cell *cell, uint64_t *bytes);
/* Returns whether the cell has figures, and less than 1 % of its frames were late. */
bool whatif_cell_in_time(const struct whatif_cell *cell);
const char *whatif_model_name(const struct whatif_cell *cell);
/* Prints "recording, memory, policy, link, model" for messages. */
void whatif_cell_print(FILE *file, const struct whatif_cell *cell);
/* Stores how the cell ended. TEXT: why it has no figures; NULL: the name of STATUS. */
void whatif_cell_end(struct whatif_cell *cell, enum replay_status status, const char *text);

/* ---- whatif_grid.c ---- */
struct whatif_grid {
	const struct whatif_options *options;
	/*
	 * [count] are those asked for, in the order recording, size, policy, link, model; up to
	 * `total` follow those that are only needed as `first`.
	 */
	struct whatif_cell *cells;
	unsigned count, total;
	struct whatif_outcome *outcomes; /* [total], shared with the processes */
	struct whatif_reading *readings; /* [recording_count] */
	size_t capacity;                 /* of both arrays */
};
/*
 * Makes the cells, and takes READINGS over; NULL: none, out of memory. Returns false when out of
 * memory. whatif_grid_finish follows in any case.
 */
bool whatif_grid_make(struct whatif_grid *grid, const struct whatif_options *options,
		      struct whatif_reading *readings);
void whatif_grid_finish(struct whatif_grid *grid);
/* Returns the worst status of the cells, those of first uses included. */
enum replay_status whatif_grid_status(const struct whatif_grid *grid);
/*
 * Returns the cell with the least memory that is in time among those that differ from cell INDEX in
 * memory alone; NULL: none. INDEX is below the number of cells for one recording and size.
 */
const struct whatif_cell *whatif_grid_knee(const struct whatif_grid *grid, unsigned recording,
					   unsigned index);
/* Returns the number of cells for one recording and size. */
unsigned whatif_grid_series(const struct whatif_grid *grid);

/* ---- whatif_run.c ---- */
struct whatif_store;

/*
 * Runs the cells whose recording could be read, that are not finished, and not of another shard.
 * Adds them to STORE (NULL: none) as they end. Returns false when out of memory.
 */
bool whatif_grid_run(struct whatif_grid *grid, struct whatif_store *store);
/* Prints a message for each cell that failed. */
void whatif_grid_failures(const struct whatif_grid *grid);

/* ---- whatif_shard.c ---- */
/* Marks the cells of other shards. Returns false when out of memory. */
bool whatif_shard_choose(struct whatif_grid *grid);

/* ---- whatif_report.c ---- */
/* Returns whether at most one file is the standard output; else prints a message for VERB. */
bool whatif_files_valid(const struct whatif_files *files, const char *verb);
void whatif_files_finish(struct whatif_files *files);
/*
 * Writes the result to all files, and as a table to the standard output unless that is a file.
 * Returns the status of the grid, or REPLAY_ENVIRONMENT if a file could not be written.
 */
enum replay_status whatif_report(const struct whatif_files *files, const struct whatif_grid *grid);

/* ---- whatif_text.c ---- */
/* Figures with their units; `again` is "-" if it is unknown. */
struct whatif_text {
	char again[32], late[64], p99[32], stall[32], slower[32];
};

/* CELL has figures. */
void whatif_text_figures(const struct whatif_cell *cell, struct whatif_text *text);
/* Writes the amount of memory, with the percentage if that was given. Returns TEXT. */
const char *whatif_text_memory(const struct whatif_cell *cell, char *text, size_t size);

/* ---- whatif_table.c, whatif_csv.c, whatif_json.c, whatif_chart.c, whatif_html.c ---- */
void whatif_table(FILE *file, const struct whatif_grid *grid);
void whatif_csv(FILE *file, const struct whatif_grid *grid);
/* Returns false when out of memory or if FILE cannot be written. */
bool whatif_json(FILE *file, const struct whatif_grid *grid);
void whatif_svg(FILE *file, const struct whatif_grid *grid);
void whatif_html(FILE *file, const struct whatif_grid *grid);

int whatif_main(int argc, const char **argv);

#endif
