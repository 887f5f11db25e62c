/* SPDX-License-Identifier: MIT */
/*
 * memory_limit: the memory of this machine that the contents of a replay's buffers may take
 * . Live buffers count in full, also before their first use. Other memory is counted when
 * it could pass the limit: instances that renames made, and closed buffers that the GPU still uses.
 */
#ifndef VIDMM_TOOLS_MEMORY_LIMIT_H
#define VIDMM_TOOLS_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

/* The bytes of all live buffers now and at the peak, and of the largest buffer. */
struct live {
	uint64_t bytes, peak_bytes, largest_bytes;
};

void live_count(struct live *live, const struct trace_event *event);

/* Bytes that the memory manager may hold beyond those of the live buffers. */
struct memory_beyond {
	uint64_t bytes;
};

/* Adds what the event, which has been played, may have left: an instance, or a closed buffer. */
void memory_beyond_count(struct memory_beyond *beyond, const struct trace_event *event);

/*
 * Writes the message about an event of the recording NAME after which USED bytes are needed, more
 * than LIMIT bytes. RENAMED: also instances and closed buffers were counted.
 */
void memory_limit_text(char *text, size_t size, const char *name, const struct trace_event *event,
		       uint64_t used, uint64_t limit, bool renamed);

#endif
