/* SPDX-License-Identifier: MIT */
/*
 * check_stream: checks of `vidmm check` over the events of a run, beside the findings that the
 * library made: operations that succeeded without effect, page faults, and locks and residency
 * that were not undone (docs/check.md).
 */
#ifndef VIDMM_TOOLS_CHECK_STREAM_H
#define VIDMM_TOOLS_CHECK_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <vidmm/vidmm.h>

#include "handle_map.h"

/* What a process has done, and the locks whose allocation has just been destroyed. */
struct check_process {
	uint32_t process;
	uint64_t created, made, evicted;
	uint32_t locked;        /* allocations of the present call that were locked */
	uint32_t object, locks; /* of the first of them: handle, and locks that were left */
};

/* All zero: before the first event. */
struct check_stream {
	struct handle_map locks; /* how often a handle is locked now */
	struct check_process *processes;
	uint32_t count, capacity;
	char text[256]; /* of the last finding */
};

void check_stream_finish(struct check_stream *stream);

/* What an event showed. rule NULL: nothing. text is valid until the next event. */
struct check_seen {
	const char *rule, *text;
	uint32_t object;
};

/* Takes the next event. Returns false when out of memory. TEXT: of the event, or NULL. */
bool check_stream_event(struct check_stream *stream, const struct vidmm_event *event,
			const char *text, struct check_seen *seen);

#endif
