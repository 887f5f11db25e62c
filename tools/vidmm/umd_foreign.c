/* SPDX-License-Identifier: MIT */
/*
 * The table of the user-mode driver of a foreign miniport: its start, its contexts, and how a
 * command buffer that the adapter has written is submitted.
 */
#include <stdlib.h>
#include <string.h>

#include "umd_foreign.h"

enum replay_status foreign_broken(struct umd *umd)
{
	world_finding(umd->world, command_writer_broken(umd->foreign->writer));
	return REPLAY_FINDINGS;
}

/* ---- contexts ---- */

/* A context of WDDM 2.x with lists. Its fence is signaled behind each command buffer. */
static enum replay_status create_context(struct umd *umd, struct umd_context *context)
{
	enum replay_status status = umd_model_wddm1.create_context(umd, context);

	context->umd = umd;
	return status == REPLAY_CLEAN ? umd_fence_create(umd, context) : status;
}

/* ---- submission ---- */

static enum replay_status signal_fence(struct umd *umd, struct umd_context *context)
{
	const D3DDDICB_SIGNALSYNCHRONIZATIONOBJECTFROMGPU signal = {
		.hContext = context->handle,
		.ObjectCount = 1,
		.ObjectHandleArray = &context->fence,
		.MonitoredFenceValueArray = &context->queued,
	};
	HRESULT hr = umd->callbacks->pfnSignalSynchronizationObjectFromGpuCb(umd->handle, &signal);

	return FAILED(hr) ? umd_failed(umd, "pfnSignalSynchronizationObjectFromGpuCb", NULL, hr)
			  : REPLAY_CLEAN;
}

static void take_patches(struct umd_context *context, const struct vidmm_commands_buffer *buffer)
{
	for (uint32_t i = 0; i < buffer->patch_count; i++) {
		const struct vidmm_commands_patch *from = &buffer->patches[i];

		context->patches[i] = (D3DDDI_PATCHLOCATIONLIST){
			.AllocationIndex = from->allocation_index,
			.Value = from->slot_id,
			.DriverId = from->driver_id,
			.AllocationOffset = from->allocation_offset,
			.PatchOffset = from->patch_offset,
			.SplitOffset = from->split_offset,
		};
	}
}

static enum replay_status render(struct umd *umd)
{
	const struct vidmm_commands_buffer *buffer = command_writer_buffer(umd->foreign->writer);
	struct umd_context *context = umd->batch.context;
	enum replay_status status;

	memcpy(context->commands, buffer->commands, buffer->used);
	take_patches(context, buffer);
	umd->batch.used_bytes = buffer->used;
	umd->batch.patch_count = buffer->patch_count;
	status = umd_wddm1_render(umd, buffer->private_data, buffer->private_bytes);
	if (status != REPLAY_CLEAN || !umd->wddm2)
		return status;
	context->queued++;
	return signal_fence(umd, context);
}

static enum replay_status submit_virtual(struct umd *umd)
{
	const struct vidmm_commands_buffer *buffer = command_writer_buffer(umd->foreign->writer);
	struct umd_wddm2 *wddm2 = umd->wddm2;
	struct umd_command_buffer *commands = &wddm2->commands[wddm2->next_commands];
	struct umd_context *context = umd->batch.context;
	D3DDDICB_SUBMITCOMMAND submit = {
		.Commands = commands->memory->address,
		.CommandLength = buffer->used,
		.BroadcastContextCount = 1,
		.BroadcastContext = {context->handle},
		.pPrivateDriverData = buffer->private_bytes ? buffer->private_data : NULL,
		.PrivateDriverDataSize = buffer->private_bytes,
	};
	HRESULT hr;

	memcpy(context->commands, buffer->commands, buffer->used);
	commands->use = (struct umd_use){context, ++context->queued};
	hr = umd->callbacks->pfnSubmitCommandCb(umd->handle, &submit);
	return FAILED(hr) ? umd_failed(umd, "pfnSubmitCommandCb", NULL, hr)
			  : signal_fence(umd, context);
}

/* ---- start and end ---- */

/* Asks the adapter once which commands the miniport has; nothing of this is submitted. */
static enum replay_status find_commands(struct umd *umd)
{
	struct umd_foreign *foreign = umd->foreign;
	const struct vidmm_commands_operand a = {.size_bytes = FOREIGN_STAGING_BYTES};
	const struct vidmm_commands_operand b = {.size_bytes = FOREIGN_STAGING_BYTES, .index = 1};

	if (!command_writer_begin(foreign->writer, 4096, 16, 0, NULL))
		return umd_no_memory(umd);
	foreign->can_copy = command_writer_copy(foreign->writer, &a, &b, foreign->stride) !=
			    VIDMM_COMMANDS_NOT_SUPPORTED;
	if (foreign->commands->fill_alignment <= 4)
		foreign->can_fill = command_writer_fill(foreign->writer, &a, 4, 0) !=
				    VIDMM_COMMANDS_NOT_SUPPORTED;
	if (command_writer_broken(foreign->writer)[0])
		return foreign_broken(umd);
	if (foreign->can_copy || foreign->can_fill)
		return REPLAY_CLEAN;
	world_finding(umd->world, "Q-404: the command adapter can neither copy nor fill words: "
				  "the GPU cannot access memory");
	return REPLAY_FINDINGS;
}

static enum replay_status open_driver(struct umd *umd)
{
	enum replay_status status = find_commands(umd);

	if (status == REPLAY_CLEAN && umd->wddm2_model)
		status = umd_model_wddm2.open(umd);
	return status == REPLAY_CLEAN ? foreign_memory_create(umd) : status;
}

static void close_driver(struct umd *umd)
{
	struct umd_foreign *foreign = umd->foreign;

	foreign->base->close(umd);
	foreign_memory_free(umd);
	command_writer_destroy(foreign->writer);
	free(foreign);
	umd->foreign = NULL;
}

static enum replay_status nothing(struct umd *umd)
{
	(void)umd;
	return REPLAY_CLEAN;
}

enum replay_status umd_foreign_attach(struct umd *umd)
{
	struct umd_foreign *foreign = calloc(1, sizeof(*foreign));

	if (!foreign)
		return umd_no_memory(umd);
	foreign->commands = umd->world->commands;
	foreign->writer = command_writer_create(foreign->commands);
	if (!foreign->writer) {
		free(foreign);
		return umd_no_memory(umd);
	}
	foreign->stride = foreign->commands->copy_alignment > FOREIGN_STAMP_BYTES
				  ? foreign->commands->copy_alignment
				  : FOREIGN_STAMP_BYTES;
	foreign->base = umd->model;
	foreign->model = *umd->model;
	foreign->model.has_tiles = false;
	foreign->model.open = open_driver;
	foreign->model.close = close_driver;
	foreign->model.submit_part = foreign_is_virtual(foreign) ? submit_virtual : render;
	if (!foreign_is_virtual(foreign))
		foreign->model.begin_part = nothing;
	if (umd->wddm2_model && !foreign_is_virtual(foreign))
		foreign->model.create_context = create_context;
	umd->foreign = foreign;
	umd->model = &foreign->model;
	return REPLAY_CLEAN;
}
