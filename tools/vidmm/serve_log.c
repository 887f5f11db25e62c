/* SPDX-License-Identifier: MIT */
/*
 * The log of a server: one call a line, because lines come from several threads. What a client does wrong is said there, and it can
 * do that as fast as it likes: each has so many lines at once and so many in a second; how many were left out is said with its next one.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "serve.h"

/* Clients by their numbers, which go round; the first is of whatever is no client's. */
enum { SOURCES = 64, AT_ONCE = 200, IN_A_SECOND = 2 };

struct source {
	uint64_t full_ns; /* when it may say as much as ever again */
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

/* *left_out: before this one. */
static bool may_say(struct source *s, uint64_t *left_out)
{
	const uint64_t each = 1000000000u / IN_A_SECOND, now = now_ns();
	bool may;

	pthread_mutex_lock(&lock);
	if (s->full_ns < now)
		s->full_ns = now;
	may = s->full_ns - now <= (AT_ONCE - 1) * each;
	*left_out = may ? s->left_out : 0;
	s->left_out = may ? 0 : s->left_out + 1;
	if (may)
		s->full_ns += each;
	pthread_mutex_unlock(&lock);
	return may;
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

void serve_log_of(FILE *log, uint32_t client, const char *text)
{
	char line[64];
	uint64_t left_out;

	if (!may_say(&sources[client ? 1 + client % SOURCES : 0], &left_out))
		return;
	if (left_out) {
		snprintf(line, sizeof(line), "%" PRIu64 " lines were left out here", left_out);
		serve_log_write(log, line);
	}
	serve_log_write(log, text);
}
