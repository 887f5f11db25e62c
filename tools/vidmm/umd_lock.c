/* SPDX-License-Identifier: MIT */
/*
 * Locks, and the events that become a lock only: waits for the GPU, busy queries, dma-buf brackets.
 */
#include "umd_private.h"

HRESULT umd_lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, UINT page_count,
		 char **data)
{
	D3DDDICB_LOCK lock = {
		.hAllocation = buffer->handle,
		.NumPages = page_count,
		.pPages = page_count ? umd->pages : NULL,
		.Flags.Value = flags,
	};
	HRESULT hr = umd->callbacks->pfnLockCb(umd->handle, &lock);

	if (SUCCEEDED(hr)) {
		buffer->handle = lock.hAllocation;
		*data = lock.pData;
	}
	return hr;
}

enum replay_status umd_unlock(struct umd *umd, struct umd_buffer *buffer)
{
	D3DDDICB_UNLOCK unlock = {.NumAllocations = 1, .phAllocations = &buffer->handle};
	HRESULT hr = umd->callbacks->pfnUnlockCb(umd->handle, &unlock);

	return FAILED(hr) ? umd_failed(umd, "pfnUnlockCb", buffer, hr) : REPLAY_CLEAN;
}

/* Only the creator of a shared allocation may lock it (LOCK-24). Counts accesses by others. */
static bool lockable(struct umd *umd, struct umd_buffer *buffer)
{
	if (buffer->foreign)
		umd->world->result->foreign_accesses++;
	return !buffer->foreign;
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
	hr = umd_lock(umd, buffer, flags | UMD_LOCK_DO_NOT_WAIT, page_count, data);
	if (hr == D3DERR_WASSTILLDRAWING)
		hr = umd_lock(umd, buffer, flags, page_count, data);
	return FAILED(hr) ? umd_failed(umd, "pfnLockCb", buffer, hr) : REPLAY_CLEAN;
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
	hr = umd_lock(umd, buffer, linear_flags | UMD_LOCK_DO_NOT_WAIT, 0, data);
	if (hr == D3DERR_WASSTILLDRAWING)
		hr = umd_lock(umd, buffer, linear_flags, 0, data);
	buffer->locked_linear = SUCCEEDED(hr);
	/* neither a swizzling range nor memory for an unswizzled copy is available */
	if (hr == D3DERR_NOTAVAILABLE)
		hr = umd_lock(umd, buffer, flags | UMD_LOCK_ENTIRE, 0, data);
	return FAILED(hr) ? umd_failed(umd, "pfnLockCb", buffer, hr) : REPLAY_CLEAN;
}

/* A buffer that is not allocated, or is offered, is not busy. */
static bool may_be_busy(const struct umd_buffer *buffer)
{
	return buffer->handle != 0 && !buffer->offered;
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
static HRESULT lock_without_access(struct umd *umd, struct umd_buffer *buffer, UINT flags)
{
	char *data;

	if (may_have_range(umd, buffer))
		flags |= UMD_LOCK_ENTIRE | UMD_LOCK_ACQUIRE_APERTURE;
	return umd_lock(umd, buffer, flags, 0, &data);
}

enum replay_status umd_wait_idle(struct umd *umd, struct umd_buffer *buffer, bool for_writing)
{
	HRESULT hr;

	if (!may_be_busy(buffer) || !lockable(umd, buffer))
		return REPLAY_CLEAN;
	hr = lock_without_access(umd, buffer, for_writing ? 0 : UMD_LOCK_READ_ONLY);
	if (FAILED(hr))
		return umd_failed(umd, "pfnLockCb", buffer, hr);
	return umd_unlock(umd, buffer);
}

enum replay_status umd_poll_busy(struct umd *umd, struct umd_buffer *buffer)
{
	HRESULT hr;

	if (!may_be_busy(buffer) || !lockable(umd, buffer))
		return REPLAY_CLEAN;
	hr = lock_without_access(umd, buffer, UMD_LOCK_READ_ONLY | UMD_LOCK_DO_NOT_WAIT);
	if (hr == D3DERR_WASSTILLDRAWING)
		return REPLAY_CLEAN;
	return FAILED(hr) ? umd_failed(umd, "pfnLockCb", buffer, hr) : umd_unlock(umd, buffer);
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
