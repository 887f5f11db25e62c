/* SPDX-License-Identifier: MIT */
/* Internals of the trace library: the reader and its state. */
#ifndef VIDMM_TOOLS_TRACE_PRIVATE_H
#define VIDMM_TOOLS_TRACE_PRIVATE_H

#include "trace.h"
#include "trace_scan.h"
#include "trace_source.h"

#define TRACE_HEADER_LINES 9u
#define TRACE_NONE         UINT32_MAX

/* A buffer; the array index is its id. */
struct trace_buffer {
	uint64_t size_bytes; /* 0: not created, or closed */
	uint32_t listed;     /* low 32 bits of the number of the last submission that listed it */
	uint32_t maps;       /* first of its mappings in `maps`; TRACE_NONE: no mapping */
};

/* One CPU mapping. `next` links the mappings of a buffer, or the free elements. */
struct trace_map {
	uint64_t offset, length;
	uint32_t next;
};

struct trace_state {
	struct trace_buffer *buffers; /* [0] unused */
	uint32_t buffer_count, buffer_capacity;
	struct trace_map *maps;
	uint32_t map_capacity, map_free, map_alive;
	uint32_t *contexts;
	uint32_t context_count, context_capacity;
	uint64_t live_bytes;
	uint64_t submissions;
};

struct trace_reader {
	char *name;
	struct trace_limits limits;
	unsigned flags;
	struct trace_source *source;
	struct trace_header header;
	enum trace_result result; /* sticky: once it is not TRACE_OK, every call returns it */
	char error[512];

	/*
	 * Text buffer: [at, lines_end) holds whole lines, [lines_end, filled) the beginning of one.
	 */
	char *text;
	size_t capacity; /* bytes of `text`, without the TRACE_SCAN_SLACK bytes after them */
	const char *at, *lines_end, *filled;
	bool text_ended;
	uint64_t line; /* number of the line at `at`, from 1 */

	uint64_t last_time_ns;
	uint64_t events;
	struct trace_state state;
	struct trace_submission submission;
	uint32_t object_capacity, relocation_capacity, group_capacity, fence_capacity;
};

/*
 * Stores a message about the current line, and the result that this and all later reads return:
 * TRACE_BAD (trace_bad) or TRACE_IO (trace_failed).
 */
enum trace_result trace_bad(struct trace_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));
enum trace_result trace_failed(struct trace_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/*
 * Reads until [at, lines_end) holds at least one line. A text that ends before #end is TRACE_BAD.
 */
enum trace_result trace_fill(struct trace_reader *reader);
enum trace_result trace_read_header(struct trace_reader *reader);

/*
 * Parse the rest of an event. On entry scan->stop is the blank after the letter of the operation,
 * on return the end of the line.
 */
enum trace_result trace_parse_simple(struct trace_reader *reader, struct trace_scan *scan,
				     struct trace_event *event);
enum trace_result trace_parse_submission(struct trace_reader *reader, struct trace_scan *scan,
					 struct trace_event *event);

void trace_state_init(struct trace_state *state);
void trace_state_finish(struct trace_state *state);
/* Returns the live buffer with that id, or NULL. */
static inline struct trace_buffer *trace_state_buffer(const struct trace_state *state, uint64_t id)
{
	if (id - 1 >= state->buffer_count || state->buffers[id].size_bytes == 0)
		return NULL;
	return &state->buffers[id];
}
enum trace_result trace_state_create(struct trace_reader *reader, uint64_t id, uint64_t size_bytes);
void trace_state_close(struct trace_state *state, uint32_t id);
enum trace_result trace_state_map(struct trace_reader *reader, struct trace_buffer *buffer,
				  uint64_t offset, uint64_t length);
/* Removes a mapping with exactly this range. Returns false if there is none. */
bool trace_state_unmap(struct trace_state *state, struct trace_buffer *buffer, uint64_t offset,
		       uint64_t length);
bool trace_state_context_known(const struct trace_state *state, uint32_t context);
enum trace_result trace_state_context(struct trace_reader *reader, uint32_t context, bool begin);

#endif
