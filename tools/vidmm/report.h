/* SPDX-License-Identifier: MIT */
/*
 * `vidmm report RUN [RUN] -o FILE.html`: recordings of events as one page that a browser opens from
 * the disk (docs/report.md). The page has its data, its script and a drawing library in it.
 */
#ifndef VIDMM_TOOLS_REPORT_H
#define VIDMM_TOOLS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "report_stalls.h"
#include "timeline.h"

#define REPORT_RUNS_MAX 2u

struct report_run {
	const char *path;
	const json_t *about; /* of the recording */
	struct timeline timeline;
	struct report_stalls stalls;
	bool cut; /* the recording ends in the middle of a chunk */
};

/* Writes the page. Returns false when out of memory; errors of FILE are the caller's. */
bool report_page(FILE *file, const struct report_run *runs, unsigned count);

int report_main(int argc, const char **argv);

#endif
