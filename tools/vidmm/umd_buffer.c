/* SPDX-License-Identifier: MIT */
/*
 * Buffers, from event c to event d. A buffer is allocated at its first use, because only then is it
 * known whether it is tiled. An unallocated buffer is never busy and is not offered.
 */
#include <stdlib.h>

#include "grow.h"
#include "thrash.h"
#include "umd_private.h"

enum replay_status umd_buffer_create(struct umd *umd, const struct trace_event *event)
{
	struct umd_buffer *buffer;
	bool opened = false;
	enum replay_status status = REPLAY_CLEAN;

	if (!grow_array((void **)&umd->buffers, &umd->buffer_capacity, umd->buffer_count,
			sizeof(*umd->buffers)))
		return umd_no_memory(umd);
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return umd_no_memory(umd);
	umd->buffers[umd->buffer_count++] = buffer;
	buffer->id = event->id;
	buffer->size_bytes = event->u.create.size_bytes;
	buffer->user_memory = event->u.create.user_memory;
	buffer->key = UMD_NO_KEY;
	if (event->op == TRACE_IMPORT && event->u.create.keyed)
		status = umd_import(umd, buffer, event->u.create.key, &opened);
	if (event->op == TRACE_IMPORT && !opened)
		umd->world->result->unmatched_imports++;
	if (status != REPLAY_CLEAN || opened || !umd->world->block_bytes)
		return status;
	buffer->content = world_content(umd->world, umd->index, buffer->id, buffer->size_bytes);
	return buffer->content ? REPLAY_CLEAN : umd_no_memory(umd);
}

static void note_allocated(struct umd *umd, const struct umd_buffer *buffer)
{
	const struct thrash_entry entry = {
		.recording = umd->index, .buffer = buffer->id, .size_bytes = buffer->size_bytes};

	if (umd->world->thrash)
		thrash_allocated(umd->world->thrash, umd_process_id(umd), buffer->handle, &entry);
}

HRESULT umd_buffer_try_allocate(struct umd *umd, struct umd_buffer *buffer,
				D3DDDICB_ALLOCATE *allocate)
{
	struct softgpu_allocation private_data = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = buffer->size_bytes,
	};
	D3DDDI_ALLOCATIONINFO info = {
		.pPrivateDriverData = &private_data,
		.PrivateDriverDataSize = sizeof(private_data),
	};
	HRESULT hr;

	if (umd->foreign) {
		hr = umd_foreign_allocate(umd, buffer, allocate);
		if (SUCCEEDED(hr) && !buffer->staging)
			note_allocated(umd, buffer);
		return hr;
	}
	if (buffer->tiling != UMD_LINEAR) {
		private_data.flags |= buffer->tiling == UMD_TILED_X ? SOFTGPU_ALLOCATION_TILED_X
								    : SOFTGPU_ALLOCATION_TILED_Y;
		private_data.stride_bytes = buffer->stride_bytes;
	}
	if (buffer->user_memory) {
		/* User memory stays in system memory: in the aperture segment if there is one. */
		private_data.flags |= SOFTGPU_ALLOCATION_CACHED;
		private_data.segment_set = umd_has_aperture(umd) ? 0x2 : 0;
	}
	allocate->NumAllocations = 1;
	allocate->pAllocationInfo = &info;
	hr = umd->callbacks->pfnAllocateCb(umd->handle, allocate);
	if (SUCCEEDED(hr)) {
		buffer->handle = info.hAllocation;
		note_allocated(umd, buffer);
	}
	return hr;
}

enum replay_status umd_buffer_allocate(struct umd *umd, struct umd_buffer *buffer, bool shared,
				       D3DDDICB_ALLOCATE *allocate)
{
	D3DDDICB_ALLOCATE local = {0};
	HRESULT hr;

	if (!allocate)
		allocate = &local;
	allocate->hResource = shared ? (HANDLE)buffer : NULL;
	hr = umd_buffer_try_allocate(umd, buffer, allocate);
	if (hr == E_INVALIDARG && buffer->tiling != UMD_LINEAR) {
		/*
		 * The GPU does not support this stride or size: allocate it linear, as drivers do.
		 */
		umd->world->result->refused_tilings++;
		buffer->tiling = UMD_LINEAR;
		hr = umd_buffer_try_allocate(umd, buffer, allocate);
	}
	if (FAILED(hr) && umd->world->options->driver_entry && !umd->foreign)
		world_message(umd->world, "the driver must know the allocations and commands of "
					  "softgpu, or have a command adapter (--commands)");
	if (FAILED(hr))
		return umd_failed(umd, "pfnAllocateCb", buffer, hr);
	buffer->resource = shared;
	return umd->model->created(umd, buffer);
}

enum replay_status umd_buffer_deallocate(struct umd *umd, struct umd_buffer *buffer)
{
	D3DDDICB_DEALLOCATE deallocate = {0};
	enum replay_status status;
	HRESULT hr;

	if (buffer->handle == 0)
		return REPLAY_CLEAN;
	status = umd->model->forget(umd, buffer);
	if (status != REPLAY_CLEAN)
		return status;
	if (buffer->resource) {
		deallocate.hResource = buffer;
	} else {
		deallocate.NumAllocations = 1;
		deallocate.HandleList = &buffer->handle;
	}
	hr = umd->callbacks->pfnDeallocateCb(umd->handle, &deallocate);
	if (FAILED(hr))
		return umd_failed(umd, "pfnDeallocateCb", buffer, hr);
	buffer->handle = 0;
	buffer->brackets = 0;
	buffer->locked_linear = false;
	buffer->offered = false;
	buffer->resource = false;
	return REPLAY_CLEAN;
}

enum replay_status umd_buffer_close(struct umd *umd, uint32_t id)
{
	struct umd_buffer *buffer = umd_buffer_of(umd, id);
	enum replay_status status = REPLAY_CLEAN;

	/* The GPU of a foreign miniport checks few blocks, or none. */
	if (umd->foreign && !buffer->offered)
		status = umd_check(umd, buffer);
	if (status == REPLAY_CLEAN)
		status = umd_buffer_deallocate(umd, buffer);
	if (status != REPLAY_CLEAN)
		return status;
	umd->buffers[id - 1] = NULL;
	if (buffer->key != UMD_NO_KEY)
		exchange_put(umd->world->exchange, buffer->key);
	content_put(buffer->content);
	free(buffer);
	return REPLAY_CLEAN;
}

static enum replay_status reclaim(struct umd *umd, struct umd_buffer *buffer)
{
	BOOL discarded = 0;
	HRESULT hr = umd->model->reclaim(umd, buffer, &discarded);

	if (FAILED(hr))
		return umd_failed(umd, "a reclaim", buffer, hr);
	umd->world->result->reclaims++;
	buffer->offered = false;
	if (discarded) {
		umd->world->result->discarded++;
		if (buffer->content)
			content_set_all(buffer->content, CONTENT_UNKNOWN);
	}
	return REPLAY_CLEAN;
}

enum replay_status umd_buffer_ready(struct umd *umd, struct umd_buffer *buffer)
{
	if (__builtin_expect(buffer->handle == 0, 0))
		return umd_buffer_allocate(umd, buffer, false, NULL);
	if (__builtin_expect(buffer->offered, 0))
		return reclaim(umd, buffer);
	return REPLAY_CLEAN;
}

enum replay_status umd_buffer_tiling(struct umd *umd, struct umd_buffer *buffer, uint32_t mode,
				     uint32_t stride_bytes)
{
	enum replay_status status;

	if (!umd->model->has_tiles)
		return REPLAY_CLEAN;
	if (buffer->handle == 0) {
		buffer->tiling = (uint8_t)mode;
		buffer->stride_bytes = stride_bytes;
		return REPLAY_CLEAN;
	}
	if (buffer->tiling == mode)
		return REPLAY_CLEAN;
	if (buffer->key != UMD_NO_KEY) {
		/* Other processes would not learn of the change. */
		umd->world->result->ignored_tilings++;
		return REPLAY_CLEAN;
	}
	/*
	 * WDDM cannot change the tiling of an allocation. The next use creates another one,
	 * zero-filled.
	 */
	status = umd_buffer_deallocate(umd, buffer);
	buffer->tiling = (uint8_t)mode;
	buffer->stride_bytes = stride_bytes;
	if (buffer->content)
		content_set_all(buffer->content, 0);
	return status;
}

enum replay_status umd_buffer_advise(struct umd *umd, struct umd_buffer *buffer, bool needed)
{
	D3DDDICB_OFFERALLOCATIONS offer = {
		.HandleList = &buffer->handle,
		.NumAllocations = 1,
		.Priority = D3DDDI_OFFER_PRIORITY_NORMAL,
	};
	enum replay_status status;
	HRESULT hr;

	if (needed)
		return buffer->offered ? reclaim(umd, buffer) : REPLAY_CLEAN;
	/* Not offered: an unallocated, offered, bracketed or shared buffer. */
	if (buffer->handle == 0 || buffer->offered || buffer->brackets > 0 ||
	    buffer->key != UMD_NO_KEY)
		return REPLAY_CLEAN;
	status = umd->model->offering(umd, buffer);
	if (status != REPLAY_CLEAN)
		return status;
	hr = umd->callbacks->pfnOfferAllocationsCb(umd->handle, &offer);
	if (FAILED(hr))
		return umd_failed(umd, "pfnOfferAllocationsCb", buffer, hr);
	umd->world->result->offers++;
	buffer->offered = true;
	return REPLAY_CLEAN;
}
