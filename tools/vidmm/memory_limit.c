/* SPDX-License-Identifier: MIT */
#include "memory_limit.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB 1048576.0

void live_count(struct live *live, const struct trace_event *event)
{
	if (event->op == TRACE_CLOSE)
		live->bytes -= event->u.create.size_bytes;
	if (event->op != TRACE_CREATE && event->op != TRACE_IMPORT)
		return;
	live->bytes += event->u.create.size_bytes;
	if (event->u.create.size_bytes > live->largest_bytes)
		live->largest_bytes = event->u.create.size_bytes;
	if (live->bytes > live->peak_bytes)
		live->peak_bytes = live->bytes;
}

void memory_beyond_count(struct memory_beyond *beyond, const struct trace_event *event)
{
	/* Until the GPU has copied content into a segment, it has its backing store as well. */
	if (event->op == TRACE_CLOSE)
		beyond->bytes += 2 * event->u.create.size_bytes;
	else if (event->op == TRACE_WRITE)
		beyond->bytes += 2 * event->u.range.length;
}

void memory_limit_text(char *text, size_t size, const char *name, const struct trace_event *event,
		       uint64_t used, uint64_t limit, bool renamed)
{
	snprintf(text, size,
		 "%s:%" PRIu64 ": Q-490: live buffers%s take %.1f MiB of this machine's memory, "
		 "more than the limit of %.1f MiB (--memory)",
		 name, event->line,
		 renamed ? ", renamed instances and closed buffers that the GPU uses" : "",
		 (double)used / MIB, (double)limit / MIB);
}
