/* SPDX-License-Identifier: MIT */
/*
 * Contexts. A recorded context is created at its first submission. All rings are mapped to node 0:
 * the recorded kernel orders submissions that share a buffer across rings. One node gives that
 * order. Several nodes would need synchronization objects.
 */
#include <stdlib.h>

#include "grow.h"
#include "umd_private.h"

#define LEAST_COMMAND_BYTES 512u
#define LEAST_LIST          4u

static enum replay_status create_context(struct umd *umd, uint32_t number,
					 struct umd_context **result)
{
	struct umd_context *context;
	enum replay_status status;

	if (!grow_array((void **)&umd->contexts, &umd->context_capacity, umd->context_count,
			sizeof(*umd->contexts)))
		return umd_no_memory(umd);
	context = calloc(1, sizeof(*context));
	if (!context)
		return umd_no_memory(umd);
	status = umd->model->create_context(umd, context);
	if (status != REPLAY_CLEAN) {
		free(context);
		return status;
	}
	context->number = number;
	umd->contexts[umd->context_count++] = context;
	*result = context;
	if (context->command_bytes < LEAST_COMMAND_BYTES ||
	    context->allocation_capacity < LEAST_LIST || context->patch_capacity < LEAST_LIST) {
		world_message(
			umd->world,
			"%s: a context of %u bytes, %u allocations and %u patch locations is too "
			"small for any command",
			umd->name, context->command_bytes, context->allocation_capacity,
			context->patch_capacity);
		return REPLAY_ENVIRONMENT;
	}
	return REPLAY_CLEAN;
}

enum replay_status umd_context_find(struct umd *umd, uint32_t number, struct umd_context **context)
{
	uint32_t i;

	/* search from the newest, which is nearly always the one in use */
	for (i = umd->context_count; i-- > 0;) {
		if (umd->contexts[i]->number == number) {
			*context = umd->contexts[i];
			return REPLAY_CLEAN;
		}
	}
	return create_context(umd, number, context);
}

enum replay_status umd_context_end(struct umd *umd, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < umd->context_count; i++) {
		struct umd_context *context = umd->contexts[i];
		D3DDDICB_DESTROYCONTEXT destroy = {.hContext = context->handle};
		enum replay_status status;
		HRESULT hr;

		if (context->number != number)
			continue;
		status = umd->model->end_context(umd, context);
		if (status != REPLAY_CLEAN)
			return status;
		hr = umd->callbacks->pfnDestroyContextCb(umd->handle, &destroy);
		if (FAILED(hr))
			return umd_failed(umd, "pfnDestroyContextCb", NULL, hr);
		if (umd->batch.context == context)
			umd->batch.context = NULL;
		context->next_ended = umd->ended_contexts;
		umd->ended_contexts = context;
		umd->contexts[i] = umd->contexts[--umd->context_count];
		break;
	}
	return REPLAY_CLEAN;
}

/*
 * Submits a command that writes a marker allocation at the end of each context, and locks the
 * marker, which waits for the command.
 */
enum replay_status umd_drain(struct umd *umd)
{
	struct umd_buffer marker = {.size_bytes = UMD_PAGE_BYTES, .key = UMD_NO_KEY};
	const uint64_t renders = umd->world->result->renders;
	enum replay_status status = REPLAY_CLEAN;
	uint32_t i;

	if (umd->context_count > 0)
		status = umd_buffer_allocate(umd, &marker, false, NULL);
	for (i = 0; i < umd->context_count && status == REPLAY_CLEAN; i++) {
		status = umd_batch_begin(umd, umd->contexts[i]);
		if (status == REPLAY_CLEAN)
			status = umd_submit_write(umd, &marker);
		if (status == REPLAY_CLEAN)
			status = umd_batch_end(umd);
		if (status == REPLAY_CLEAN)
			status = umd_wait_idle(umd, &marker, true);
	}
	/* These renders are not the recorded program's. */
	umd->world->result->renders = renders;
	return status == REPLAY_CLEAN ? umd_buffer_deallocate(umd, &marker) : status;
}
