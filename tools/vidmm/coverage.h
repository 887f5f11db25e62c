/* SPDX-License-Identifier: MIT */
/*
 * `vidmm coverage`: which DDIs, calls, paging operations, reasons, flags and statuses recorded
 * events contain, and which they do not (docs/check.md).
 */
#ifndef VIDMM_TOOLS_COVERAGE_H
#define VIDMM_TOOLS_COVERAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <vidmm/vidmm.h>

#define COVERAGE_REASONS_MAX 128u
/* The index of an argument that a type does not have. */
#define COVERAGE_NO_ARGUMENT 4u

/* One name of a type: ddi/render, paging/fill. */
struct covered {
	uint64_t count;
	uint64_t flags; /* of all its events together */
};
struct covered_type {
	uint64_t count;
	unsigned status, flags; /* which arguments these are */
	struct covered reason[COVERAGE_REASONS_MAX];
};
struct covered_status {
	uint16_t type, reason;
	uint32_t status;
	uint64_t count;
};
struct coverage {
	json_t *names; /* what record_describe returns */
	struct covered_type type[VIDMM_EVENT_TYPE_COUNT];
	struct covered_status *statuses;
	uint32_t status_count, status_capacity;
	uint64_t events;
};

/* Returns the name of a type, or of a reason of it; NULL: it has none. */
const char *coverage_type(const struct coverage *coverage, unsigned type);
const char *coverage_reason(const struct coverage *coverage, unsigned type, unsigned reason);
/* Returns how many names of reasons the type has; in *SEEN how many of them occurred. */
unsigned coverage_names(const struct coverage *coverage, unsigned type, unsigned *seen);

/* ---- coverage_print.c; coverage_json returns false when out of memory ---- */
void coverage_text(FILE *file, const struct coverage *coverage);
bool coverage_json(FILE *file, const struct coverage *coverage);

int coverage_main(int argc, const char **argv);

#endif
