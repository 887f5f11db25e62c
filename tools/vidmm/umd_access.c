/* SPDX-License-Identifier: MIT */
/*
 * The CPU in a buffer's bytes: writes, reads, and the check of what must be there. A lock names the pages it is
 * about; with verification also the page of the first touched block's stamp.
 *
 * A tiled buffer is seen as the picture that it is, by way of a swizzling range. Stamps are
 * where the GPU finds them, in the tiles; and whatever is written into a row of the picture touches the whole row of tiles.
 * Within a bracket it is locked as it is, which may be either, so nothing is said about its content then.
 */
#include <stdlib.h>
#include <string.h>

#include "umd_private.h"

struct access {
	struct umd_buffer *buffer;
	uint64_t offset, length;
	uint32_t first_block, last_block; /* touched, when content is verified */
	char *base;                       /* where the buffer's first byte is, while locked */
	bool wants_picture, picture;      /* what is there is the picture */
	bool unknown;                     /* or either */
};

/* Rows of tiles: X 512 bytes x 8 rows, Y 128 bytes x 32 rows in columns of 16 bytes. */
static uint64_t row_of_tiles(const struct umd_buffer *buffer)
{
	return (uint64_t)buffer->stride_bytes * (buffer->tiling == UMD_TILED_X ? 8 : 32);
}

/* Where in the picture the byte is that has this offset in the tiles. */
static uint64_t in_picture(const struct umd_buffer *buffer, uint64_t offset)
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
		.wants_picture = tiled && buffer->brackets == 0,
		/* While a bracket is open it can be locked in no other way (SWZ-14). */
		.unknown = tiled && buffer->brackets != 0,
	};
	uint64_t last = offset + length - 1;

	if (access.wants_picture) {
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

/* The page list of an access; 0 pages and no memory trouble: the whole buffer. False when out of memory. */
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
	if (umd->page_room < last - first + 2) {
		UINT *pages = realloc(umd->pages, (last - first + 2) * sizeof(*pages));

		if (!pages)
			return false;
		umd->pages = pages;
		umd->page_room = (uint32_t)(last - first + 2);
	}
	if (stamp < first)
		umd->pages[used++] = (UINT)stamp;
	for (page = first; page <= last; page++)
		umd->pages[used++] = (UINT)page;
	*count = used;
	return true;
}

/* Locks for the access, waiting. access->base NULL: the buffer cannot be locked. */
static enum replay_status begin(struct umd *umd, struct access *access, UINT flags)
{
	enum replay_status status;
	UINT page_count;
	char *data;

	access->base = NULL;
	if (access->wants_picture) {
		status = umd_lock_picture(umd, access->buffer, flags, &access->base);
		access->picture = access->buffer->seen_as_picture;
		access->unknown = !access->picture;
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

	return access->base + (access->picture ? in_picture(access->buffer, offset) : offset);
}

static void check_blocks(struct umd *umd, const struct access *access)
{
	const struct content *content = access->buffer->content;
	uint32_t block;

	if (access->unknown)
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
		/* Version 0 is no stamp at all, yet the message must say whose block it is. */
		expected.buffer = content->number;
		expected.block = block;
		world_wrong_stamp(umd->world, &expected, &found, "the CPU");
	}
}

static enum replay_status write_stamps(struct umd *umd, const struct access *access)
{
	struct content *content = access->buffer->content;
	uint32_t version = content_next_version(content), block;

	if (access->unknown) {
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

/* Every byte that the recording says was written is written; with verification the stamps go on top. */
static enum replay_status write_bytes(struct umd *umd, const struct access *access)
{
	const struct umd_buffer *buffer = access->buffer;
	uint32_t pattern = buffer->id * 37 +
			   (buffer->content ? buffer->content->last_version : (uint32_t)umd->line);

	umd->world->result->bytes_written += access->length;
	memset(access->base + access->offset, (int)pattern, access->length);
	return buffer->content ? write_stamps(umd, access) : REPLAY_CLEAN;
}

/*
 * Every byte is new, so the old ones may go: another instance of the allocation will do (REN). The driver submits
 * at every `x`, hence no unsubmitted command buffer names any instance. *done false: no renaming, lock as usual.
 */
static enum replay_status write_discarding(struct umd *umd, struct access *access, bool *done)
{
	const UINT form = access->buffer->tiling == UMD_LINEAR
				  ? 0
				  : UMD_LOCK_ENTIRE | UMD_LOCK_ACQUIRE_APERTURE;
	const UINT flags = UMD_LOCK_WRITE_ONLY | UMD_LOCK_DISCARD | UMD_LOCK_NO_EXISTING_REFERENCE;
	enum replay_status status;
	HRESULT hr = umd_lock(umd, access->buffer, flags | form, 0, &access->base);

	*done = SUCCEEDED(hr);
	access->picture = access->buffer->seen_as_picture = *done && form;
	if (hr == E_NOTIMPL || hr == D3DERR_WASSTILLDRAWING || hr == D3DERR_NOTAVAILABLE)
		return REPLAY_CLEAN;
	if (FAILED(hr))
		return umd_failed(umd, "pfnLockCb", access->buffer, hr);
	status = write_bytes(umd, access);
	return status == REPLAY_CLEAN ? umd_unlock(umd, access->buffer) : status;
}

enum replay_status umd_write(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
			     uint64_t length)
{
	/* First: only then is known whether the GPU can have the tiling. */
	enum replay_status status = umd_buffer_ready(umd, buffer);
	bool done = false;

	if (status != REPLAY_CLEAN)
		return status;
	struct access access = access_to(umd, buffer, offset, length);
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
	/* What the CPU never saw as a picture has its tiles, wherever it is. It may stay there. */
	access.wants_picture &= buffer->seen_as_picture;
	status = begin(umd, &access, UMD_LOCK_READ_ONLY);
	if (status != REPLAY_CLEAN || !access.base)
		return status;
	check_blocks(umd, &access);
	return umd_unlock(umd, buffer);
}
