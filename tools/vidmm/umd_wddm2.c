/* SPDX-License-Identifier: MIT */
/* The table of the user-mode driver of WDDM 2.x, its start, and its contexts. */
#include <stdlib.h>

#include "umd_wddm2.h"

static enum replay_status create_report(struct umd *umd)
{
	struct softgpu_report *report;
	char *data = NULL;
	enum replay_status status =
		umd_memory_create_locked(umd, UMD_PAGE_BYTES, &umd->wddm2->report, &data);

	if (status != REPLAY_CLEAN)
		return status;
	report = (struct softgpu_report *)(void *)data;
	report->capacity = UMD_REPORT_RECORDS_MAX;
	umd->report_handle = umd->wddm2->report->handle;
	umd->report_memory = umd->wddm2->report;
	umd->report = report;
	return REPLAY_CLEAN;
}

static enum replay_status open_driver(struct umd *umd)
{
	enum replay_status status;
	HRESULT hr;

	umd->wddm2 = calloc(1, sizeof(*umd->wddm2));
	if (!umd->wddm2)
		return umd_no_memory(umd);
	hr = umd->callbacks->pfnCreatePagingQueueCb(umd->handle, &umd->wddm2->queue);
	if (FAILED(hr))
		return umd_failed(umd, "pfnCreatePagingQueueCb", NULL, hr);
	if (umd->world->commands && umd->world->commands->submission == VIDMM_COMMANDS_RENDER)
		return REPLAY_CLEAN;
	status = umd_commands_create(umd);
	if (status == REPLAY_CLEAN && umd->world->block_bytes && !umd->foreign)
		status = create_report(umd);
	return status;
}

/* The process is closed: what it created no longer exists. */
static void close_driver(struct umd *umd)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	uint32_t i;

	for (i = 0; i < umd->buffer_count; i++) {
		struct umd_buffer *buffer = umd->buffers[i];

		while (buffer && buffer->spares) {
			struct umd_memory *spare = buffer->spares;

			buffer->spares = spare->next_spare;
			free(spare);
		}
		if (buffer)
			free(buffer->memory);
	}
	if (!wddm2)
		return;
	for (i = 0; i < UMD_COMMAND_BUFFERS; i++)
		free(wddm2->commands[i].memory);
	free(wddm2->report);
	free(wddm2->handles);
	free(wddm2);
}

static HRESULT lock_handle(struct umd *umd, D3DKMT_HANDLE handle, char **data)
{
	D3DDDICB_LOCK2 args = {.hAllocation = handle};
	HRESULT hr = umd->callbacks->pfnLock2Cb(umd->handle, &args);

	*data = args.pData;
	return hr;
}

/* Lists are not used. One command has no limit but the size of the command buffer. */
static enum replay_status create_context(struct umd *umd, struct umd_context *context)
{
	const struct vidmm_commands *commands = umd->world->commands;
	D3DDDICB_CREATECONTEXTVIRTUAL create = {.NodeOrdinal = 0, .EngineAffinity = 1};
	HRESULT hr;

	if (commands) {
		create.NodeOrdinal = commands->node;
		create.pPrivateDriverData = (void *)(uintptr_t)commands->context_data;
		create.PrivateDriverDataSize = commands->context_data_bytes;
	}
	hr = umd->callbacks->pfnCreateContextVirtualCb(umd->handle, &create);

	if (FAILED(hr))
		return umd_failed(umd, "pfnCreateContextVirtualCb", NULL, hr);
	context->umd = umd;
	context->handle = create.hContext;
	context->command_bytes = UMD_COMMAND_BUFFER_BYTES;
	context->allocation_capacity = context->patch_capacity = UINT32_MAX;
	return umd_fence_create(umd, context);
}

/* The fence ends with the context: uses of the context count as done from now on. */
static enum replay_status end_context(struct umd *umd, struct umd_context *context)
{
	const D3DDDICB_DESTROYSYNCHRONIZATIONOBJECT destroy = {.hSyncObject = context->fence};
	const struct umd_use last = {context, context->queued};
	HRESULT hr = S_OK;

	if (!umd_use_is_done(&last))
		hr = umd_use_wait(umd, &last);
	if (FAILED(hr))
		return umd_failed(umd, "pfnWaitForSynchronizationObjectFromCpuCb", NULL, hr);
	context->ended = true;
	hr = umd->callbacks->pfnDestroySynchronizationObjectCb(umd->handle, &destroy);
	return FAILED(hr) ? umd_failed(umd, "pfnDestroySynchronizationObjectCb", NULL, hr)
			  : REPLAY_CLEAN;
}

static enum replay_status prepare(struct umd *umd, struct umd_context *context,
				  const struct umd_slot *slots, uint32_t count)
{
	enum replay_status status = umd_residency_prepare(umd, slots, count);

	return status == REPLAY_CLEAN ? umd_wait_before(umd, context, slots, count) : status;
}

static void submitted(struct umd *umd, struct umd_context *context, const struct umd_slot *slots,
		      uint32_t count)
{
	const struct umd_use use = {context, context->queued};
	uint32_t i;

	(void)umd;
	for (i = 0; i < count; i++) {
		slots[i].memory->uses->last = use;
		if (slots[i].list_value)
			slots[i].memory->uses->last_write = use;
	}
}

const struct umd_model umd_model_wddm2 = {
	.lock_name = "pfnLock2Cb",
	.unlock_name = "pfnUnlock2Cb",
	.has_tiles = false,
	.open = open_driver,
	.close = close_driver,
	.created = umd_memory_created,
	.shared = umd_memory_shared,
	.forget = umd_memory_forget,
	.offering = umd_memory_free_spares,
	.reclaim = umd_memory_reclaim,
	.lock = umd_memory_lock,
	.lock_handle = lock_handle,
	.unlock = umd_memory_unlock,
	.wait = umd_memory_wait,
	.create_context = create_context,
	.end_context = end_context,
	.prepare = prepare,
	.submitted = submitted,
	.begin_part = umd_commands_begin,
	.submit_part = umd_commands_submit,
	.put_table = umd_commands_table,
};
