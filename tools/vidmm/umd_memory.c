/* SPDX-License-Identifier: MIT */
/*
 * The allocations of buffers: GPU virtual addresses, sharing, renaming, and CPU accesses. Lock2
 * does not wait for the GPU, so the driver waits first (LOCK-43).
 */
#include <stdlib.h>

#include "umd_wddm2.h"

static HRESULT map(struct umd *umd, struct umd_memory *memory)
{
	D3DDDI_MAPGPUVIRTUALADDRESS args = {
		.hPagingQueue = umd->wddm2->queue.hPagingQueue,
		.hAllocation = memory->handle,
		.SizeInPages = (memory->size_bytes + UMD_PAGE_BYTES - 1) / UMD_PAGE_BYTES,
		.Protection.Write = 1,
	};
	HRESULT hr = umd->callbacks->pfnMapGpuVirtualAddressCb(umd->handle, &args);

	if (FAILED(hr) && hr != E_PENDING)
		return hr;
	memory->address = args.VirtualAddress;
	umd_wait_for_paging(umd, args.PagingFenceValue);
	return S_OK;
}

struct umd_memory *umd_memory_adopt(struct umd *umd, D3DKMT_HANDLE handle, uint64_t size_bytes)
{
	struct umd_memory *memory = calloc(1, sizeof(*memory));
	HRESULT hr;

	if (!memory) {
		(void)umd_no_memory(umd);
		return NULL;
	}
	memory->handle = handle;
	memory->size_bytes = size_bytes;
	memory->uses = &memory->own_uses;
	/* Without virtual contexts commands contain no addresses. */
	if (umd->world->commands && umd->world->commands->submission == VIDMM_COMMANDS_RENDER)
		return memory;
	hr = map(umd, memory);
	if (FAILED(hr)) {
		(void)umd_failed(umd, "pfnMapGpuVirtualAddressCb", NULL, hr);
		free(memory);
		return NULL;
	}
	return memory;
}

static HRESULT lock2(struct umd *umd, D3DKMT_HANDLE handle, char **data)
{
	D3DDDICB_LOCK2 args = {.hAllocation = handle};
	HRESULT hr = umd->callbacks->pfnLock2Cb(umd->handle, &args);

	*data = args.pData;
	return hr;
}

HRESULT umd_memory_unlock(struct umd *umd, D3DKMT_HANDLE handle)
{
	const D3DDDICB_UNLOCK2 args = {.hAllocation = handle};

	return umd->callbacks->pfnUnlock2Cb(umd->handle, &args);
}

enum replay_status umd_memory_create_locked(struct umd *umd, uint64_t size_bytes,
					    struct umd_memory **memory, char **data)
{
	struct softgpu_allocation private_data = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = size_bytes,
		.segment_set = 0x2,
	};
	D3DDDI_ALLOCATIONINFO info = {
		.pPrivateDriverData = &private_data,
		.PrivateDriverDataSize = sizeof(private_data),
	};
	D3DDDICB_ALLOCATE allocate = {.NumAllocations = 1, .pAllocationInfo = &info};
	uint32_t foreign =
		VIDMM_COMMANDS_CPU_VISIBLE | VIDMM_COMMANDS_STAGING | VIDMM_COMMANDS_BUFFERS;
	HRESULT hr = S_OK;
	enum replay_status status;

	if (umd->foreign)
		hr = umd_foreign_describe(umd, size_bytes, &foreign, &info, &allocate);
	if (SUCCEEDED(hr))
		hr = umd->callbacks->pfnAllocateCb(umd->handle, &allocate);
	if (FAILED(hr))
		return umd_failed(umd, "pfnAllocateCb", NULL, hr);
	*memory = umd_memory_adopt(umd, info.hAllocation, size_bytes);
	if (!*memory)
		return REPLAY_ENVIRONMENT;
	status = umd_residency_pin(umd, *memory);
	if (status != REPLAY_CLEAN)
		return status;
	hr = lock2(umd, (*memory)->handle, data);
	return FAILED(hr) ? umd_failed(umd, "pfnLock2Cb", NULL, hr) : REPLAY_CLEAN;
}

/* ---- the life of a buffer's memory ---- */

enum replay_status umd_memory_created(struct umd *umd, struct umd_buffer *buffer)
{
	buffer->memory = umd_memory_adopt(umd, buffer->handle, buffer->size_bytes);
	return buffer->memory ? REPLAY_CLEAN : REPLAY_FINDINGS;
}

/* One object for each key, however many processes have the buffer open. */
static struct umd_uses *shared_uses(struct world *world, uint32_t key)
{
	void **grown;
	uint32_t i;

	if (key >= world->shared_uses_count) {
		grown = realloc(world->shared_uses, (key + 1) * sizeof(*grown));
		if (!grown)
			return NULL;
		for (i = world->shared_uses_count; i <= key; i++)
			grown[i] = NULL;
		world->shared_uses = grown;
		world->shared_uses_count = key + 1;
	}
	if (!world->shared_uses[key])
		world->shared_uses[key] = calloc(1, sizeof(struct umd_uses));
	return world->shared_uses[key];
}

enum replay_status umd_memory_shared(struct umd *umd, struct umd_buffer *buffer, bool exported)
{
	struct umd_uses *uses = shared_uses(umd->world, buffer->key);

	if (!uses)
		return umd_no_memory(umd);
	if (exported)
		*uses = buffer->memory->own_uses;
	buffer->memory->uses = uses;
	return REPLAY_CLEAN;
}

static enum replay_status destroy(struct umd *umd, struct umd_memory *memory)
{
	const D3DDDICB_DEALLOCATE2 args = {.NumAllocations = 1, .HandleList = &memory->handle};
	HRESULT hr;

	umd_residency_forget(umd, memory);
	hr = umd->callbacks->pfnDeallocate2Cb(umd->handle, &args);
	free(memory);
	return FAILED(hr) ? umd_failed(umd, "pfnDeallocate2Cb", NULL, hr) : REPLAY_CLEAN;
}

enum replay_status umd_memory_free_spares(struct umd *umd, struct umd_buffer *buffer)
{
	enum replay_status status = REPLAY_CLEAN;

	while (buffer->spares && status == REPLAY_CLEAN) {
		struct umd_memory *spare = buffer->spares;

		buffer->spares = spare->next_spare;
		status = destroy(umd, spare);
	}
	return status;
}

/* The allocation itself is destroyed by the caller; its addresses end with it (VA-09). */
enum replay_status umd_memory_forget(struct umd *umd, struct umd_buffer *buffer)
{
	if (buffer->memory)
		umd_residency_forget(umd, buffer->memory);
	free(buffer->memory);
	buffer->memory = NULL;
	return umd_memory_free_spares(umd, buffer);
}

/* ---- renaming ---- */

/* Takes the first spare that the GPU has finished with. NULL: there is none. */
static struct umd_memory *take_idle_spare(struct umd_buffer *buffer)
{
	struct umd_memory **link = &buffer->spares, *spare;

	while (*link && !umd_use_is_done(&(*link)->uses->last))
		link = &(*link)->next_spare;
	spare = *link;
	if (spare)
		*link = spare->next_spare;
	return spare;
}

/* Creates an allocation like the buffer's. Without memory the caller waits instead. */
static struct umd_memory *create_another(struct umd *umd, struct umd_buffer *buffer)
{
	struct umd_buffer other = *buffer;
	D3DDDICB_ALLOCATE allocate = {0};
	HRESULT hr = umd_buffer_try_allocate(umd, &other, &allocate);

	return SUCCEEDED(hr) ? umd_memory_adopt(umd, other.handle, buffer->size_bytes) : NULL;
}

/*
 * The content of the buffer is not needed. If the GPU still uses its memory, the buffer gets other
 * memory, and commands from now on contain another address.
 */
static void rename_busy(struct umd *umd, struct umd_buffer *buffer)
{
	struct umd_memory *old = buffer->memory, *other;

	if (umd_use_is_done(&old->uses->last))
		return;
	other = take_idle_spare(buffer);
	if (!other)
		other = create_another(umd, buffer);
	if (!other)
		return;
	umd->world->result->driver.renames++;
	old->next_spare = buffer->spares;
	buffer->spares = old;
	buffer->memory = other;
	buffer->handle = other->handle;
}

/* ---- CPU access ---- */

HRESULT umd_memory_wait(struct umd *umd, struct umd_buffer *buffer, UINT flags)
{
	const struct umd_uses *uses = buffer->memory->uses;
	const struct umd_use *use = flags & UMD_LOCK_READ_ONLY ? &uses->last_write : &uses->last;

	if (umd_use_is_done(use))
		return S_OK;
	return flags & UMD_LOCK_DO_NOT_WAIT ? D3DERR_WASSTILLDRAWING : umd_use_wait(umd, use);
}

HRESULT umd_memory_lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count,
			char **data)
{
	HRESULT hr;

	if (flags & UMD_LOCK_DISCARD)
		rename_busy(umd, buffer);
	hr = umd_memory_wait(umd, buffer, flags);
	if (SUCCEEDED(hr))
		hr = lock2(umd, buffer->handle, data);
	if (SUCCEEDED(hr) && page_count)
		*data += (size_t)umd->pages[0] * UMD_PAGE_BYTES;
	return hr;
}

HRESULT umd_memory_reclaim(struct umd *umd, struct umd_buffer *buffer, BOOL *discarded)
{
	D3DDDICB_RECLAIMALLOCATIONS2 args = {
		.PagingQueue = umd->wddm2->queue.hPagingQueue,
		.NumAllocations = 1,
		.HandleList = &buffer->handle,
		.pDiscarded = discarded,
	};
	HRESULT hr = umd->callbacks->pfnReclaimAllocations2Cb(umd->handle, &args);

	if (FAILED(hr) && hr != E_PENDING)
		return hr;
	umd_wait_for_paging(umd, args.PagingFenceValue);
	return S_OK;
}
