/* SPDX-License-Identifier: MIT */
/*
 * One process of the replay: its device, its report buffer, and the dispatch of events to the parts
 * of the driver.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "umd_private.h"

/* submissions between two reads of a report buffer that is locked for each read */
#define REPORT_AGE_MAX 64u

static const char *error_name(HRESULT hr)
{
	static const struct {
		HRESULT value;
		const char *name;
	} names[] = {
		{E_OUTOFMEMORY, "out of memory"},
		{E_INVALIDARG, "invalid argument"},
		{E_NOTIMPL, "not implemented"},
		{D3DERR_OUTOFVIDEOMEMORY, "out of video memory"},
		{D3DERR_WASSTILLDRAWING, "the GPU still uses the allocation"},
		{D3DERR_NOTAVAILABLE, "not available"},
		{D3DDDIERR_DEVICEREMOVED, "device removed"},
		{D3DDDIERR_INVALIDHANDLE, "invalid handle"},
		{D3DDDIERR_CANTRENDERLOCKEDALLOCATION, "cannot render with a locked allocation"},
		{D3DDDIERR_CANTEVICTPINNEDALLOCATION, "cannot evict a pinned allocation"},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].value == hr)
			return names[i].name;
	}
	return "failed";
}

enum replay_status umd_failed(struct umd *umd, const char *callback,
			      const struct umd_buffer *buffer, HRESULT hr)
{
	struct world *world = umd->world;
	char of[48] = "", reason[240];

	if (buffer)
		snprintf(of, sizeof(of), " of buffer %" PRIu32, buffer->id);
	pthread_mutex_lock(&world->lock);
	memcpy(reason, world->last_reason, sizeof(reason));
	pthread_mutex_unlock(&world->lock);
	world_message(world, "%s, line %" PRIu64 ": %s%s: %s (0x%08" PRIX32 ")%s%s", umd->name,
		      umd->line, callback, of, error_name(hr), (uint32_t)hr, reason[0] ? "; " : "",
		      reason);
	return hr == E_OUTOFMEMORY ? REPLAY_ENVIRONMENT : REPLAY_FINDINGS;
}

enum replay_status umd_no_memory(struct umd *umd)
{
	world_message(umd->world, "out of memory");
	return REPLAY_ENVIRONMENT;
}

enum replay_status umd_create(struct world *world, unsigned index,
			      const struct trace_header *header, struct umd **result)
{
	struct umd *umd = calloc(1, sizeof(*umd));
	vidmm_status status;

	*result = umd;
	if (!umd) {
		world_message(world, "out of memory");
		return REPLAY_ENVIRONMENT;
	}
	umd->world = world;
	umd->wddm2_model = world->wddm2;
	umd->model = world->wddm2 ? &umd_model_wddm2 : &umd_model_wddm1;
	umd->index = index;
	umd->base_ns = header->base_ns;
	umd->bytes_per_ns = header->bytes_per_ns;
	snprintf(umd->name, sizeof(umd->name), "%.63s", header->program);
	status = world->ops->open(world, umd->name, &umd->device);
	if (status < 0)
		return world_refused(world, umd->name, status);
	umd->callbacks = umd->device->callbacks;
	umd->handle = umd->device->device;
	if (world->commands) {
		enum replay_status attached = umd_foreign_attach(umd);

		if (attached != REPLAY_CLEAN)
			return attached;
	}
	return umd->model->open(umd);
}

void umd_destroy(struct umd *umd)
{
	uint32_t i;

	if (!umd)
		return;
	if (umd->device)
		umd->device->ops->close(umd->device);
	umd->model->close(umd);
	for (i = 0; i < umd->buffer_count; i++) {
		if (umd->buffers[i])
			content_put(umd->buffers[i]->content);
		free(umd->buffers[i]);
	}
	for (i = 0; i < umd->context_count; i++)
		free(umd->contexts[i]);
	while (umd->ended_contexts) {
		struct umd_context *context = umd->ended_contexts;

		umd->ended_contexts = context->next_ended;
		free(context);
	}
	free(umd->buffers);
	free(umd->contexts);
	free(umd->slots);
	free(umd->pages);
	free(umd);
}

/* Events of one live buffer. */
static enum replay_status buffer_event(struct umd *umd, const struct trace_event *event)
{
	struct umd_buffer *buffer = umd_buffer_of(umd, event->id);

	switch (event->op) {
	case TRACE_EXPORT:
		return umd_export(umd, buffer, event->u.key);
	case TRACE_WRITE:
		return umd_write(umd, buffer, event->u.range.offset, event->u.range.length);
	case TRACE_READ:
		return umd_read(umd, buffer, event->u.range.offset, event->u.range.length);
	case TRACE_DOMAIN:
		return umd_wait_idle(umd, buffer, event->u.domain.write != 0);
	case TRACE_WAIT:
		/* a wait with timeout 0 is a query */
		if (event->u.wait.timeout_ns == 0)
			return umd_poll_busy(umd, buffer);
		return umd_wait_idle(umd, buffer, false);
	case TRACE_BUSY:
		return umd_poll_busy(umd, buffer);
	case TRACE_SYNC:
		return umd_bracket(umd, buffer, event);
	case TRACE_TILING:
		return umd_buffer_tiling(umd, buffer, event->u.tiling.mode,
					 event->u.tiling.stride_bytes);
	case TRACE_ADVISE:
		return umd_buffer_advise(umd, buffer, event->u.needed);
	default:
		/* m, u: locks map allocations. v: the memory manager chooses the addresses. */
		return REPLAY_CLEAN;
	}
}

static bool is_shared(const struct umd *umd, uint32_t id)
{
	return umd_buffer_of(umd, id)->key != UMD_NO_KEY;
}

bool umd_touches_shared(const struct umd *umd, const struct trace_event *event)
{
	uint32_t i;

	switch (event->op) {
	case TRACE_SUBMIT:
		for (i = 0; i < event->u.submission->object_count; i++) {
			if (is_shared(umd, event->u.submission->objects[i].id))
				return true;
		}
		return false;
	case TRACE_EXPORT:
	case TRACE_IMPORT:
		return true;
	case TRACE_CREATE:
	case TRACE_CONTEXT:
	case TRACE_CONTEXT_END:
	case TRACE_FENCE:
		return false;
	default:
		return is_shared(umd, event->id);
	}
}

enum replay_status umd_event(struct umd *umd, const struct trace_event *event)
{
	umd->line = event->line;
	switch (event->op) {
	case TRACE_SUBMIT:
		return umd_submit(umd, event->u.submission);
	case TRACE_CREATE:
	case TRACE_IMPORT:
		return umd_buffer_create(umd, event);
	case TRACE_CLOSE:
		return umd_buffer_close(umd, event->id);
	case TRACE_CONTEXT_END:
		return umd_context_end(umd, event->id);
	/* created at its first submission, because many contexts are never used */
	case TRACE_CONTEXT:
	case TRACE_FENCE: /* the times of the program's other events contain the waits */
		return REPLAY_CLEAN;
	default:
		return buffer_event(umd, event);
	}
}

static void read_report(struct umd *umd, const struct softgpu_report *report)
{
	const struct softgpu_report_record *records;
	uint64_t count;

	count = __atomic_load_n(&report->count, __ATOMIC_ACQUIRE);
	records = (const struct softgpu_report_record *)(report + 1);
	for (; umd->report_seen < count; umd->report_seen++) {
		const struct softgpu_report_record *record = &records[umd->report_seen];

		if (umd->report_seen >= UMD_REPORT_RECORDS_MAX) {
			umd->world->result->verify_errors += count - umd->report_seen;
			umd->report_seen = count;
			break;
		}
		world_wrong_stamp(umd->world,
				  &(struct softgpu_stamp){.buffer = record->buffer,
							  .version = record->expected_version,
							  .block = record->block},
				  &(struct softgpu_stamp){.buffer = record->found_buffer,
							  .version = record->found_version,
							  .block = record->found_block},
				  "the GPU");
	}
}

enum replay_status umd_poll_report(struct umd *umd, bool now)
{
	char *data;
	HRESULT hr;

	if (umd->foreign)
		return now ? foreign_readings_check(umd) : REPLAY_CLEAN;
	if (umd->report)
		read_report(umd, umd->report);
	if (umd->report || !umd->report_handle || (!now && ++umd->report_age < REPORT_AGE_MAX))
		return REPLAY_CLEAN;
	umd->report_age = 0;
	hr = umd->model->lock_handle(umd, umd->report_handle, &data);
	if (FAILED(hr))
		return umd_failed(umd, umd->model->lock_name, NULL, hr);
	read_report(umd, (const struct softgpu_report *)(const void *)data);
	hr = umd->model->unlock(umd, umd->report_handle);
	return FAILED(hr) ? umd_failed(umd, umd->model->unlock_name, NULL, hr) : REPLAY_CLEAN;
}

enum replay_status umd_final_check(struct umd *umd)
{
	enum replay_status status = umd_poll_report(umd, true);
	uint32_t i;

	for (i = 0; i < umd->buffer_count && status == REPLAY_CLEAN; i++) {
		if (umd->buffers[i])
			status = umd_check(umd, umd->buffers[i]);
	}
	if (umd->foreign && status == REPLAY_CLEAN)
		status = foreign_readings_check(umd);
	return status;
}

uint32_t umd_handle_of(const struct umd *umd, uint32_t buffer)
{
	return umd->buffers[buffer - 1] ? umd->buffers[buffer - 1]->handle : 0;
}

uint32_t umd_buffer_count(const struct umd *umd)
{
	return umd->buffer_count;
}

uint32_t umd_process_id(const struct umd *umd)
{
	return umd->device->process_id;
}

const char *umd_name(const struct umd *umd)
{
	return umd->name;
}
