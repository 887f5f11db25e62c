/* SPDX-License-Identifier: MIT */
/*
 * The part of the user-mode driver that only WDDM 1.x has: locks that wait and rename, allocation
 * and patch location lists, and DMA buffers of the runtime.
 */
#include "umd_private.h"

static HRESULT lock_handle(struct umd *umd, D3DKMT_HANDLE handle, char **data)
{
	D3DDDICB_LOCK lock = {.hAllocation = handle};
	HRESULT hr = umd->callbacks->pfnLockCb(umd->handle, &lock);

	*data = lock.pData;
	return hr;
}

static HRESULT unlock_handle(struct umd *umd, D3DKMT_HANDLE handle)
{
	D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &handle};

	return umd->callbacks->pfnUnlockCb(umd->handle, &unlock);
}

/*
 * Creates the buffer into which the GPU writes wrong stamps. In an aperture the GPU uses it in
 * place while the driver keeps it locked (LKR-05) and reads it without a call. Without an aperture
 * it is locked for each read.
 */
static enum replay_status open_driver(struct umd *umd)
{
	struct softgpu_allocation private_data = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE | SOFTGPU_ALLOCATION_CACHED,
		.size_bytes = UMD_PAGE_BYTES,
		.segment_set = umd_has_aperture(umd) ? 0x2 : 0x1,
	};
	D3DDDI_ALLOCATIONINFO info = {
		.pPrivateDriverData = &private_data,
		.PrivateDriverDataSize = sizeof(private_data),
	};
	D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};
	struct softgpu_report *report;
	char *data;
	HRESULT hr;

	if (!umd->world->block_bytes)
		return REPLAY_CLEAN;
	hr = umd->callbacks->pfnAllocateCb(umd->handle, &allocate);
	if (FAILED(hr))
		return umd_failed(umd, "pfnAllocateCb", NULL, hr);
	umd->report_handle = info.hAllocation;
	hr = lock_handle(umd, umd->report_handle, &data);
	if (FAILED(hr))
		return umd_failed(umd, "pfnLockCb", NULL, hr);
	report = (struct softgpu_report *)(void *)data;
	report->capacity = UMD_REPORT_RECORDS_MAX;
	if (umd_has_aperture(umd)) {
		umd->report = report;
		return REPLAY_CLEAN;
	}
	hr = unlock_handle(umd, umd->report_handle);
	return FAILED(hr) ? umd_failed(umd, "pfnUnlockCb", NULL, hr) : REPLAY_CLEAN;
}

static void close_driver(struct umd *umd)
{
	(void)umd;
}

static enum replay_status nothing(struct umd *umd, struct umd_buffer *buffer)
{
	(void)umd, (void)buffer;
	return REPLAY_CLEAN;
}

static enum replay_status shared(struct umd *umd, struct umd_buffer *buffer, bool exported)
{
	(void)umd, (void)buffer, (void)exported;
	return REPLAY_CLEAN;
}

static HRESULT reclaim(struct umd *umd, struct umd_buffer *buffer, BOOL *discarded)
{
	const D3DDDICB_RECLAIMALLOCATIONS args = {
		.HandleList = &buffer->handle,
		.pDiscarded = discarded,
		.NumAllocations = 1,
	};

	return umd->callbacks->pfnReclaimAllocationsCb(umd->handle, &args);
}

/* ---- locks ---- */

static HRESULT lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count,
		    char **data)
{
	D3DDDICB_LOCK args = {
		.hAllocation = buffer->handle,
		.NumPages = page_count,
		.pPages = page_count ? umd->pages : NULL,
		.Flags.Value = flags,
	};
	HRESULT hr = umd->callbacks->pfnLockCb(umd->handle, &args);

	if (SUCCEEDED(hr)) {
		buffer->handle = args.hAllocation;
		*data = args.pData;
	}
	return hr;
}

/* Returns whether the allocation may still have the swizzling range of its last lock. */
static bool may_have_range(struct umd *umd, struct umd_buffer *buffer)
{
	D3DDDI_RESIDENCYSTATUS status = D3DDDI_RESIDENCYSTATUS_NOTRESIDENT;
	const D3DDDICB_QUERYRESIDENCY query = {
		.NumAllocations = 1,
		.HandleList = &buffer->handle,
		.pResidencyStatus = &status,
	};

	return buffer->locked_linear && !buffer->brackets &&
	       SUCCEEDED(umd->callbacks->pfnQueryResidencyCb(umd->handle, &query)) &&
	       status == D3DDDI_RESIDENCYSTATUS_RESIDENTINGPUMEMORY;
}

/*
 * Locks without an access to the content. It moves nothing: an existing swizzling range is kept,
 * and none is acquired.
 */
static HRESULT wait_for_gpu(struct umd *umd, struct umd_buffer *buffer, UINT flags)
{
	HRESULT hr;
	char *data;

	if (may_have_range(umd, buffer))
		flags |= UMD_LOCK_ENTIRE | UMD_LOCK_ACQUIRE_APERTURE;
	hr = lock(umd, buffer, flags, 0, &data);
	return FAILED(hr) ? hr : unlock_handle(umd, buffer->handle);
}

/* ---- contexts and command buffers ---- */

static enum replay_status create_context(struct umd *umd, struct umd_context *context)
{
	const struct vidmm_commands *commands = umd->world->commands;
	D3DDDICB_CREATECONTEXT create = {.NodeOrdinal = 0, .EngineAffinity = 1};
	HRESULT hr;

	if (commands) {
		create.NodeOrdinal = commands->node;
		create.pPrivateDriverData = (void *)(uintptr_t)commands->context_data;
		create.PrivateDriverDataSize = commands->context_data_bytes;
	}
	hr = umd->callbacks->pfnCreateContextCb(umd->handle, &create);

	if (FAILED(hr))
		return umd_failed(umd, "pfnCreateContextCb", NULL, hr);
	context->handle = create.hContext;
	context->commands = create.pCommandBuffer;
	context->allocations = create.pAllocationList;
	context->patches = create.pPatchLocationList;
	context->command_bytes = create.CommandBufferSize;
	context->allocation_capacity = create.AllocationListSize;
	context->patch_capacity = create.PatchLocationListSize;
	return REPLAY_CLEAN;
}

static enum replay_status end_context(struct umd *umd, struct umd_context *context)
{
	(void)umd, (void)context;
	return REPLAY_CLEAN;
}

static enum replay_status prepare(struct umd *umd, struct umd_context *context,
				  const struct umd_slot *slots, uint32_t count)
{
	(void)umd, (void)context, (void)slots, (void)count;
	return REPLAY_CLEAN;
}

static void submitted(struct umd *umd, struct umd_context *context, const struct umd_slot *slots,
		      uint32_t count)
{
	(void)umd, (void)context, (void)slots, (void)count;
}

static enum replay_status begin_part(struct umd *umd)
{
	(void)umd;
	return REPLAY_CLEAN;
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

enum replay_status umd_wddm1_render(struct umd *umd, void *private_data, UINT private_bytes)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_context *context = batch->context;

	if (!umd_has_aperture(umd) && !umd->foreign)
		ask_to_unbind(batch);
	D3DDDICB_RENDER args = {
		.CommandLength = batch->used_bytes,
		.NumAllocations = batch->allocation_count,
		.NumPatchLocations = batch->patch_count,
		.hContext = context->handle,
		.pPrivateDriverData = private_bytes ? private_data : NULL,
		.PrivateDriverDataSize = private_bytes,
	};
	HRESULT hr = umd->callbacks->pfnRenderCb(umd->handle, &args);

	/* A host that refused the call did not make it: the buffers are still the same. */
	if (FAILED(hr) && !args.pNewCommandBuffer)
		return umd_failed(umd, "pfnRenderCb", NULL, hr);
	/* On failure as well, these are the buffers for the next call (DMA-11). */
	context->commands = args.pNewCommandBuffer;
	context->allocations = args.pNewAllocationList;
	context->patches = args.pNewPatchLocationList;
	context->command_bytes = args.NewCommandBufferSize;
	context->allocation_capacity = args.NewAllocationListSize;
	context->patch_capacity = args.NewPatchLocationListSize;
	return FAILED(hr) ? umd_failed(umd, "pfnRenderCb", NULL, hr) : REPLAY_CLEAN;
}

static enum replay_status render(struct umd *umd)
{
	return umd_wddm1_render(umd, NULL, 0);
}

/* ---- relocations ---- */

/*
 * Without an aperture, returns the number of relocations that one table may have. A command cannot
 * be split, so all allocations it references must fit into video memory together. A quarter of it
 * leaves space for allocations that cannot be evicted at that time.
 */
static uint32_t relocations_that_fit(struct umd *umd, const struct trace_relocation *relocations,
				     uint32_t count)
{
	uint64_t bytes = 0, limit = umd->world->adapter_sizes.vram_bytes / 4;
	uint32_t table = ++umd->batch.table, i;

	for (i = 0; i < count; i++) {
		struct umd_slot *slot = &umd->slots[relocations[i].target];

		if (slot->table == table)
			continue;
		if (bytes && bytes + slot->size_bytes > limit)
			break;
		bytes += slot->size_bytes;
		slot->table = table;
	}
	return i;
}

/* Fills the patch locations of a table. Returns their number. */
static uint32_t put_patches(struct umd *umd, const struct trace_relocation *relocations,
			    uint32_t count, uint32_t start)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_context *context = batch->context;
	D3DDDI_PATCHLOCATIONLIST *patch = context->patches + batch->patch_count;
	uint32_t i, clamped = 0;

	for (i = 0; i < count; i++) {
		const struct trace_relocation *relocation = &relocations[i];
		struct umd_slot *slot = &umd->slots[relocation->target];
		uint32_t offset = relocation->delta;

		if (__builtin_expect(slot->part != batch->part, 0)) {
			if (batch->allocation_count + 1 == context->allocation_capacity)
				break;
			umd_batch_list(umd, slot);
		}
		clamped += offset > slot->last_offset;
		patch[i].AllocationIndex = slot->index;
		patch[i].Value = slot->index;
		patch[i].DriverId = 0;
		patch[i].AllocationOffset = offset > slot->last_offset ? slot->last_offset : offset;
		patch[i].PatchOffset = start + (uint32_t)sizeof(struct softgpu_relocations) + i * 8;
		patch[i].SplitOffset = start;
	}
	umd->world->result->clamped_deltas += clamped;
	return i;
}

static uint32_t put_table(struct umd *umd, const struct trace_relocation *relocations,
			  uint32_t count)
{
	struct umd_batch *batch = &umd->batch;
	struct umd_context *context = batch->context;
	struct softgpu_relocations *table;
	uint32_t start = batch->used_bytes;
	uint32_t capacity = context->patch_capacity - batch->patch_count - batch->operand_count;
	uint32_t slots = (context->command_bytes - start - (uint32_t)sizeof(*table)) / 8;

	if (!umd_has_aperture(umd))
		count = relocations_that_fit(umd, relocations, count);
	if (count > capacity)
		count = capacity;
	if (count > slots)
		count = slots;
	count = put_patches(umd, relocations, count, start);
	table = umd_batch_command(umd, SOFTGPU_RELOCATIONS,
				  umd->world->block_bytes ? SOFTGPU_FLAG_CHECK : 0,
				  sizeof(*table) + (size_t)count * 8);
	table->count = count;
	table->reserved = 0;
	batch->patch_count += count;
	return count;
}

const struct umd_model umd_model_wddm1 = {
	.lock_name = "pfnLockCb",
	.unlock_name = "pfnUnlockCb",
	.has_tiles = true,
	.open = open_driver,
	.close = close_driver,
	.created = nothing,
	.shared = shared,
	.forget = nothing,
	.offering = nothing,
	.reclaim = reclaim,
	.lock = lock,
	.lock_handle = lock_handle,
	.unlock = unlock_handle,
	.wait = wait_for_gpu,
	.create_context = create_context,
	.end_context = end_context,
	.prepare = prepare,
	.submitted = submitted,
	.begin_part = begin_part,
	.submit_part = render,
	.put_table = put_table,
};
