/* SPDX-License-Identifier: MIT */
#include "check_stream.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define STATUS_OK    0u
#define STATUS_LATER 0x103u /* STATUS_PENDING */
#define PAGE_FAULT   "TDR-19: page fault"

void check_stream_finish(struct check_stream *stream)
{
	handle_map_finish(&stream->locks);
	free(stream->processes);
	*stream = (struct check_stream){0};
}

static void see(struct check_stream *stream, struct check_seen *seen, const char *rule,
		uint32_t object, const char *format, ...) __attribute__((format(printf, 5, 6)));

static void see(struct check_stream *stream, struct check_seen *seen, const char *rule,
		uint32_t object, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(stream->text, sizeof(stream->text), format, args);
	va_end(args);
	*seen = (struct check_seen){rule, stream->text, object};
}

/* ---- operations without effect ---- */

/* The operations that have the GPU write content, by their names in messages. NULL: another one. */
static const char *content_operation(uint64_t operation)
{
	switch (operation) {
	case VIDMM_PAGING_TRANSFER:
		return "TRANSFER";
	case VIDMM_PAGING_FILL:
		return "FILL";
	case VIDMM_PAGING_SPECIAL_LOCK_TRANSFER:
		return "SPECIAL_LOCK_TRANSFER";
	case VIDMM_PAGING_VIRTUAL_TRANSFER:
		return "VIRTUAL_TRANSFER";
	case VIDMM_PAGING_VIRTUAL_FILL:
		return "VIRTUAL_FILL";
	default:
		return NULL;
	}
}

/* A pass after the first may have nothing left to write. */
static void check_ddi(struct check_stream *stream, const struct vidmm_event *event,
		      struct check_seen *seen)
{
	const char *name;

	if (event->arg[0] != STATUS_OK || event->arg[2] != 0)
		return;
	if (event->reason == VIDMM_DDI_RENDER && event->arg[1] != 0)
		see(stream, seen, "Q-492", event->object,
		    "DxgkDdiRender succeeded for %" PRIu64
		    " bytes of commands and did not advance pDmaBuffer: the DMA buffer is empty",
		    event->arg[1]);
	name = content_operation(event->arg[1]);
	if (event->reason == VIDMM_DDI_BUILD_PAGING_BUFFER && name && event->arg[3] == 0)
		see(stream, seen, "Q-491", event->object,
		    "DxgkDdiBuildPagingBuffer succeeded for %s and did not advance pDmaBuffer: the "
		    "GPU has nothing to execute",
		    name);
}

/* ---- what was not undone ---- */

static struct check_process *process_of(struct check_stream *stream, uint32_t process)
{
	for (uint32_t i = 0; i < stream->count; i++)
		if (stream->processes[i].process == process)
			return &stream->processes[i];
	if (!grow_array((void **)&stream->processes, &stream->capacity, stream->count,
			sizeof(*stream->processes)))
		return NULL;
	stream->processes[stream->count] = (struct check_process){.process = process};
	return &stream->processes[stream->count++];
}

static bool count_lock(struct check_stream *stream, const struct vidmm_event *event, bool locked)
{
	uint32_t locks = 0;

	if (!event->object)
		return true;
	(void)handle_map_find(&stream->locks, event->process, event->object, &locks);
	if (!locked && locks == 0)
		return true;
	return handle_map_set(&stream->locks, event->process, event->object,
			      locked ? locks + 1 : locks - 1);
}

/* The call that destroys an allocation ends later: only then is known which call it was. */
static bool note_destroyed(struct check_stream *stream, struct check_process *process,
			   const struct vidmm_event *event)
{
	uint32_t locks = 0;

	if (!event->object ||
	    !handle_map_find(&stream->locks, event->process, event->object, &locks) || !locks)
		return true;
	if (process->locked++ == 0) {
		process->object = event->object;
		process->locks = locks;
	}
	return handle_map_set(&stream->locks, event->process, event->object, 0);
}

/* The end of a process undoes what is left, and is no mistake of a driver. (LOCK-30) */
static void judge_locks(struct check_stream *stream, struct check_process *process,
			struct check_seen *seen)
{
	if (process->locked)
		see(stream, seen, "LOCK-30", process->object,
		    "allocation 0x%08" PRIx32 " was destroyed while %" PRIu32
		    " locks were not undone (allocations of this call: %" PRIu32 ")",
		    process->object, process->locks, process->locked);
	process->locked = 0;
}

/* More references than allocations: one was made resident twice and evicted once. (RES-01) */
static void judge_residency(struct check_stream *stream, struct check_process *process,
			    struct check_seen *seen)
{
	uint64_t left = process->made > process->evicted ? process->made - process->evicted : 0;

	if (left > process->created)
		see(stream, seen, "RES-01", 0,
		    "the process made allocations resident %" PRIu64
		    " times and evicted them %" PRIu64 " times: one of its %" PRIu64
		    " allocations had a count above 1 when it ended",
		    process->made, process->evicted, process->created);
	process->created = process->made = process->evicted = 0;
}

static void check_door(struct check_stream *stream, struct check_process *process,
		       const struct vidmm_event *event, struct check_seen *seen)
{
	if (event->reason == VIDMM_DOOR_DEALLOCATE || event->reason == VIDMM_DOOR_DESTROY_DEVICE)
		judge_locks(stream, process, seen);
	if (event->arg[0] != STATUS_OK && event->arg[0] != STATUS_LATER)
		return;
	if (event->reason == VIDMM_DOOR_MAKE_RESIDENT)
		process->made += event->arg[1];
	else if (event->reason == VIDMM_DOOR_EVICT)
		process->evicted += event->arg[1];
	else if (event->reason == VIDMM_DOOR_OPEN_RESOURCE)
		process->created += event->arg[1];
}

bool check_stream_event(struct check_stream *stream, const struct vidmm_event *event,
			const char *text, struct check_seen *seen)
{
	struct check_process *process = NULL;

	*seen = (struct check_seen){0};
	if (event->type == VIDMM_EVENT_DDI) {
		check_ddi(stream, event, seen);
		return true;
	}
	if (event->type == VIDMM_EVENT_LOCK || event->type == VIDMM_EVENT_UNLOCK)
		return count_lock(stream, event, event->type == VIDMM_EVENT_LOCK);
	if (event->type == VIDMM_EVENT_REASON && text &&
	    strncmp(text, PAGE_FAULT, strlen(PAGE_FAULT)) == 0)
		see(stream, seen, "TDR-19", event->object, "%s", text + strlen("TDR-19: "));
	if (event->type != VIDMM_EVENT_CREATE && event->type != VIDMM_EVENT_DESTROY &&
	    event->type != VIDMM_EVENT_DOOR && event->type != VIDMM_EVENT_PROCESS)
		return true;
	process = process_of(stream, event->process);
	if (!process)
		return false;
	if (event->type == VIDMM_EVENT_CREATE)
		process->created++;
	else if (event->type == VIDMM_EVENT_DESTROY)
		return note_destroyed(stream, process, event);
	else if (event->type == VIDMM_EVENT_DOOR)
		check_door(stream, process, event, seen);
	else if (event->reason == VIDMM_PROCESS_CLOSED) {
		process->locked = 0;
		judge_residency(stream, process, seen);
	}
	return true;
}
