/* SPDX-License-Identifier: MIT */
/*
 * Locks, and the events that only wait or lock: waits for the GPU, busy queries, dma-buf brackets.
 */
#include "umd_private.h"

enum replay_status umd_unlock(struct umd *umd, struct umd_buffer *buffer)
{
	HRESULT hr = umd->model->unlock(umd, buffer->handle);

	return FAILED(hr) ? umd_failed(umd, umd->model->unlock_name, buffer, hr) : REPLAY_CLEAN;
}

/* Only the creator of a shared allocation may lock it (LOCK-24). Counts accesses by others. */
static bool lockable(struct umd *umd, struct umd_buffer *buffer)
{
	if (buffer->foreign)
		umd->world->result->foreign_accesses++;
	return !buffer->foreign && !buffer->hidden;
}

enum replay_status umd_lock_waiting(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				    UINT page_count, char **data)
{
	enum replay_status status;
	HRESULT hr;

	*data = NULL;
	if (!lockable(umd, buffer))
		return REPLAY_CLEAN;
	status = umd_buffer_ready(umd, buffer);
	if (status != REPLAY_CLEAN)
		return status;
	/*
	 * As drivers do, try with DonotWait first. This driver has no other work to do meanwhile.
	 */
	hr = umd->model->lock(umd, buffer, flags | UMD_LOCK_DO_NOT_WAIT, page_count, data);
	if (hr == D3DERR_WASSTILLDRAWING)
		hr = umd->model->lock(umd, buffer, flags, page_count, data);
	return FAILED(hr) ? umd_failed(umd, umd->model->lock_name, buffer, hr) : REPLAY_CLEAN;
}

enum replay_status umd_lock_linear(struct umd *umd, struct umd_buffer *buffer, UINT flags,
				   char **data)
{
	const UINT linear_flags = flags | UMD_LOCK_ENTIRE | UMD_LOCK_ACQUIRE_APERTURE;
	enum replay_status status;
	HRESULT hr;

	*data = NULL;
	if (!lockable(umd, buffer))
		return REPLAY_CLEAN;
	status = umd_buffer_ready(umd, buffer);
	if (status != REPLAY_CLEAN)
		return status;
	hr = umd->model->lock(umd, buffer, linear_flags | UMD_LOCK_DO_NOT_WAIT, 0, data);
	if (hr == D3DERR_WASSTILLDRAWING)
		hr = umd->model->lock(umd, buffer, linear_flags, 0, data);
	buffer->locked_linear = SUCCEEDED(hr);
	/* neither a swizzling range nor memory for an unswizzled copy is available */
	if (hr == D3DERR_NOTAVAILABLE)
		hr = umd->model->lock(umd, buffer, flags | UMD_LOCK_ENTIRE, 0, data);
	return FAILED(hr) ? umd_failed(umd, umd->model->lock_name, buffer, hr) : REPLAY_CLEAN;
}

/* A buffer that is not allocated, or is offered, is not busy. */
static bool may_be_busy(const struct umd_buffer *buffer)
{
	return buffer->handle != 0 && !buffer->offered;
}

enum replay_status umd_wait_idle(struct umd *umd, struct umd_buffer *buffer, bool for_writing)
{
	HRESULT hr;

	if (!may_be_busy(buffer) || !lockable(umd, buffer))
		return REPLAY_CLEAN;
	hr = umd->model->wait(umd, buffer, for_writing ? 0 : UMD_LOCK_READ_ONLY);
	return FAILED(hr) ? umd_failed(umd, umd->model->lock_name, buffer, hr) : REPLAY_CLEAN;
}

enum replay_status umd_poll_busy(struct umd *umd, struct umd_buffer *buffer)
{
	HRESULT hr;

	if (!may_be_busy(buffer) || !lockable(umd, buffer))
		return REPLAY_CLEAN;
	hr = umd->model->wait(umd, buffer, UMD_LOCK_READ_ONLY | UMD_LOCK_DO_NOT_WAIT);
	if (hr == D3DERR_WASSTILLDRAWING)
		return REPLAY_CLEAN;
	return FAILED(hr) ? umd_failed(umd, umd->model->lock_name, buffer, hr) : REPLAY_CLEAN;
}

enum replay_status umd_bracket(struct umd *umd, struct umd_buffer *buffer,
			       const struct trace_event *event)
{
	enum replay_status status;
	char *data;

	if (event->u.sync.begin) {
		status = umd_lock_waiting(umd, buffer, event->u.sync.write ? 0 : UMD_LOCK_READ_ONLY,
					  0, &data);
		if (status == REPLAY_CLEAN && data)
			buffer->brackets++;
		return status;
	}
	if (buffer->brackets == 0)
		return REPLAY_CLEAN;
	buffer->brackets--;
	return umd_unlock(umd, buffer);
}
