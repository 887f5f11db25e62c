/* SPDX-License-Identifier: MIT */
/*
 * CPU accesses: writes, reads, and the check of the expected content. A lock lists the pages of the
 * access; with verification also the page of the first block's stamp.
 *
 * A tiled buffer is locked as its linear image, through a swizzling range. Stamps are where the GPU
 * finds them in the tiled layout, and a write into a row of the image touches all blocks of that
 * row of tiles. Within a bracket the lock may give either layout, so content is not checked and
 * becomes unknown when written.
 */
#include <stdlib.h>
#include <string.h>

#include "umd_private.h"

struct access {
	struct umd_buffer *buffer;
	uint64_t offset, length;
	uint32_t first_block, last_block; /* touched blocks, if content is verified */
	/* address of the buffer's first byte while it is locked */
	char *base;
	/* wants_linear: lock the linear image; linear: the lock gave it */
	bool wants_linear, linear;
	bool layout_unknown; /* the layout behind `base` is not known */
};

/*
 * Returns the bytes of a row of tiles. An X tile has 512 bytes x 8 rows; a Y tile 128 bytes x 32
 * rows, in columns of 16 bytes.
 */
static uint64_t row_of_tiles(const struct umd_buffer *buffer)
{
	return (uint64_t)buffer->stride_bytes * (buffer->tiling == UMD_TILED_X ? 8 : 32);
}

/* Returns the offset in the linear image of the byte at OFFSET of the tiled layout. */
static uint64_t linear_offset(const struct umd_buffer *buffer, uint64_t offset)
{
	uint64_t row = row_of_tiles(buffer), in_tile = offset % UMD_PAGE_BYTES;
	uint64_t tile = offset % row / UMD_PAGE_BYTES, x, y;

	if (buffer->tiling == UMD_TILED_X) {
		x = tile * 512 + in_tile % 512;
		y = in_tile / 512;
	} else {
		x = tile * 128 + in_tile / 512 * 16 + in_tile % 16;
		y = in_tile % 512 / 16;
	}
	return offset / row * row + y * buffer->stride_bytes + x;
}

static struct access access_to(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			       uint64_t length)
{
	bool tiled = buffer->tiling != UMD_LINEAR;
	struct access access = {
		.buffer = buffer,
		.offset = offset,
		.length = length,
		.wants_linear = tiled && buffer->brackets == 0,
		/* The lock of an open bracket decides the layout of further locks (SWZ-14). */
		.layout_unknown = tiled && buffer->brackets != 0,
	};
	uint64_t last = offset + length - 1;

	if (access.wants_linear) {
		uint64_t row = row_of_tiles(buffer);

		offset -= offset % row;
		last = last - last % row + row - 1;
		if (last >= buffer->size_bytes)
			last = buffer->size_bytes - 1;
	}
	if (umd->world->block_bytes) {
		access.first_block = (uint32_t)(offset / umd->world->block_bytes);
		access.last_block = (uint32_t)(last / umd->world->block_bytes);
	}
	return access;
}

static bool is_whole(const struct access *access)
{
	return access->offset == 0 && access->length == access->buffer->size_bytes;
}

/*
 * Fills umd->pages with the pages of an access. *COUNT is 0 for the whole buffer. Returns false
 * when out of memory.
 */
static bool list_pages(struct umd *umd, const struct access *access, UINT *count)
{
	uint64_t first = access->offset / UMD_PAGE_BYTES;
	uint64_t last = (access->offset + access->length - 1) / UMD_PAGE_BYTES;
	uint64_t stamp = first, page;
	UINT used = 0;

	*count = 0;
	if (umd->world->block_bytes)
		stamp = (uint64_t)access->first_block * umd->world->block_bytes / UMD_PAGE_BYTES;
	if (is_whole(access))
		return true;
	if (umd->page_capacity < last - first + 2) {
		UINT *pages = realloc(umd->pages, (last - first + 2) * sizeof(*pages));

		if (!pages)
			return false;
		umd->pages = pages;
		umd->page_capacity = (uint32_t)(last - first + 2);
	}
	if (stamp < first)
		umd->pages[used++] = (UINT)stamp;
	for (page = first; page <= last; page++)
		umd->pages[used++] = (UINT)page;
	*count = used;
	return true;
}

/*
 * Locks for the access and waits for the GPU. access->base is NULL if the buffer cannot be locked.
 */
static enum replay_status begin(struct umd *umd, struct access *access, UINT flags)
{
	enum replay_status status;
	UINT page_count;
	char *data;

	access->base = NULL;
	if (access->wants_linear) {
		status = umd_lock_linear(umd, access->buffer, flags, &access->base);
		access->linear = access->buffer->locked_linear;
		access->layout_unknown = !access->linear;
		return status;
	}
	if (!list_pages(umd, access, &page_count))
		return umd_no_memory(umd);
	if (page_count == 0)
		flags |= UMD_LOCK_ENTIRE;
	status = umd_lock_waiting(umd, access->buffer, flags, page_count, &data);
	if (status == REPLAY_CLEAN && data)
		access->base = page_count ? data - (size_t)umd->pages[0] * UMD_PAGE_BYTES : data;
	return status;
}

static char *stamp_of(const struct access *access, uint32_t block)
{
	uint64_t offset = (uint64_t)block * access->buffer->content->block_bytes;

	return access->base + (access->linear ? linear_offset(access->buffer, offset) : offset);
}

static void check_blocks(struct umd *umd, const struct access *access)
{
	const struct content *content = access->buffer->content;
	uint32_t block;

	if (access->layout_unknown)
		return;
	for (block = access->first_block; block <= access->last_block; block++) {
		struct softgpu_stamp expected = {0}, found;
		uint32_t version = content_version(content, block);

		if (version == CONTENT_UNKNOWN)
			continue;
		if (version != 0) {
			expected = (struct softgpu_stamp){content->number, version, block, 0};
			expected.check = softgpu_stamp_check(content->number, version, block);
		}
		memcpy(&found, stamp_of(access, block), sizeof(found));
		umd->world->result->blocks_checked++;
		if (memcmp(&found, &expected, sizeof(found)) == 0)
			continue;
		/*
		 * Version 0 is zero-filled and has no stamp: name buffer and block for the message.
		 */
		expected.buffer = content->number;
		expected.block = block;
		world_wrong_stamp(umd->world, &expected, &found, "the CPU");
	}
}

static enum replay_status write_stamps(struct umd *umd, const struct access *access)
{
	struct content *content = access->buffer->content;
	uint32_t version = content_next_version(content), block;

	if (access->layout_unknown) {
		content_set_all(content, CONTENT_UNKNOWN);
		return REPLAY_CLEAN;
	}

	for (block = access->first_block; block <= access->last_block; block++) {
		struct softgpu_stamp stamp = {content->number, version, block, 0};

		stamp.check = softgpu_stamp_check(content->number, version, block);
		memcpy(stamp_of(access, block), &stamp, sizeof(stamp));
	}
	if (access->last_block - access->first_block + 1 == content->block_count) {
		content_set_all(content, version);
		return REPLAY_CLEAN;
	}
	for (block = access->first_block; block <= access->last_block; block++) {
		if (!content_set(content, block, version))
			return umd_no_memory(umd);
	}
	return REPLAY_CLEAN;
}

/*
 * Writes every byte that the recording says was written. With verification, stamps are written on
 * top.
 */
static enum replay_status write_bytes(struct umd *umd, const struct access *access)
{
	const struct umd_buffer *buffer = access->buffer;
	uint32_t pattern = buffer->id * 37 +
			   (buffer->content ? buffer->content->last_version : (uint32_t)umd->line);

	umd->world->result->bytes_written += access->length;
	if (umd->world->options->no_content)
		return REPLAY_CLEAN;
	memset(access->base + access->offset, (int)pattern, access->length);
	return buffer->content ? write_stamps(umd, access) : REPLAY_CLEAN;
}

/*
 * A write of the whole buffer locks with Discard, so that the memory manager, or the driver of WDDM
 * 2.x, may rename the allocation (REN). The driver submits at every `x`, so no unsubmitted command
 * buffer references an instance. *DONE false: no lock was taken, and the caller locks without
 * Discard.
 */
static enum replay_status write_discarding(struct umd *umd, struct access *access, bool *done)
{
	const UINT form = access->buffer->tiling == UMD_LINEAR
				  ? 0
				  : UMD_LOCK_ENTIRE | UMD_LOCK_ACQUIRE_APERTURE;
	const UINT flags = UMD_LOCK_WRITE_ONLY | UMD_LOCK_DISCARD | UMD_LOCK_NO_EXISTING_REFERENCE;
	enum replay_status status;
	HRESULT hr = umd->model->lock(umd, access->buffer, flags | form, 0, &access->base);

	*done = SUCCEEDED(hr);
	access->linear = access->buffer->locked_linear = *done && form;
	if (hr == E_NOTIMPL || hr == D3DERR_WASSTILLDRAWING || hr == D3DERR_NOTAVAILABLE)
		return REPLAY_CLEAN;
	if (FAILED(hr))
		return umd_failed(umd, umd->model->lock_name, access->buffer, hr);
	status = write_bytes(umd, access);
	return status == REPLAY_CLEAN ? umd_unlock(umd, access->buffer) : status;
}

enum replay_status umd_write(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			     uint64_t length)
{
	/* Allocate first: only then is it known whether the GPU supports the tiling. */
	enum replay_status status = umd_buffer_ready(umd, buffer);
	bool done = false;

	if (status != REPLAY_CLEAN)
		return status;
	struct access access = access_to(umd, buffer, offset, length);
	if (buffer->hidden && !buffer->foreign)
		return umd_foreign_write(umd, buffer, offset, length, (int)buffer->id * 37);
	if (is_whole(&access) && buffer->key == UMD_NO_KEY && buffer->brackets == 0)
		status = write_discarding(umd, &access, &done);
	if (status != REPLAY_CLEAN || done)
		return status;
	status = begin(umd, &access, buffer->content ? 0 : UMD_LOCK_WRITE_ONLY);
	if (status != REPLAY_CLEAN || !access.base)
		return status;
	if (buffer->content)
		check_blocks(umd, &access);
	status = write_bytes(umd, &access);
	return status == REPLAY_CLEAN ? umd_unlock(umd, buffer) : status;
}

enum replay_status umd_read(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			    uint64_t length)
{
	enum replay_status status = umd_buffer_ready(umd, buffer);

	if (status != REPLAY_CLEAN)
		return status;
	struct access access = access_to(umd, buffer, offset, length);
	if (buffer->hidden && !buffer->foreign)
		return umd_foreign_read(umd, buffer, access.first_block, access.last_block);
	status = begin(umd, &access, UMD_LOCK_READ_ONLY);
	if (status != REPLAY_CLEAN || !access.base)
		return status;
	if (buffer->content)
		check_blocks(umd, &access);
	return umd_unlock(umd, buffer);
}

enum replay_status umd_check(struct umd *umd, struct umd_buffer *buffer)
{
	struct access access = access_to(umd, buffer, 0, buffer->size_bytes);
	enum replay_status status;

	if (!buffer->content || buffer->handle == 0 || buffer->foreign)
		return REPLAY_CLEAN;
	if (buffer->hidden)
		return umd_foreign_read(umd, buffer, access.first_block, access.last_block);
	/*
	 * A buffer that was not locked as a linear image last has the tiled layout; the lock leaves
	 * it in place.
	 */
	access.wants_linear &= buffer->locked_linear;
	status = begin(umd, &access, UMD_LOCK_READ_ONLY);
	if (status != REPLAY_CLEAN || !access.base)
		return status;
	check_blocks(umd, &access);
	return umd_unlock(umd, buffer);
}
