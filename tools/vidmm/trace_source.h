/* SPDX-License-Identifier: MIT */
/*
 * trace_source: where a recording's plain text comes from. A file or memory, decompressed when it begins like a
 * zstd frame, optionally read ahead by a thread. Private to the trace library.
 */
#ifndef VIDMM_TOOLS_TRACE_SOURCE_H
#define VIDMM_TOOLS_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_source;

/* NULL when out of memory. What else may go wrong is reported by the first read. */
struct trace_source *trace_source_file(const char *path, bool read_ahead);
struct trace_source *trace_source_memory(const void *data, size_t size);
void trace_source_close(struct trace_source *source);

/* Returns the bytes read, 0 at the end, -1 on failure (then *why is a static or source-owned text). */
long trace_source_read(struct trace_source *source, char *buffer, size_t size, const char **why);
/* After -1: the bytes are at fault (a broken frame), not the world. */
bool trace_source_bad_data(const struct trace_source *source);
uint64_t trace_source_consumed(const struct trace_source *source);
uint64_t trace_source_size(const struct trace_source *source);

#endif
