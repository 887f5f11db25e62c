/* SPDX-License-Identifier: MIT */
/* Implements next_uses.h. */
#include <stdlib.h>

#include "grow.h"
#include "next_uses.h"

/* The uses of one buffer: numbers of submissions, rising. Those before `at` are in the past. */
struct buffer_uses {
	uint32_t *submission;
	uint32_t count, capacity, at;
};

/*
 * The buffer that an allocation handle named when it was last looked up. The driver's handles
 * change, so an entry is only a hint: the driver is asked whether the buffer still has the handle.
 */
#define HINTS 4096u
struct hint {
	uint32_t handle, buffer;
};

struct process_uses {
	struct buffer_uses *buffers; /* index: id - 1 */
	uint32_t count, capacity;
	struct hint hints[HINTS];
};

struct next_uses {
	struct process_uses *processes;
	unsigned process_count;
	uint32_t added;   /* submissions of the recordings */
	uint32_t current; /* the submission that the replay is at */
};

struct next_uses *next_uses_create(unsigned process_count)
{
	struct next_uses *uses = calloc(1, sizeof(*uses));

	if (!uses)
		return NULL;
	uses->process_count = process_count;
	uses->processes = calloc(process_count, sizeof(*uses->processes));
	if (uses->processes)
		return uses;
	free(uses);
	return NULL;
}

void next_uses_destroy(struct next_uses *uses)
{
	if (!uses)
		return;
	for (unsigned p = 0; p < uses->process_count; p++) {
		for (uint32_t i = 0; i < uses->processes[p].count; i++)
			free(uses->processes[p].buffers[i].submission);
		free(uses->processes[p].buffers);
	}
	free(uses->processes);
	free(uses);
}

static bool add_use(struct process_uses *process, uint32_t id, uint32_t submission)
{
	struct buffer_uses *buffer;

	while (process->count < id) {
		if (!grow_array((void **)&process->buffers, &process->capacity, process->count,
				sizeof(*process->buffers)))
			return false;
		process->buffers[process->count++] = (struct buffer_uses){0};
	}
	buffer = &process->buffers[id - 1];
	if (!grow_array((void **)&buffer->submission, &buffer->capacity, buffer->count,
			sizeof(*buffer->submission)))
		return false;
	buffer->submission[buffer->count++] = submission;
	return true;
}

bool next_uses_add(struct next_uses *uses, unsigned process, const struct trace_event *event)
{
	if (event->op != TRACE_SUBMIT)
		return true;
	for (uint32_t i = 0; i < event->u.submission->object_count; i++)
		if (!add_use(&uses->processes[process], event->u.submission->objects[i].id,
			     uses->added))
			return false;
	uses->added++;
	return true;
}

void next_uses_advance(struct next_uses *uses)
{
	uses->current++;
}

void next_uses_rewind(struct next_uses *uses)
{
	uses->current = 0;
	for (unsigned p = 0; p < uses->process_count; p++)
		for (uint32_t i = 0; i < uses->processes[p].count; i++)
			uses->processes[p].buffers[i].at = 0;
}

/* Returns the id of the buffer that has the handle; 0: there is none. */
static uint32_t find_buffer(struct process_uses *process, const struct umd *umd, uint32_t handle)
{
	struct hint *hint = &process->hints[handle * 2654435761u >> 20];

	if (hint->handle == handle && umd_handle_of(umd, hint->buffer) == handle)
		return hint->buffer;
	for (uint32_t id = 1; id <= umd_buffer_count(umd); id++) {
		if (umd_handle_of(umd, id) != handle)
			continue;
		*hint = (struct hint){handle, id};
		return id;
	}
	return 0;
}

/* Advances past the uses up to the present submission. NULL: the buffer has no uses. */
static struct buffer_uses *uses_from_now(struct next_uses *uses, unsigned process, uint32_t id)
{
	struct process_uses *of = &uses->processes[process];
	struct buffer_uses *buffer;

	if (!id || id > of->count)
		return NULL;
	buffer = &of->buffers[id - 1];
	while (buffer->at < buffer->count && buffer->submission[buffer->at] <= uses->current)
		buffer->at++;
	return buffer;
}

uint64_t next_uses_buffer_distance(struct next_uses *uses, unsigned process, uint32_t id)
{
	const struct buffer_uses *buffer = uses_from_now(uses, process, id);

	return buffer && buffer->at < buffer->count ? buffer->submission[buffer->at] - uses->current
						    : UINT64_MAX;
}

uint64_t next_uses_distance(struct next_uses *uses, unsigned process, const struct umd *umd,
			    uint32_t handle)
{
	uint32_t id = find_buffer(&uses->processes[process], umd, handle);

	return next_uses_buffer_distance(uses, process, id);
}

uint32_t next_uses_current(const struct next_uses *uses)
{
	return uses->current;
}

uint64_t next_uses_idle_distance(struct next_uses *uses, unsigned process, uint32_t buffer,
				 uint32_t since)
{
	const struct buffer_uses *of = uses_from_now(uses, process, buffer);

	if (of && of->at > 0 && of->submission[of->at - 1] >= since)
		return 0;
	return next_uses_buffer_distance(uses, process, buffer);
}
