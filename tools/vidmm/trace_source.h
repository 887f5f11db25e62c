/* SPDX-License-Identifier: MIT */
/*
 * trace_source: the plain text of a recording: a file or memory, decompressed if it begins like a
 * zstd frame, optionally read ahead by a thread. Private to the trace library.
 */
#ifndef VIDMM_TOOLS_TRACE_SOURCE_H
#define VIDMM_TOOLS_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_source;

/* Return NULL when out of memory. All other failures are those of the first read. */
struct trace_source *trace_source_file(const char *path, bool read_ahead);
struct trace_source *trace_source_memory(const void *data, size_t size);
void trace_source_close(struct trace_source *source);

/*
 * Reads up to SIZE bytes. Returns their number, 0 at the end, -1 on failure; then *WHY is a text
 * owned by the source.
 */
long trace_source_read(struct trace_source *source, char *buffer, size_t size, const char **why);
/*
 * After -1: returns whether the data is invalid (a broken frame), as opposed to a failure of the
 * system.
 */
bool trace_source_bad_data(const struct trace_source *source);
/*
 * Returns how many bytes of the file or memory range the text so far was made of, without the last
 * UNUSED_BYTES bytes of the text. An estimate within a block of zstd.
 */
uint64_t trace_source_progress(const struct trace_source *source, uint64_t unused_bytes);
uint64_t trace_source_size(const struct trace_source *source);

#endif
