/* SPDX-License-Identifier: MIT */
/*
 * Allocations of a foreign miniport: their private data, the staging allocations into which the
 * CPU writes what the GPU copies, and the reading allocations into which the GPU copies what the
 * CPU compares.
 */
#include <stdlib.h>
#include <string.h>

#include "umd_foreign.h"

/*
 * Fills the private data of INFO and ALLOCATE for an allocation. They point into the writer, and
 * are valid until the next call. Clears CPU_VISIBLE in *FLAGS if the CPU cannot lock it.
 */
HRESULT umd_foreign_describe(struct umd *umd, uint64_t size_bytes, uint32_t *flags,
			     D3DDDI_ALLOCATIONINFO *info, D3DDDICB_ALLOCATE *allocate)
{
	struct umd_foreign *foreign = umd->foreign;
	struct vidmm_commands_allocation wish = {
		.size_bytes = (size_bytes + UMD_PAGE_BYTES - 1) / UMD_PAGE_BYTES * UMD_PAGE_BYTES,
		.flags = *flags,
		.segment = umd->world->wished_segment,
	};

	if (command_writer_allocation(foreign->writer, &wish) != VIDMM_COMMANDS_OK) {
		if (command_writer_broken(foreign->writer)[0])
			(void)foreign_broken(umd);
		return E_INVALIDARG;
	}
	*flags = wish.flags;
	*info = (D3DDDI_ALLOCATIONINFO){
		.pPrivateDriverData = wish.private_bytes ? wish.private_data : NULL,
		.PrivateDriverDataSize = wish.private_bytes,
	};
	allocate->pPrivateDriverData = wish.resource_bytes ? wish.resource_data : NULL;
	allocate->PrivateDriverDataSize = wish.resource_bytes;
	return S_OK;
}

HRESULT umd_foreign_allocate(struct umd *umd, struct umd_buffer *buffer,
			     D3DDDICB_ALLOCATE *allocate)
{
	uint32_t flags = buffer->staging ? VIDMM_COMMANDS_CPU_VISIBLE | VIDMM_COMMANDS_STAGING
					 : VIDMM_COMMANDS_CPU_VISIBLE;
	D3DDDI_ALLOCATIONINFO info;
	HRESULT hr;

	if (allocate->hResource)
		flags |= VIDMM_COMMANDS_SHARED;
	hr = umd_foreign_describe(umd, buffer->size_bytes, &flags, &info, allocate);
	if (FAILED(hr))
		return hr;
	buffer->hidden = !(flags & VIDMM_COMMANDS_CPU_VISIBLE);
	if (buffer->hidden && !umd->foreign->can_copy) {
		world_finding(umd->world, "Q-404: the command adapter cannot copy, and the CPU "
					  "cannot lock an allocation: its content is unreachable");
		return E_NOTIMPL;
	}
	allocate->NumAllocations = 1;
	allocate->pAllocationInfo = &info;
	hr = umd->callbacks->pfnAllocateCb(umd->handle, allocate);
	if (SUCCEEDED(hr))
		buffer->handle = info.hAllocation;
	return hr;
}

void umd_foreign_opened(struct umd *umd, struct umd_buffer *buffer)
{
	uint32_t flags = VIDMM_COMMANDS_CPU_VISIBLE | VIDMM_COMMANDS_SHARED;
	D3DDDICB_ALLOCATE allocate = {0};
	D3DDDI_ALLOCATIONINFO info;

	if (SUCCEEDED(umd_foreign_describe(umd, buffer->size_bytes, &flags, &info, &allocate)))
		buffer->hidden = !(flags & VIDMM_COMMANDS_CPU_VISIBLE);
}

/* ---- staging and reading ---- */

static enum replay_status create(struct umd *umd, struct umd_buffer *buffer, uint64_t size_bytes)
{
	buffer->size_bytes = size_bytes;
	buffer->key = UMD_NO_KEY;
	buffer->staging = true;
	return umd_buffer_allocate(umd, buffer, false, NULL);
}

enum replay_status foreign_memory_create(struct umd *umd)
{
	struct umd_foreign *foreign = umd->foreign;
	uint64_t stamps = (uint64_t)FOREIGN_OPS_MAX * foreign->stride;
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	for (i = 0; i < FOREIGN_STAGINGS && foreign->can_copy && status == REPLAY_CLEAN; i++)
		status = create(umd, &foreign->staging[i],
				stamps > FOREIGN_STAGING_BYTES ? stamps : FOREIGN_STAGING_BYTES);
	for (i = 0; i < FOREIGN_READINGS && foreign->can_copy && status == REPLAY_CLEAN; i++)
		status = create(umd, &foreign->reading[i].buffer, stamps);
	return status;
}

/* The process is closed: the allocations no longer exist. */
void foreign_memory_free(struct umd *umd)
{
	unsigned i;

	for (i = 0; i < FOREIGN_STAGINGS; i++)
		free(umd->foreign->staging[i].memory);
	for (i = 0; i < FOREIGN_READINGS; i++)
		free(umd->foreign->reading[i].buffer.memory);
}

static enum replay_status lock(struct umd *umd, struct umd_buffer *buffer, UINT flags, char **data)
{
	HRESULT hr = umd->model->lock(umd, buffer, flags | UMD_LOCK_ENTIRE, 0, data);

	return FAILED(hr) ? umd_failed(umd, umd->model->lock_name, NULL, hr) : REPLAY_CLEAN;
}

enum replay_status foreign_staging_lock(struct umd *umd, struct umd_buffer **staging, char **data)
{
	struct umd_foreign *foreign = umd->foreign;

	foreign->staging_turn = (foreign->staging_turn + 1) % FOREIGN_STAGINGS;
	*staging = &foreign->staging[foreign->staging_turn];
	return lock(umd, *staging, UMD_LOCK_WRITE_ONLY, data);
}

enum replay_status foreign_unlock(struct umd *umd, struct umd_buffer *buffer)
{
	HRESULT hr = umd->model->unlock(umd, buffer->handle);

	return FAILED(hr) ? umd_failed(umd, umd->model->unlock_name, NULL, hr) : REPLAY_CLEAN;
}

static void compare(struct umd *umd, const struct foreign_reading *reading, const char *data)
{
	for (uint32_t i = 0; i < reading->count; i++) {
		struct softgpu_stamp expected = reading->expected[i], found;
		const struct softgpu_stamp named = expected;

		if (!reading->compared[i])
			continue;
		memcpy(&found, data + (size_t)i * umd->foreign->stride, sizeof(found));
		umd->world->result->blocks_checked++;
		if (expected.version == 0) /* zero-filled: the stamp only names the block */
			expected = (struct softgpu_stamp){0};
		if (memcmp(&found, &expected, sizeof(found)) != 0)
			world_wrong_stamp(umd->world, &named, &found, "the GPU");
	}
}

static enum replay_status check(struct umd *umd, struct foreign_reading *reading)
{
	enum replay_status status;
	char *data;

	if (!reading->count)
		return REPLAY_CLEAN;
	status = lock(umd, &reading->buffer, UMD_LOCK_READ_ONLY, &data);
	if (status != REPLAY_CLEAN)
		return status;
	compare(umd, reading, data);
	reading->count = 0;
	return foreign_unlock(umd, &reading->buffer);
}

enum replay_status foreign_reading_reserve(struct umd *umd, uint32_t count)
{
	struct umd_foreign *foreign = umd->foreign;

	if (count <= FOREIGN_OPS_MAX - foreign->reading[foreign->reading_turn].count)
		return REPLAY_CLEAN;
	foreign->reading_turn = (foreign->reading_turn + 1) % FOREIGN_READINGS;
	return check(umd, &foreign->reading[foreign->reading_turn]);
}

enum replay_status foreign_readings_check(struct umd *umd)
{
	enum replay_status status = REPLAY_CLEAN;
	unsigned i;

	for (i = 0; i < FOREIGN_READINGS && status == REPLAY_CLEAN; i++)
		status = check(umd, &umd->foreign->reading[i]);
	return status;
}
