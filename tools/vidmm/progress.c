/* SPDX-License-Identifier: MIT */
/* The progress bar. */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "progress.h"
#include "units.h"

#define INTERVAL_NS 100000000u
#define WIDTH       40

/* Before the first percent the speed says little. */
static void print_estimate(const struct progress *progress, double fraction, uint64_t now_ns)
{
	double elapsed_ns = (double)(now_ns - progress->begun_ns);
	char text[32];

	if (progress->estimate && fraction >= 0.01 && fraction <= 1)
		fprintf(stderr, ", about %s left\033[K",
			units_time((uint64_t)(elapsed_ns / fraction * (1 - fraction)), text,
				   sizeof(text)));
}

void progress_update(void *context, double fraction)
{
	struct progress *progress = context;
	struct timespec time;
	uint64_t now_ns;
	int filled = (int)(fraction * WIDTH), i;

	clock_gettime(CLOCK_MONOTONIC, &time);
	now_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	/* no bar in the first interval: a short replay shows none */
	if (progress->drawn_ns == 0)
		progress->drawn_ns = progress->begun_ns = now_ns;
	if (now_ns - progress->drawn_ns < INTERVAL_NS)
		return;
	progress->drawn_ns = now_ns;
	progress->shown = true;
	fprintf(stderr, "\r%s [", progress->what);
	for (i = 0; i < WIDTH; i++)
		fputc(i < filled ? '#' : '.', stderr);
	fprintf(stderr, "] %3d %%", (int)(fraction * 100));
	print_estimate(progress, fraction, now_ns);
	fflush(stderr);
}

void progress_clear(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
