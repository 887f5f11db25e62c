/* SPDX-License-Identifier: MIT */
/*
 * The command buffer that is being filled. A submission that does not fit into the buffers of the
 * context is divided, in command order, into parts with one pfnRenderCb or pfnSubmitCommandCb each.
 * With WDDM 1.x a part lists each allocation that its commands reference; with WDDM 2.x the
 * commands contain addresses.
 */
#include "umd_wddm2.h"

struct softgpu_operand umd_batch_operand(struct umd *umd, struct umd_slot *slot, uint64_t offset)
{
	if (slot->memory) {
		slot->part = umd->batch.part;
		return (struct softgpu_operand){.address = slot->memory->address + offset};
	}
	umd->batch.operand_count++;
	return (struct softgpu_operand){.allocation = umd_batch_list(umd, slot), .offset = offset};
}

void *umd_batch_command(struct umd *umd, uint16_t opcode, uint16_t flags, size_t size_bytes)
{
	struct umd_batch *batch = &umd->batch;
	struct softgpu_command *command = (void *)(batch->context->commands + batch->used_bytes);

	*command = (struct softgpu_command){opcode, flags, (uint32_t)size_bytes};
	batch->used_bytes += (uint32_t)size_bytes;
	return command;
}

/* Begins a part. With verification, its first command names the report buffer. */
static enum replay_status begin_part(struct umd *umd)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_slot slot = {
		.handle = umd->report_handle, .memory = umd->report_memory, .list_value = 1};
	struct softgpu_report_command *report;
	enum replay_status status = umd->model->begin_part(umd);

	if (status != REPLAY_CLEAN)
		return status;
	batch->part++;
	batch->used_bytes = batch->allocation_count = batch->patch_count = batch->operand_count = 0;
	if (umd->report_handle) {
		report = umd_batch_command(umd, SOFTGPU_REPORT, 0, sizeof(*report));
		report->operand = umd_batch_operand(umd, &slot, 0);
	}
	return REPLAY_CLEAN;
}

static enum replay_status submit_part(struct umd *umd)
{
	enum replay_status status = umd->model->submit_part(umd);

	if (status != REPLAY_CLEAN)
		return status;
	umd->world->result->renders++;
	umd->world->result->extra_renders += umd->batch.render_calls++ > 0;
	return REPLAY_CLEAN;
}

enum replay_status umd_batch_begin(struct umd *umd, struct umd_context *context)
{
	umd->batch.context = context;
	umd->batch.render_calls = 0;
	return begin_part(umd);
}

enum replay_status umd_batch_next(struct umd *umd)
{
	enum replay_status status = submit_part(umd);

	return status == REPLAY_CLEAN ? begin_part(umd) : status;
}

enum replay_status umd_batch_end(struct umd *umd)
{
	return submit_part(umd);
}

static bool has_space(const struct umd_batch *batch, size_t bytes, uint32_t allocations,
		      uint32_t patches)
{
	const struct umd_context *context = batch->context;

	return bytes <= context->command_bytes - batch->used_bytes &&
	       /* Keep one element for the NULL element of umd_wddm1.c. */
	       allocations < context->allocation_capacity - batch->allocation_count &&
	       /* The miniport's list has the same length and also an entry for each operand. */
	       patches <= context->patch_capacity - batch->patch_count - batch->operand_count;
}

enum replay_status umd_batch_reserve(struct umd *umd, size_t bytes, uint32_t allocations,
				     uint32_t patches)
{
	enum replay_status status;

	if (__builtin_expect(has_space(&umd->batch, bytes, allocations, patches), 1))
		return REPLAY_CLEAN;
	status = umd_batch_next(umd);
	if (status != REPLAY_CLEAN)
		return status;
	if (has_space(&umd->batch, bytes, allocations, patches))
		return REPLAY_CLEAN;
	world_message(umd->world, "%s: the new command buffer is too small for one command",
		      umd->name);
	return REPLAY_FINDINGS;
}
