/* SPDX-License-Identifier: MIT */
/*
 * The state that later events are checked against: sizes of live buffers, their mappings, contexts.
 * Each array grows with the ids and events of the recording, up to the limits of the reader.
 */
#include <stdlib.h>

#include "grow.h"
#include "trace_private.h"

void trace_state_init(struct trace_state *state)
{
	*state = (struct trace_state){.map_free = TRACE_NONE};
}

void trace_state_finish(struct trace_state *state)
{
	free(state->buffers);
	free(state->maps);
	free(state->contexts);
}

enum trace_result trace_state_create(struct trace_reader *reader, uint64_t id, uint64_t size_bytes)
{
	struct trace_state *state = &reader->state;

	if (id != (uint64_t)state->buffer_count + 1)
		return trace_bad(reader, "buffer id %llu is out of order: expected %u",
				 (unsigned long long)id, state->buffer_count + 1);
	if (size_bytes == 0 || size_bytes % 4096 != 0)
		return trace_bad(reader, "buffer size %llu is not a number of pages",
				 (unsigned long long)size_bytes);
	if (id > reader->limits.buffers)
		return trace_bad(reader, "more than %u buffers", reader->limits.buffers);
	if (size_bytes > reader->limits.buffer_bytes ||
	    size_bytes > reader->limits.live_bytes - state->live_bytes)
		return trace_bad(reader, "buffers larger than %llu bytes, or %llu together",
				 (unsigned long long)reader->limits.buffer_bytes,
				 (unsigned long long)reader->limits.live_bytes);
	if (!grow_array((void **)&state->buffers, &state->buffer_capacity, state->buffer_count + 1,
			sizeof(*state->buffers)))
		return trace_failed(reader, "out of memory");
	state->buffers[id] = (struct trace_buffer){.size_bytes = size_bytes, .maps = TRACE_NONE};
	state->buffer_count++;
	state->live_bytes += size_bytes;
	return TRACE_OK;
}

static void free_map(struct trace_state *state, uint32_t index)
{
	state->maps[index].next = state->map_free;
	state->map_free = index;
	state->map_alive--;
}

void trace_state_close(struct trace_state *state, uint32_t id)
{
	struct trace_buffer *buffer = &state->buffers[id];

	while (buffer->maps != TRACE_NONE) {
		uint32_t index = buffer->maps;

		buffer->maps = state->maps[index].next;
		free_map(state, index);
	}
	state->live_bytes -= buffer->size_bytes;
	buffer->size_bytes = 0;
}

enum trace_result trace_state_map(struct trace_reader *reader, struct trace_buffer *buffer,
				  uint64_t offset, uint64_t length)
{
	struct trace_state *state = &reader->state;
	uint32_t index = state->map_free;

	if (state->map_alive >= reader->limits.maps)
		return trace_bad(reader, "more than %u mappings", reader->limits.maps);
	if (index != TRACE_NONE) {
		state->map_free = state->maps[index].next;
	} else {
		/* The free list is empty: elements [0, map_alive) are in use. */
		index = state->map_alive;
		if (!grow_array((void **)&state->maps, &state->map_capacity, index,
				sizeof(*state->maps)))
			return trace_failed(reader, "out of memory");
	}
	state->map_alive++;
	state->maps[index] = (struct trace_map){offset, length, buffer->maps};
	buffer->maps = index;
	return TRACE_OK;
}

bool trace_state_unmap(struct trace_state *state, struct trace_buffer *buffer, uint64_t offset,
		       uint64_t length)
{
	uint32_t *link = &buffer->maps;

	while (*link != TRACE_NONE) {
		uint32_t index = *link;
		struct trace_map *map = &state->maps[index];

		if (map->offset == offset && map->length == length) {
			*link = map->next;
			free_map(state, index);
			return true;
		}
		link = &map->next;
	}
	return false;
}

static uint32_t find_context(const struct trace_state *state, uint32_t context)
{
	uint32_t i;

	for (i = state->context_count; i-- > 0;) {
		if (state->contexts[i] == context)
			return i;
	}
	return TRACE_NONE;
}

bool trace_state_context_known(const struct trace_state *state, uint32_t context)
{
	return context == 0 || find_context(state, context) != TRACE_NONE;
}

enum trace_result trace_state_context(struct trace_reader *reader, uint32_t context, bool begin)
{
	struct trace_state *state = &reader->state;
	uint32_t index = find_context(state, context);

	if (begin) {
		if (context == 0 || index != TRACE_NONE)
			return trace_bad(reader, "context %u already exists", context);
		if (state->context_count >= reader->limits.contexts)
			return trace_bad(reader, "more than %u contexts", reader->limits.contexts);
		if (!grow_array((void **)&state->contexts, &state->context_capacity,
				state->context_count, sizeof(*state->contexts)))
			return trace_failed(reader, "out of memory");
		state->contexts[state->context_count++] = context;
		return TRACE_OK;
	}
	if (context == 0)
		return trace_bad(reader, "context 0 cannot end: it always exists");
	if (index == TRACE_NONE)
		return trace_bad(reader, "unknown context %u", context);
	state->contexts[index] = state->contexts[--state->context_count];
	return TRACE_OK;
}
