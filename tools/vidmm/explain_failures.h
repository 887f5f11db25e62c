/* SPDX-License-Identifier: MIT */
/*
 * The failed calls of a process, grouped by cause and status. The group whose root came first is
 * the first: later ones may follow from it.
 */
#ifndef VIDMM_TOOLS_EXPLAIN_FAILURES_H
#define VIDMM_TOOLS_EXPLAIN_FAILURES_H

#include <jansson.h>
#include <stdio.h>

#include "explain_cause.h"

enum { FAILURE_DOORS = 8 };

struct failure_group {
	uint32_t status;
	struct cause cause;          /* of the first call */
	uint64_t count, first, last; /* calls; events of the first and last one */
	/* Calls by function; those of further functions are counted in `count` only. */
	struct {
		char name[LOGGED_REASON_CHARS];
		uint64_t count;
	} door[FAILURE_DOORS];
	unsigned doors;
};

struct failures {
	struct failure_group *group; /* allocated */
	unsigned count;
};

/* Returns false when out of memory. */
bool failures_add(struct failures *failures, const struct logged_event *door,
		  const struct cause *cause);
/* Returns the name of a process for a text, "" if it has none. */
typedef const char *failures_name_fn(void *context, uint32_t process);
void failures_print(struct failures *failures, FILE *out, failures_name_fn *name, void *context);
/* Returns an array; NULL when out of memory. */
json_t *failures_json(struct failures *failures);

#endif
