/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "parse_only.h"

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static enum replay_status parse_one(const struct replay_options *options, const char *path)
{
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t events = 0, submissions = 0, objects = 0, relocations = 0;
	double ns = now_ns();
	enum trace_result result =
		trace_open_file(path, options->limits, TRACE_READ_AHEAD, &reader);

	while (result == TRACE_OK && (result = trace_next(reader, &event)) == TRACE_OK) {
		events++;
		if (event.op != TRACE_SUBMIT)
			continue;
		submissions++;
		objects += event.u.submission->object_count;
		relocations += event.u.submission->relocation_count;
	}
	ns = now_ns() - ns;
	if (result == TRACE_END)
		printf("%s: %" PRIu64 " events, %" PRIu64 " submissions, %" PRIu64
		       " references, %" PRIu64 " relocations, %.1f ms\n",
		       path, events, submissions, objects, relocations, ns / 1e6);
	else
		options->message(options->message_context,
				 reader ? trace_error(reader) : "out of memory");
	trace_close(reader);
	return result == TRACE_END   ? REPLAY_CLEAN
	       : result == TRACE_BAD ? REPLAY_BAD_INPUT
				     : REPLAY_ENVIRONMENT;
}

enum replay_status parse_only(const struct replay_options *options)
{
	enum replay_status worst = REPLAY_CLEAN;
	unsigned i;

	for (i = 0; i < options->input_count; i++) {
		enum replay_status status = parse_one(options, options->inputs[i].path);

		if (status > worst)
			worst = status;
	}
	return worst;
}
