/* SPDX-License-Identifier: MIT */
/*
 * Event x: one command for each listed buffer, then a table with an address for each relocation.
 * The commands do not draw. They reference each buffer, or with verification check its stamps and
 * write the next version. The GPU time of the recording's model is divided into a stall, and the
 * traffic of each buffer, which takes longer over the link.
 */
#include "gpu_time.h"
#include "grow.h"
#include "umd_private.h"

/*
 * Allocates the buffers and fills the slots. The command buffer is still empty, so a failure needs
 * no cleanup.
 */
static enum replay_status fill_slots(struct umd *umd, const struct trace_submission *submission)
{
	uint32_t i;

	while (umd->slot_capacity < submission->object_count) {
		if (!grow_array((void **)&umd->slots, &umd->slot_capacity, umd->slot_capacity,
				sizeof(*umd->slots)))
			return umd_no_memory(umd);
	}
	for (i = 0; i < submission->object_count; i++) {
		struct umd_buffer *buffer = umd_buffer_of(umd, submission->objects[i].id);
		enum replay_status status = umd_buffer_ready(umd, buffer);
		uint64_t last = buffer->size_bytes - 1;

		if (status != REPLAY_CLEAN)
			return status;
		umd->slots[i] = (struct umd_slot){
			.handle = buffer->handle,
			.memory = buffer->memory,
			.size_bytes = buffer->size_bytes,
			.list_value = submission->objects[i].flags & TRACE_OBJECT_WRITE ? 1 : 0,
			.last_offset = last > UINT32_MAX ? UINT32_MAX : (uint32_t)last,
		};
	}
	return REPLAY_CLEAN;
}

/* Whether each object takes its time of the recording's model where it is placed (TRAFFIC). */
static bool has_traffic(const struct umd *umd)
{
	return umd->world->options->gpu_time && umd->world->options->link.bytes_per_us != 0;
}

static enum replay_status put_stall(struct umd *umd, const struct trace_submission *submission)
{
	struct softgpu_stall *stall;
	uint64_t bytes = has_traffic(umd) ? 0 : submission->referenced_bytes;
	enum replay_status status;

	if (!umd->world->options->gpu_time)
		return REPLAY_CLEAN;
	status = umd_batch_reserve(umd, sizeof(*stall), 0, 0);
	if (status != REPLAY_CLEAN)
		return status;
	stall = umd_batch_command(umd, SOFTGPU_STALL, 0, sizeof(*stall));
	stall->nanoseconds = gpu_time_ns(umd->base_ns, umd->bytes_per_ns, bytes);
	return REPLAY_CLEAN;
}

static enum replay_status put_traffic(struct umd *umd, struct umd_slot *slot)
{
	struct softgpu_traffic *traffic;
	enum replay_status status = umd_batch_reserve(umd, sizeof(*traffic), 1, 1);

	if (status != REPLAY_CLEAN)
		return status;
	traffic = umd_batch_command(umd, SOFTGPU_TRAFFIC, slot->list_value ? SOFTGPU_FLAG_WRITE : 0,
				    sizeof(*traffic));
	traffic->operand = umd_batch_operand(umd, slot, 0);
	traffic->length = slot->size_bytes;
	traffic->nanoseconds = gpu_time_ns(0, umd->bytes_per_ns, slot->size_bytes);
	return REPLAY_CLEAN;
}

static enum replay_status put_reference(struct umd *umd, struct umd_slot *slot)
{
	struct softgpu_reference *reference;
	enum replay_status status = umd_batch_reserve(umd, sizeof(*reference), 1, 1);

	if (status != REPLAY_CLEAN)
		return status;
	reference =
		umd_batch_command(umd, SOFTGPU_REFERENCE, slot->list_value ? SOFTGPU_FLAG_WRITE : 0,
				  sizeof(*reference));
	reference->operand = umd_batch_operand(umd, slot, 0);
	return REPLAY_CLEAN;
}

enum replay_status umd_submit_write(struct umd *umd, struct umd_buffer *buffer)
{
	struct umd_slot slot = {.handle = buffer->handle, .list_value = 1};

	return put_reference(umd, &slot);
}

/*
 * Appends one command for each run of blocks with the same version. Unknown content is not checked.
 */
static enum replay_status put_stamps(struct umd *umd, struct umd_slot *slot,
				     struct content *content)
{
	uint32_t first, count, new_version = 0;

	if (slot->list_value)
		new_version = content_next_version(content);
	for (first = 0; first < content->block_count; first += count) {
		uint32_t version = content_version(content, first);
		uint16_t flags = slot->list_value ? SOFTGPU_FLAG_WRITE : 0;
		struct softgpu_stamps *stamps;
		enum replay_status status;

		count = content_run(content, first);
		if (version != CONTENT_UNKNOWN)
			flags |= SOFTGPU_FLAG_VERIFY;
		if (flags == 0)
			continue;
		status = umd_batch_reserve(umd, sizeof(*stamps), 1, 1);
		if (status != REPLAY_CLEAN)
			return status;
		stamps = umd_batch_command(umd, SOFTGPU_STAMP, flags, sizeof(*stamps));
		stamps->operand =
			umd_batch_operand(umd, slot, (uint64_t)first * content->block_bytes);
		stamps->first_block = first;
		stamps->block_count = count;
		stamps->block_size = content->block_bytes;
		stamps->buffer = content->number;
		stamps->expected_version = version;
		stamps->new_version = new_version;
	}
	if (slot->list_value)
		content_set_all(content, new_version);
	return REPLAY_CLEAN;
}

static enum replay_status put_objects(struct umd *umd, const struct trace_submission *submission)
{
	enum replay_status status = REPLAY_CLEAN;
	uint32_t i;

	for (i = 0; i < submission->object_count && status == REPLAY_CLEAN; i++) {
		struct content *content = umd_buffer_of(umd, submission->objects[i].id)->content;
		struct umd_slot *slot = &umd->slots[i];

		if (content)
			status = put_stamps(umd, slot, content);
		if (status == REPLAY_CLEAN && has_traffic(umd))
			status = put_traffic(umd, slot);
		/* A buffer without such a command is referenced too. */
		if (status == REPLAY_CLEAN && slot->part != umd->batch.part)
			status = put_reference(umd, slot);
	}
	return status;
}

static enum replay_status put_relocations(struct umd *umd,
					  const struct trace_submission *submission)
{
	uint32_t done = 0;

	while (done < submission->relocation_count) {
		enum replay_status status =
			umd_batch_reserve(umd, sizeof(struct softgpu_relocations) + 8, 1, 1);

		if (status != REPLAY_CLEAN)
			return status;
		done += umd->model->put_table(umd, submission->relocations + done,
					      submission->relocation_count - done);
	}
	return REPLAY_CLEAN;
}

static enum replay_status submit_all(struct umd *umd, struct umd_context *context,
				     const struct trace_submission *submission)
{
	enum replay_status status =
		umd->model->prepare(umd, context, umd->slots, submission->object_count);

	if (status == REPLAY_CLEAN)
		status = umd_batch_begin(umd, context);
	if (status == REPLAY_CLEAN)
		status = put_stall(umd, submission);
	if (status == REPLAY_CLEAN)
		status = put_objects(umd, submission);
	if (status == REPLAY_CLEAN)
		status = put_relocations(umd, submission);
	if (status == REPLAY_CLEAN)
		status = umd_batch_end(umd);
	umd->model->submitted(umd, context, umd->slots, submission->object_count);
	return status;
}

enum replay_status umd_submit(struct umd *umd, const struct trace_submission *submission)
{
	struct replay_result *result = umd->world->result;
	struct umd_context *context;
	enum replay_status status = fill_slots(umd, submission);

	if (status == REPLAY_CLEAN)
		status = umd_context_find(umd, submission->context, &context);
	if (status != REPLAY_CLEAN)
		return status;
	status = umd->foreign ? umd_foreign_submit(umd, context, submission)
			      : submit_all(umd, context, submission);
	result->submissions++;
	result->references += submission->object_count;
	result->relocations += submission->relocation_count;
	return status;
}
