/* SPDX-License-Identifier: MIT */
/*
 * The log of a server. Each line is one call of stdio, because lines come from several threads. A
 * client can cause lines at any rate, so each client has a token bucket: BURST_LINES at once,
 * LINES_PER_SECOND in the long run. The number of dropped lines is written before the client's next
 * line.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve.h"

/*
 * The buckets are indexed by client number modulo SOURCES; element 0 is for lines about no client.
 */
enum { SOURCES = 64, BURST_LINES = 200, LINES_PER_SECOND = 2 };

struct source {
	uint64_t full_ns; /* the time at which the bucket is full again */
	uint64_t left_out;
};
static struct source sources[SOURCES + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Takes a token for a line. Returns false if the bucket is empty: the line is dropped. *LEFT_OUT is
 * the number of lines dropped before this one.
 */
static bool take_token(struct source *s, uint64_t *left_out)
{
	const uint64_t interval_ns = 1000000000u / LINES_PER_SECOND, now = now_ns();
	bool allowed;

	pthread_mutex_lock(&lock);
	if (s->full_ns < now)
		s->full_ns = now;
	allowed = s->full_ns - now <= (BURST_LINES - 1) * interval_ns;
	*left_out = allowed ? s->left_out : 0;
	s->left_out = allowed ? 0 : s->left_out + 1;
	if (allowed)
		s->full_ns += interval_ns;
	pthread_mutex_unlock(&lock);
	return allowed;
}

void serve_log_write(FILE *log, const char *text)
{
	char when[32];
	time_t now = time(NULL);
	struct tm parts;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
	fprintf(log, "%s vidmm: %s\n", when, text);
	fflush(log);
}

void serve_log_limited(FILE *log, uint32_t client, const char *text)
{
	char line[64];
	uint64_t left_out;

	if (!take_token(&sources[client ? 1 + client % SOURCES : 0], &left_out))
		return;
	if (left_out) {
		snprintf(line, sizeof(line), "%" PRIu64 " lines of this client were dropped here",
			 left_out);
		serve_log_write(log, line);
	}
	serve_log_write(log, text);
}
