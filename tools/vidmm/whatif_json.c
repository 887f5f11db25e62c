/* SPDX-License-Identifier: MIT */
/* The result of `vidmm what-if` as JSON. */
#include <jansson.h>
#include <stdio.h>

#include "json_text.h"
#include "policy.h"
#include "whatif.h"

#define SCHEMA_VERSION 1

/* A file name may contain any bytes: a text that is not UTF-8 is null. */
static json_t *text_or_null(const char *text)
{
	json_t *string = text[0] ? json_string(text) : NULL;

	return string ? string : json_null();
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void add_series(json_t *object, const struct whatif_cell *cell)
{
	json_object_set_new(object, "recording", text_or_null(cell->recording));
	json_object_set_new(object, "policy", json_string(policy_name(cell->policy)));
	json_object_set_new(object, "link", json_string(cell->link->name));
	json_object_set_new(object, "model", json_string(whatif_model_name(cell)));
}

static void add_memory(json_t *object, const struct whatif_cell *cell)
{
	bool percent = !cell->size->bytes;

	json_object_set_new(object, "vram_bytes",
			    cell->measured ? number(cell->vram_bytes) : json_null());
	json_object_set_new(object, "vram_percent",
			    percent ? json_real(cell->size->percent) : json_null());
	json_object_set_new(object, "vram_percent_of",
			    percent ? json_string(memory_size_percent_of(cell->size))
				    : json_null());
}

static void add_figures(json_t *object, const struct whatif_cell *cell)
{
	const struct whatif_outcome *outcome = cell->outcome;
	uint64_t again = 0;
	bool known = whatif_cell_again(cell, &again);
	const struct {
		const char *key;
		uint64_t value;
		bool known;
	} figures[] = {
		{"bytes_paged_in", outcome->bytes_paged_in, true},
		{"bytes_paged_in_again", again, known},
		{"frames", outcome->frames, true},
		{"late_frames", outcome->late_frames, true},
		{"latency_p99_ns", outcome->p99_ns, true},
		{"longest_stall_ns", outcome->stall_ns, true},
		{"slowdown_permille", outcome->slowdown_permille, true},
	};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(object, figures[i].key,
				    figures[i].known && cell->end == REPLAY_CLEAN
					    ? number(figures[i].value)
					    : json_null());
}

static json_t *cell_object(const struct whatif_cell *cell)
{
	json_t *object = json_object();

	add_series(object, cell);
	add_memory(object, cell);
	add_figures(object, cell);
	json_object_set_new(object, "status", json_string(cell->status_text));
	json_object_set_new(object, "message", text_or_null(cell->outcome->message));
	json_object_set_new(object, "exit_code", json_integer(cell->end));
	return object;
}

static json_t *knees(const struct whatif_grid *grid)
{
	unsigned series = whatif_grid_series(grid);
	json_t *array = json_array();

	for (unsigned i = 0; i < grid->options->recording_count * series; i++) {
		const struct whatif_cell *knee = whatif_grid_knee(grid, i / series, i % series);
		unsigned first = i / series * grid->options->sizes.count * series;
		json_t *object = json_object();

		add_series(object, &grid->cells[first + i % series]);
		json_object_set_new(object, "vram_bytes",
				    knee ? number(knee->vram_bytes) : json_null());
		json_array_append_new(array, object);
	}
	return array;
}

bool whatif_json(FILE *file, const struct whatif_grid *grid)
{
	json_t *cells = json_array(), *top;

	for (unsigned i = 0; i < grid->count; i++)
		json_array_append_new(cells, cell_object(&grid->cells[i]));
	top = json_pack("{s:i, s:s, s:o, s:o, s:i}", "schema_version", SCHEMA_VERSION,
			"vidmm_version", vidmm_version(), "cells", cells, "knees", knees(grid),
			"exit_code", whatif_grid_status(grid));
	return json_write(file, top);
}
