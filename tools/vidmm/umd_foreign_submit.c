/* SPDX-License-Identifier: MIT */
/*
 * Events on a foreign miniport: submissions, CPU accesses to allocations that the CPU cannot lock,
 * and copies. A submission is divided so that the allocations of one part use at most half of the
 * video memory, or of the aperture without any: the commands of a part may not be divisible.
 */
#include <string.h>

#include "umd_foreign.h"

static struct softgpu_stamp stamp_of(const struct content *content, uint32_t block,
				     uint32_t version)
{
	struct softgpu_stamp stamp = {content->number, version, block, 0};

	stamp.check = softgpu_stamp_check(content->number, version, block);
	return stamp;
}

/* ---- plans for one slot ---- */

static void plan_write_of(struct umd *umd, uint32_t slot, struct content *content, uint32_t block,
			  uint32_t version)
{
	const struct umd_foreign *foreign = umd->foreign;
	/* If the miniport has both commands, they take turns. */
	bool fill = foreign->can_fill && (!foreign->can_copy || version % 2);

	foreign_add(umd, (struct foreign_op){.kind = fill ? FOREIGN_WRITE_FILL : FOREIGN_WRITE_COPY,
					     .slot = slot,
					     .offset = (uint64_t)block * content->block_bytes,
					     .length = foreign->stride,
					     .stamp = stamp_of(content, block, version)});
}

static enum replay_status plan_write(struct umd *umd, uint32_t slot, struct content *content)
{
	uint32_t version = content_next_version(content), count = content->block_count, i;
	uint32_t first = (uint32_t)(umd->foreign->block_turn++ * FOREIGN_BLOCKS_MAX % count);

	if (count > FOREIGN_BLOCKS_MAX)
		count = FOREIGN_BLOCKS_MAX;
	for (i = 0; i < count; i++) {
		uint32_t block = (first + i) % content->block_count;

		plan_write_of(umd, slot, content, block, version);
		if (!content_set(content, block, version))
			return umd_no_memory(umd);
	}
	return REPLAY_CLEAN;
}

static void plan_read_of(struct umd *umd, uint32_t slot, const struct content *content,
			 uint32_t block)
{
	uint32_t version = content_version(content, block);

	foreign_add(umd, (struct foreign_op){.kind = version == CONTENT_UNKNOWN ? FOREIGN_TOUCH_READ
										: FOREIGN_READ,
					     .slot = slot,
					     .offset = (uint64_t)block * content->block_bytes,
					     .stamp = stamp_of(content, block, version)});
}

/* A reference without content, or of a miniport that cannot read: a word beside the stamp. */
static void plan_touch(struct umd *umd, uint32_t slot)
{
	bool write = umd->foreign->slots[slot].list_value || !umd->foreign->can_copy;

	umd->foreign->slots[slot].list_value = write;
	foreign_add(umd, (struct foreign_op){.kind = !write                   ? FOREIGN_TOUCH_READ
						     : umd->foreign->can_fill ? FOREIGN_TOUCH_FILL
									      : FOREIGN_WRITE_COPY,
					     .slot = slot,
					     .length = umd->foreign->stride,
					     .offset = umd->foreign->can_fill && write
							       ? FOREIGN_STAMP_BYTES
							       : 0});
}

static enum replay_status plan_object(struct umd *umd, uint32_t slot, struct content *content)
{
	bool write = umd->foreign->slots[slot].list_value != 0;

	if (content && write)
		return plan_write(umd, slot, content);
	if (content && umd->foreign->can_copy)
		plan_read_of(umd, slot, content,
			     (uint32_t)(umd->foreign->block_turn++ % content->block_count));
	else
		plan_touch(umd, slot);
	return REPLAY_CLEAN;
}

/* ---- submissions ---- */

static bool has_room(const struct umd *umd, const struct umd_context *context, uint64_t bytes)
{
	const struct umd_foreign *foreign = umd->foreign;
	const struct host_adapter_sizes *sizes = &umd->world->adapter_sizes;
	uint64_t memory = sizes->vram_bytes ? sizes->vram_bytes : sizes->aperture_bytes;
	uint32_t lists = foreign_is_virtual(foreign) ? UINT32_MAX : context->allocation_capacity;

	return foreign->slot_count == 0 ||
	       ((umd->world->undivided || bytes <= memory / 2) && foreign->slot_count + 4 < lists &&
		foreign->slot_count < FOREIGN_OPS_MAX &&
		foreign->op_count + FOREIGN_BLOCKS_MAX <= FOREIGN_OPS_MAX);
}

enum replay_status umd_foreign_submit(struct umd *umd, struct umd_context *context,
				      const struct trace_submission *submission)
{
	enum replay_status status = REPLAY_CLEAN;
	uint64_t bytes = 0;
	uint32_t i;

	foreign_begin(umd);
	for (i = 0; i < submission->object_count && status == REPLAY_CLEAN; i++) {
		const struct umd_slot *slot = &umd->slots[i];

		bytes += slot->size_bytes;
		if (!has_room(umd, context, bytes)) {
			status = foreign_run(umd, context);
			foreign_begin(umd);
			bytes = slot->size_bytes;
		}
		foreign_add_slot(umd, slot);
		if (status == REPLAY_CLEAN)
			status =
				plan_object(umd, umd->foreign->slot_count - 1,
					    umd_buffer_of(umd, submission->objects[i].id)->content);
	}
	if (status != REPLAY_CLEAN || !umd->foreign->op_count)
		return status;
	return foreign_run(umd, context);
}

/* ---- work outside of submissions, on the context that was used last ---- */

static enum replay_status run_now(struct umd *umd)
{
	struct umd_context *context = umd->batch.context;
	enum replay_status status = REPLAY_CLEAN;

	if (!umd->foreign->op_count)
		return REPLAY_CLEAN;
	if (!context)
		status = umd_context_find(umd, 0, &context);
	return status == REPLAY_CLEAN ? foreign_run(umd, context) : status;
}

static void begin_with(struct umd *umd, const struct umd_buffer *buffer, bool write)
{
	const struct umd_slot slot = {
		.handle = buffer->handle,
		.memory = buffer->memory,
		.size_bytes = buffer->size_bytes,
		.list_value = write,
	};

	foreign_begin(umd);
	foreign_add_slot(umd, &slot);
}

enum replay_status umd_foreign_copy(struct umd *umd, const struct umd_buffer *from,
				    const struct umd_buffer *to)
{
	const struct umd_slot slot = {
		.handle = to->handle,
		.memory = to->memory,
		.size_bytes = to->size_bytes,
		.list_value = 1,
	};
	uint64_t unit = umd->foreign->commands->copy_alignment;

	begin_with(umd, from, false);
	foreign_add_slot(umd, &slot);
	foreign_add(umd, (struct foreign_op){.kind = FOREIGN_COPY,
					     .length = (to->size_bytes + unit - 1) / unit * unit});
	return run_now(umd);
}

bool umd_foreign_can_copy(const struct umd *umd)
{
	return umd->foreign->can_copy;
}

/* Has the GPU read blocks, which are compared later. */
enum replay_status umd_foreign_read(struct umd *umd, struct umd_buffer *buffer, uint32_t first,
				    uint32_t last)
{
	enum replay_status status = REPLAY_CLEAN;

	if (!buffer->content)
		return REPLAY_CLEAN;
	begin_with(umd, buffer, false);
	for (uint32_t block = first; block <= last && status == REPLAY_CLEAN; block++) {
		if (umd->foreign->op_count == FOREIGN_OPS_MAX) {
			status = run_now(umd);
			begin_with(umd, buffer, false);
		}
		plan_read_of(umd, 0, buffer->content, block);
	}
	return status == REPLAY_CLEAN ? run_now(umd) : status;
}

/* Writes bytes by way of a staging allocation. */
static enum replay_status write_bytes(struct umd *umd, const struct umd_buffer *buffer,
				      uint64_t offset, uint64_t length, int pattern)
{
	uint64_t unit = umd->foreign->commands->copy_alignment;
	uint64_t end = (offset + length + unit - 1) / unit * unit, at = offset / unit * unit;
	enum replay_status status = REPLAY_CLEAN;

	for (; at < end && status == REPLAY_CLEAN; at += FOREIGN_STAGING_BYTES) {
		uint64_t bytes =
			end - at < FOREIGN_STAGING_BYTES ? end - at : FOREIGN_STAGING_BYTES;
		struct umd_buffer *staging;
		char *data;

		status = foreign_staging_lock(umd, &staging, &data);
		if (status != REPLAY_CLEAN)
			return status;
		memset(data, pattern, bytes);
		status = foreign_unlock(umd, staging);
		umd->foreign->staged = staging;
		begin_with(umd, buffer, true);
		foreign_add(umd, (struct foreign_op){.kind = FOREIGN_WRITE_COPY,
						     .offset = at,
						     .length = bytes});
		if (status == REPLAY_CLEAN)
			status = run_now(umd);
	}
	return status;
}

static enum replay_status write_stamps(struct umd *umd, struct umd_buffer *buffer, uint32_t first,
				       uint32_t last)
{
	struct content *content = buffer->content;
	uint32_t version = content_next_version(content);
	enum replay_status status = REPLAY_CLEAN;

	begin_with(umd, buffer, true);
	for (uint32_t block = first; block <= last && status == REPLAY_CLEAN; block++) {
		if (umd->foreign->op_count == FOREIGN_OPS_MAX) {
			status = run_now(umd);
			begin_with(umd, buffer, true);
		}
		plan_write_of(umd, 0, content, block, version);
		if (!content_set(content, block, version))
			return umd_no_memory(umd);
	}
	return status == REPLAY_CLEAN ? run_now(umd) : status;
}

enum replay_status umd_foreign_write(struct umd *umd, struct umd_buffer *buffer, uint64_t offset,
				     uint64_t length, int pattern)
{
	uint32_t block_bytes = umd->world->block_bytes;
	enum replay_status status = write_bytes(umd, buffer, offset, length, pattern);

	umd->world->result->bytes_written += length;
	if (status != REPLAY_CLEAN || !buffer->content)
		return status;
	return write_stamps(umd, buffer, (uint32_t)(offset / block_bytes),
			    (uint32_t)((offset + length - 1) / block_bytes));
}
