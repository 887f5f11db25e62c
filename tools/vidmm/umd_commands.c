/* SPDX-License-Identifier: MIT */
/*
 * Command buffers of WDDM 2.x. They are memory of the driver, at GPU virtual addresses, and are
 * used in turn. The last command of each stores the next value to the fence of its context.
 */
#include "umd_wddm2.h"

enum replay_status umd_commands_create(struct umd *umd)
{
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	for (i = 0; i < UMD_COMMAND_BUFFERS && status == REPLAY_CLEAN; i++) {
		struct umd_command_buffer *commands = &umd->wddm2->commands[i];

		status = umd_memory_create_locked(umd, UMD_COMMAND_BUFFER_BYTES, &commands->memory,
						  &commands->data);
	}
	return status;
}

enum replay_status umd_commands_begin(struct umd *umd)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	struct umd_command_buffer *commands;
	struct umd_context *context = umd->batch.context;
	HRESULT hr = S_OK;

	wddm2->next_commands = (wddm2->next_commands + 1) % UMD_COMMAND_BUFFERS;
	commands = &wddm2->commands[wddm2->next_commands];
	if (!umd_use_is_done(&commands->use))
		hr = umd_use_wait(umd, &commands->use);
	context->commands = commands->data;
	context->command_bytes = UMD_COMMAND_BUFFER_BYTES - sizeof(struct softgpu_sync);
	return FAILED(hr) ? umd_failed(umd, "pfnWaitForSynchronizationObjectFromCpuCb", NULL, hr)
			  : REPLAY_CLEAN;
}

static void put_signal(struct umd *umd, uint64_t value)
{
	struct softgpu_sync *signal = umd_batch_command(umd, SOFTGPU_SIGNAL, 0, sizeof(*signal));

	signal->operand = (struct softgpu_operand){.address = umd->batch.context->fence_address};
	signal->value = value;
}

enum replay_status umd_commands_submit(struct umd *umd)
{
	struct umd_wddm2 *wddm2 = umd->wddm2;
	struct umd_command_buffer *commands = &wddm2->commands[wddm2->next_commands];
	struct umd_context *context = umd->batch.context;
	D3DDDICB_SUBMITCOMMAND submit = {
		.Commands = commands->memory->address,
		.BroadcastContextCount = 1,
		.BroadcastContext = {context->handle},
	};
	HRESULT hr;

	put_signal(umd, ++context->queued);
	submit.CommandLength = umd->batch.used_bytes;
	commands->use = (struct umd_use){context, context->queued};
	hr = umd->callbacks->pfnSubmitCommandCb(umd->handle, &submit);
	return FAILED(hr) ? umd_failed(umd, "pfnSubmitCommandCb", NULL, hr) : REPLAY_CLEAN;
}

uint32_t umd_commands_table(struct umd *umd, const struct trace_relocation *relocations,
			    uint32_t count)
{
	struct umd_batch *batch = &umd->batch;
	struct softgpu_relocations *table;
	uint32_t space = batch->context->command_bytes - batch->used_bytes, i, clamped = 0;
	uint64_t *addresses;

	if (count > (space - sizeof(*table)) / sizeof(*addresses))
		count = (uint32_t)((space - sizeof(*table)) / sizeof(*addresses));
	table = umd_batch_command(umd, SOFTGPU_RELOCATIONS,
				  umd->world->block_bytes ? SOFTGPU_FLAG_CHECK : 0,
				  sizeof(*table) + (size_t)count * sizeof(*addresses));
	table->count = count;
	table->reserved = 0;
	addresses = (uint64_t *)(void *)(table + 1);
	for (i = 0; i < count; i++) {
		const struct umd_slot *slot = &umd->slots[relocations[i].target];
		uint32_t offset = relocations[i].delta;

		clamped += offset > slot->last_offset;
		addresses[i] = slot->memory->address +
			       (offset > slot->last_offset ? slot->last_offset : offset);
	}
	umd->world->result->clamped_deltas += clamped;
	return count;
}
