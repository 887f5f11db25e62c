/* SPDX-License-Identifier: MIT */
/*
 * The command buffer that is being filled. A submission that does not fit into the buffers of the
 * context is divided, in command order, into parts with one pfnRenderCb each. A part lists each
 * allocation that its commands reference.
 */
#include "umd_private.h"

struct softgpu_operand umd_batch_operand(struct umd *umd, struct umd_slot *slot, uint64_t offset)
{
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
static void begin_part(struct umd *umd)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_slot slot = {.handle = umd->report_handle, .list_value = 1};
	struct softgpu_report_command *report;

	batch->part++;
	batch->used_bytes = batch->allocation_count = batch->patch_count = batch->operand_count = 0;
	if (umd->report_handle) {
		report = umd_batch_command(umd, SOFTGPU_REPORT, 0, sizeof(*report));
		report->operand = umd_batch_operand(umd, &slot, 0);
	}
}

/*
 * Appends a NULL element to the allocation list, which asks the miniport to unbind allocations
 * after each command. Without an aperture DMA buffers are split, and an unbound allocation can be
 * evicted at the next split.
 */
static void ask_to_unbind(struct umd_batch *batch)
{
	D3DDDI_ALLOCATIONLIST *last = &batch->context->allocations[batch->allocation_count++];

	last->hAllocation = 0;
	last->Value = 0;
}

static enum replay_status render(struct umd *umd)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_context *context = batch->context;

	if (!umd_has_aperture(umd))
		ask_to_unbind(batch);
	D3DDDICB_RENDER render = {
		.CommandLength = batch->used_bytes,
		.NumAllocations = batch->allocation_count,
		.NumPatchLocations = batch->patch_count,
		.hContext = context->handle,
	};
	HRESULT hr = umd->callbacks->pfnRenderCb(umd->handle, &render);

	/* On failure as well, these are the buffers for the next call (DMA-11). */
	context->commands = render.pNewCommandBuffer;
	context->allocations = render.pNewAllocationList;
	context->patches = render.pNewPatchLocationList;
	context->command_bytes = render.NewCommandBufferSize;
	context->allocation_capacity = render.NewAllocationListSize;
	context->patch_capacity = render.NewPatchLocationListSize;
	if (FAILED(hr))
		return umd_failed(umd, "pfnRenderCb", NULL, hr);
	umd->world->result->renders++;
	umd->world->result->extra_renders += batch->render_calls++ > 0;
	return REPLAY_CLEAN;
}

void umd_batch_begin(struct umd *umd, struct umd_context *context)
{
	umd->batch.context = context;
	umd->batch.render_calls = 0;
	begin_part(umd);
}

enum replay_status umd_batch_end(struct umd *umd)
{
	return render(umd);
}

static bool has_space(const struct umd_batch *batch, size_t bytes, uint32_t allocations,
		      uint32_t patches)
{
	const struct umd_context *context = batch->context;

	return bytes <= context->command_bytes - batch->used_bytes &&
	       /* Keep one element for ask_to_unbind. */
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
	status = render(umd);
	if (status != REPLAY_CLEAN)
		return status;
	begin_part(umd);
	if (has_space(&umd->batch, bytes, allocations, patches))
		return REPLAY_CLEAN;
	world_message(umd->world, "%s: the new command buffer is too small for one command",
		      umd->name);
	return REPLAY_FINDINGS;
}
