/* SPDX-License-Identifier: MIT */
/*
 * Sharing. In WDDM, memory is shared from its creation, but a recorded process exports a buffer
 * later. The driver then creates a shared allocation, has the content copied, and destroys the old
 * allocation. The table of shared buffers (exchange.h) maps the key of the recording to the global
 * handle.
 */
#include <string.h>

#include "umd_private.h"

/*
 * Copies on the context that the process used last, so that the copy follows its work on the
 * buffer.
 */
static enum replay_status copy_on_gpu(struct umd *umd, const struct umd_buffer *from,
				      const struct umd_buffer *to)
{
	struct umd_slot slots[2] = {
		{.handle = from->handle, .memory = from->memory},
		{.handle = to->handle, .memory = to->memory, .list_value = 1},
	};
	struct umd_context *context = umd->batch.context;
	struct softgpu_copy *copy;
	enum replay_status status = REPLAY_CLEAN;

	if (umd->foreign)
		return umd_foreign_copy(umd, from, to);
	if (!context)
		status = umd_context_find(umd, 0, &context);
	if (status == REPLAY_CLEAN)
		status = umd->model->prepare(umd, context, slots, 2);
	if (status == REPLAY_CLEAN)
		status = umd_batch_begin(umd, context);
	if (status == REPLAY_CLEAN)
		status = umd_batch_reserve(umd, sizeof(*copy), 2, 2);
	if (status != REPLAY_CLEAN)
		return status;
	copy = umd_batch_command(umd, SOFTGPU_COPY, 0, sizeof(*copy));
	copy->source = umd_batch_operand(umd, &slots[0], 0);
	copy->destination = umd_batch_operand(umd, &slots[1], 0);
	copy->length = to->size_bytes;
	status = umd_batch_end(umd);
	umd->model->submitted(umd, context, slots, 2);
	return status;
}

/* Copies under two locks. Neither allocation has to be in video memory. */
static enum replay_status copy_on_cpu(struct umd *umd, struct umd_buffer *from,
				      struct umd_buffer *to)
{
	char *source, *destination;
	HRESULT hr = umd->model->lock(umd, from, UMD_LOCK_READ_ONLY | UMD_LOCK_ENTIRE, 0, &source);
	enum replay_status status, other;

	if (FAILED(hr))
		return umd_failed(umd, umd->model->lock_name, from, hr);
	hr = umd->model->lock(umd, to, UMD_LOCK_WRITE_ONLY | UMD_LOCK_ENTIRE, 0, &destination);
	if (FAILED(hr))
		return umd_failed(umd, umd->model->lock_name, to, hr);
	memcpy(destination, source, from->size_bytes);
	status = umd_unlock(umd, to);
	other = umd_unlock(umd, from);
	return status != REPLAY_CLEAN ? status : other;
}

/*
 * Without an aperture, a copy command, which cannot be split, needs both allocations in video
 * memory.
 */
static bool gpu_can_copy(const struct umd *umd, const struct umd_buffer *buffer)
{
	if (umd->foreign && (buffer->hidden || !umd_foreign_can_copy(umd)))
		return umd_foreign_can_copy(umd);
	return umd_has_aperture(umd) ||
	       buffer->size_bytes < umd->world->adapter_sizes.vram_bytes / 4;
}

/*
 * Replaces the buffer's allocation, if there is one, by a shared allocation with the same content.
 */
static enum replay_status make_shared(struct umd *umd, struct umd_buffer *buffer,
				      uint32_t *km_resource)
{
	struct umd_buffer old = *buffer;
	D3DDDICB_ALLOCATE allocate = {0};
	vidmm_status status = umd->device->ops->set_shared(umd->device, buffer);
	enum replay_status result;

	if (status < 0)
		return umd_failed(umd, "vidmm_resource_set_shared", buffer, (HRESULT)status);
	buffer->handle = 0;
	buffer->memory = buffer->spares = NULL;
	result = umd_buffer_allocate(umd, buffer, true, &allocate);
	*km_resource = allocate.hKMResource;
	if (result != REPLAY_CLEAN || old.handle == 0)
		return result;
	result = gpu_can_copy(umd, buffer) ? copy_on_gpu(umd, &old, buffer)
					   : copy_on_cpu(umd, &old, buffer);
	return result == REPLAY_CLEAN ? umd_buffer_deallocate(umd, &old) : result;
}

enum replay_status umd_export(struct umd *umd, struct umd_buffer *buffer, uint64_t number)
{
	struct world *world = umd->world;
	struct exchange_key *key;
	uint32_t km_resource = 0;
	vidmm_status shared;
	enum replay_status status;

	/* Already shared under another key or by another process, or locked by a bracket. */
	if (buffer->key != UMD_NO_KEY || buffer->brackets > 0) {
		world->result->ignored_exports++;
		return REPLAY_CLEAN;
	}
	status = buffer->offered ? umd_buffer_ready(umd, buffer) : REPLAY_CLEAN;
	if (status == REPLAY_CLEAN)
		status = make_shared(umd, buffer, &km_resource);
	if (status != REPLAY_CLEAN)
		return status;
	key = exchange_add(world->exchange);
	if (!key || !exchange_share_content(world->exchange, key, &buffer->content))
		return umd_no_memory(umd);
	key->key = number;
	key->process = world->worker.index + umd->index;
	key->users = 1;
	key->size_bytes = buffer->size_bytes;
	buffer->key = exchange_index(world->exchange, key);
	shared = umd->device->ops->share(umd->device, km_resource, &key->global_handle);
	return shared < 0 ? umd_failed(umd, "vidmm_resource_share", buffer, (HRESULT)shared)
			  : umd->model->shared(umd, buffer, true);
}

enum replay_status umd_import(struct umd *umd, struct umd_buffer *buffer, uint64_t number,
			      bool *opened)
{
	struct exchange *exchange = umd->world->exchange;
	struct exchange_key *key = exchange_find(exchange, number);
	enum replay_status result;
	vidmm_status status;
	uint32_t handle = 0;

	*opened = false;
	if (!key || key->size_bytes < buffer->size_bytes)
		return REPLAY_CLEAN;
	status = umd->device->ops->open_shared(umd->device, key->global_handle, &handle);
	if (status < 0)
		return umd_failed(umd, "vidmm_resource_open", buffer, (HRESULT)status);
	key->users++;
	buffer->handle = handle;
	buffer->foreign = key->process != umd->world->worker.index + umd->index;
	buffer->key = exchange_index(exchange, key);
	if (key->content)
		buffer->content = content_get(key->content);
	*opened = true;
	if (umd->foreign)
		umd_foreign_opened(umd, buffer);
	result = umd->model->created(umd, buffer);
	return result == REPLAY_CLEAN ? umd->model->shared(umd, buffer, false) : result;
}
