/* SPDX-License-Identifier: MIT */
/*
 * whatif_store: finished cells of `vidmm what-if` in files, so that a later run or `vidmm merge`
 * can use them.
 *
 * A file has one JSON object in each line: a header, then sweeps and cells in any order. A sweep is
 * what a run was asked for, and what it found about the recordings. A cell is one replay and its
 * outcome. Lines are only appended, each by one write, so that a run that is killed leaves at most
 * its last line incomplete. Such a line has no end, and counts as not there.
 */
#ifndef VIDMM_TOOLS_WHATIF_STORE_H
#define VIDMM_TOOLS_WHATIF_STORE_H

#include <jansson.h>

#include "whatif.h"

struct whatif_store {
	const char *verb; /* of `vidmm`, for messages */
	char **paths;     /* of the files; constant */
	json_t *cells;    /* key of a cell -> its line in a file */
	/* The last sweep of each file that was read, which are equal; NULL: none. */
	json_t *sweep;
	unsigned sweep_file, sweep_line;
	FILE *file; /* cells are appended to it; NULL: none, or writing failed */
	int error;  /* errno of the write that failed; 0: none */
};

bool whatif_store_init(struct whatif_store *store, const char *verb, char **paths);
/* Closes the file. Returns false after a message if something could not be written. */
bool whatif_store_finish(struct whatif_store *store);
/*
 * Adds the cells and the last sweep of paths[FILE]. Refuses, with a message that names file and
 * line, another format or version, lines that are not of the format, cells that disagree with those
 * of this or an earlier file, and a sweep that is not that of the earlier files.
 */
enum replay_status whatif_store_read(struct whatif_store *store, unsigned file);
/*
 * Reads paths[0], or creates it, and opens it to append: no other process can at the same time. An
 * incomplete last line is deleted.
 */
enum replay_status whatif_store_open(struct whatif_store *store);
/* Appends the sweep of the grid unless it is the last one of the file. */
bool whatif_store_begin(struct whatif_store *store, const struct whatif_grid *grid);
/*
 * Appends a cell that has ended. After a failure nothing more is written, and whatif_store_finish
 * says so.
 */
void whatif_store_add(struct whatif_store *store, const struct whatif_cell *cell);
/*
 * Gives the cells of the grid the outcomes that are in the store. With AGAIN those that the machine
 * made fail are left out. Returns how many cells have one, or -1 when out of memory.
 */
int whatif_store_take(const struct whatif_store *store, struct whatif_grid *grid, bool again);

/* ---- whatif_sweep.c ---- */
/* Returns what was asked for and what is known about the recordings; NULL: out of memory. */
json_t *whatif_sweep_json(const struct whatif_options *options,
			  const struct whatif_reading *readings);
/*
 * Fills recordings and lists of OPTIONS, and returns the readings. Returns NULL and fills *ERROR
 * with what is wrong.
 */
struct whatif_reading *whatif_sweep_parse(const json_t *sweep, struct whatif_options *options,
					  char error[static 160]);

/* ---- whatif_cell_json.c ---- */
/* Returns the object of a line, with the outcome if WITH_OUTCOME; NULL: out of memory. */
json_t *whatif_cell_json(const struct whatif_cell *cell, bool with_outcome);
/* Returns the text by which cells are found, which the caller frees; NULL: out of memory. */
char *whatif_cell_key(const json_t *line);
/* Returns whether LINE is a cell with an outcome; else fills *ERROR. */
bool whatif_cell_valid(json_t *line, json_error_t *error);
/* Stores the outcome of a valid line. */
void whatif_cell_take(const json_t *line, struct whatif_cell *cell);
/* Returns TEXT, or null if it is empty. The rest of a character that was cut off is left out. */
json_t *whatif_json_text(const char *text);

#endif
