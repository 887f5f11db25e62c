/* SPDX-License-Identifier: MIT */
/*
 * Work for the GPU of a foreign miniport: operations on the allocations of slots, which are planned
 * first, because the staging allocation must be written and unlocked before it is submitted. Then
 * the adapter writes their commands, in as many command buffers as they need.
 */
#include <stdio.h>
#include <string.h>

#include "umd_foreign.h"

void foreign_begin(struct umd *umd)
{
	umd->foreign->slot_count = umd->foreign->op_count = 0;
}

struct umd_slot *foreign_add_slot(struct umd *umd, const struct umd_slot *slot)
{
	struct umd_foreign *foreign = umd->foreign;
	struct umd_slot *added = &foreign->slots[foreign->slot_count++];

	*added = *slot;
	added->part = 0;
	return added;
}

void foreign_add(struct umd *umd, struct foreign_op op)
{
	umd->foreign->ops[umd->foreign->op_count++] = op;
}

/* ---- one command buffer after the other ---- */

static enum replay_status begin_buffer(struct umd *umd)
{
	const struct umd_context *context = umd->batch.context;
	const struct umd_wddm2 *wddm2 = umd->wddm2;
	bool is_virtual = foreign_is_virtual(umd->foreign);
	uint64_t address = is_virtual ? wddm2->commands[wddm2->next_commands].memory->address : 0;

	return command_writer_begin(umd->foreign->writer, context->command_bytes,
				    is_virtual ? 0 : context->patch_capacity, address,
				    is_virtual ? context->commands : NULL)
		       ? REPLAY_CLEAN
		       : umd_no_memory(umd);
}

/* ends the run with a finding. */
static enum replay_status refuse(struct umd *umd, const char *format, unsigned value)
{
	char text[160];
	int length = snprintf(text, sizeof(text), "Q-404: ");

	snprintf(text + length, sizeof(text) - (size_t)length, format, value);
	world_finding(umd->world, text);
	return REPLAY_FINDINGS;
}

static enum replay_status end_buffer(struct umd *umd)
{
	struct command_writer *writer = umd->foreign->writer;
	enum vidmm_commands_result result = command_writer_barrier(writer, VIDMM_COMMANDS_END);

	if (command_writer_broken(writer)[0])
		return foreign_broken(umd);
	if (result == VIDMM_COMMANDS_OK)
		return REPLAY_CLEAN;
	return refuse(umd, "the command adapter cannot end a command buffer (%u)",
		      (unsigned)result);
}

static enum replay_status does_not_fit(struct umd *umd)
{
	return refuse(umd, "one command does not fit an empty command buffer of %u bytes",
		      umd->batch.context->command_bytes);
}

static enum replay_status next_buffer(struct umd *umd)
{
	enum replay_status status;

	if (!command_writer_buffer(umd->foreign->writer)->used)
		return does_not_fit(umd);
	status = end_buffer(umd);
	if (status == REPLAY_CLEAN)
		status = umd_batch_next(umd);
	return status == REPLAY_CLEAN ? begin_buffer(umd) : status;
}

/* ---- one operation ---- */

static struct umd_slot *staging_slot(struct umd_foreign *foreign)
{
	return &foreign->slots[foreign->slot_count];
}

static struct umd_slot *reading_slot(struct umd_foreign *foreign)
{
	return &foreign->slots[foreign->slot_count + 1];
}

static struct vidmm_commands_operand operand(struct umd *umd, struct umd_slot *slot,
					     uint64_t offset)
{
	struct vidmm_commands_operand operand = {.offset = offset, .size_bytes = slot->size_bytes};

	if (foreign_is_virtual(umd->foreign))
		operand.gpu_address = slot->memory->address + offset;
	else
		operand.index = umd_batch_list(umd, slot);
	return operand;
}

/* One command: a copy of LENGTH bytes if FROM is not NULL, or a fill. */
struct command {
	struct umd_slot *to, *from;
	uint64_t to_offset, from_offset, length;
	uint32_t pattern;
};

static enum vidmm_commands_result try_command(struct umd *umd, const struct command *c)
{
	const struct umd_batch *batch = &umd->batch;
	struct command_writer *writer = umd->foreign->writer;
	struct vidmm_commands_operand to, from;

	/* One element of the list stays free, as with softgpu. */
	if (!foreign_is_virtual(umd->foreign) &&
	    batch->allocation_count + 2 >= batch->context->allocation_capacity)
		return VIDMM_COMMANDS_FULL;
	to = operand(umd, c->to, c->to_offset);
	if (!c->from)
		return command_writer_fill(writer, &to, c->length, c->pattern);
	from = operand(umd, c->from, c->from_offset);
	return command_writer_copy(writer, &to, &from, c->length);
}

static enum replay_status put(struct umd *umd, const struct command *c)
{
	enum vidmm_commands_result result = try_command(umd, c);

	if (result == VIDMM_COMMANDS_FULL) {
		enum replay_status status = next_buffer(umd);

		if (status != REPLAY_CLEAN)
			return status;
		result = try_command(umd, c);
	}
	if (command_writer_broken(umd->foreign->writer)[0])
		return foreign_broken(umd);
	if (result == VIDMM_COMMANDS_OK)
		return REPLAY_CLEAN;
	if (result == VIDMM_COMMANDS_FULL)
		return does_not_fit(umd);
	return refuse(umd, "the command adapter refuses a command that it had accepted (%u)",
		      (unsigned)result);
}

static enum replay_status put_copy(struct umd *umd, struct command c)
{
	uint64_t left = c.length, longest = umd->foreign->commands->longest_copy;
	enum replay_status status = REPLAY_CLEAN;

	longest -= longest % umd->foreign->commands->copy_alignment;
	while (left && status == REPLAY_CLEAN) {
		c.length = longest && left > longest ? longest : left;
		status = put(umd, &c);
		left -= c.length;
		c.to_offset += c.length;
		c.from_offset += c.length;
	}
	return status;
}

static enum replay_status put_fills(struct umd *umd, const struct foreign_op *op)
{
	enum replay_status status = REPLAY_CLEAN;
	uint32_t words[4], i;

	memcpy(words, &op->stamp, sizeof(words));
	for (i = 0; i < 4 && status == REPLAY_CLEAN; i++)
		status = put(umd, &(struct command){.to = &umd->foreign->slots[op->slot],
						    .to_offset = op->offset + 4 * (uint64_t)i,
						    .length = 4,
						    .pattern = words[i]});
	return status;
}

static enum replay_status put_read(struct umd *umd, const struct foreign_op *op)
{
	struct umd_foreign *foreign = umd->foreign;
	struct foreign_reading *reading = &foreign->reading[foreign->reading_turn];
	struct command c = {.to = reading_slot(foreign),
			    .from = &foreign->slots[op->slot],
			    .to_offset = (uint64_t)reading->count * foreign->stride,
			    .from_offset = op->offset,
			    .length = foreign->stride};

	reading->expected[reading->count] = op->stamp;
	reading->compared[reading->count++] = op->kind == FOREIGN_READ;
	return put(umd, &c);
}

static enum replay_status put_op(struct umd *umd, const struct foreign_op *op, uint32_t index)
{
	struct umd_foreign *foreign = umd->foreign;
	struct umd_slot *slot = &foreign->slots[op->slot];

	switch (op->kind) {
	case FOREIGN_WRITE_COPY:
		return put_copy(umd,
				(struct command){.to = slot,
						 .from = staging_slot(foreign),
						 .to_offset = op->offset,
						 .from_offset = (uint64_t)index * foreign->stride,
						 .length = op->length});
	case FOREIGN_WRITE_FILL:
		return put_fills(umd, op);
	case FOREIGN_READ:
	case FOREIGN_TOUCH_READ:
		return put_read(umd, op);
	case FOREIGN_TOUCH_FILL:
		return put(umd,
			   &(struct command){.to = slot, .to_offset = op->offset, .length = 4});
	default: /* FOREIGN_COPY */
		return put_copy(umd, (struct command){.to = &foreign->slots[1],
						      .from = &foreign->slots[0],
						      .length = op->length});
	}
}

/* ---- all operations ---- */

static bool uses_staging(const struct umd_foreign *foreign)
{
	for (uint32_t i = 0; i < foreign->op_count; i++)
		if (foreign->ops[i].kind == FOREIGN_WRITE_COPY)
			return true;
	return false;
}

static uint32_t reads(const struct umd_foreign *foreign)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < foreign->op_count; i++)
		count += foreign->ops[i].kind == FOREIGN_READ ||
			 foreign->ops[i].kind == FOREIGN_TOUCH_READ;
	return count;
}

static void set_slot(struct umd_slot *slot, const struct umd_buffer *buffer, uint32_t list_value)
{
	*slot = (struct umd_slot){
		.handle = buffer->handle,
		.memory = buffer->memory,
		.size_bytes = buffer->size_bytes,
		.list_value = list_value,
	};
}

/* Writes the stamps that will be copied. A block of bytes was written there by the caller. */
static enum replay_status stage(struct umd *umd, struct umd_buffer **staging)
{
	struct umd_foreign *foreign = umd->foreign;
	enum replay_status status;
	char *data;

	if (foreign->staged) {
		*staging = foreign->staged;
		foreign->staged = NULL;
		return REPLAY_CLEAN;
	}
	status = foreign_staging_lock(umd, staging, &data);
	if (status != REPLAY_CLEAN)
		return status;
	for (uint32_t i = 0; i < foreign->op_count; i++) {
		memset(data + (size_t)i * foreign->stride, 0, foreign->stride);
		memcpy(data + (size_t)i * foreign->stride, &foreign->ops[i].stamp,
		       FOREIGN_STAMP_BYTES);
	}
	return foreign_unlock(umd, *staging);
}

/* Prepares staging and reading. Returns the number of all slots in *COUNT. */
static enum replay_status prepare(struct umd *umd, uint32_t *count)
{
	struct umd_foreign *foreign = umd->foreign;
	struct umd_buffer *staging = &foreign->staging[0];
	uint32_t read_count = reads(foreign);
	enum replay_status status = REPLAY_CLEAN;
	bool staged = uses_staging(foreign);

	*count = foreign->slot_count + (read_count ? 2 : staged ? 1 : 0);
	if (staged)
		status = stage(umd, &staging);
	if (status == REPLAY_CLEAN && read_count)
		status = foreign_reading_reserve(umd, read_count);
	set_slot(staging_slot(foreign), staging, 0);
	set_slot(reading_slot(foreign), &foreign->reading[foreign->reading_turn].buffer, 1);
	return status;
}

/* Without such a command the end of a command buffer is the barrier. */
static enum replay_status put_barrier(struct umd *umd)
{
	struct command_writer *writer = umd->foreign->writer;
	enum vidmm_commands_result result = command_writer_barrier(writer, 0);
	enum replay_status status = REPLAY_CLEAN;

	if (command_writer_broken(writer)[0])
		return foreign_broken(umd);
	if (result == VIDMM_COMMANDS_OK)
		return REPLAY_CLEAN;
	if (command_writer_buffer(writer)->used)
		status = next_buffer(umd);
	if (status != REPLAY_CLEAN || result != VIDMM_COMMANDS_FULL)
		return status;
	result = command_writer_barrier(writer, 0);
	if (command_writer_broken(writer)[0])
		return foreign_broken(umd);
	return result == VIDMM_COMMANDS_FULL ? does_not_fit(umd) : REPLAY_CLEAN;
}

/* Has the adapter make what the GPU wrote readable for the CPU. */
static enum replay_status put_read_backs(struct umd *umd, uint32_t count)
{
	struct umd_foreign *foreign = umd->foreign;
	struct command_writer *writer = foreign->writer;
	enum vidmm_commands_result result = VIDMM_COMMANDS_OK;
	enum replay_status status = put_barrier(umd);

	for (uint32_t i = 0; i < count && status == REPLAY_CLEAN; i++) {
		struct umd_slot *slot = &foreign->slots[i];
		bool full = false;

		/* The staging allocation is only read. */
		if (!slot->list_value)
			continue;
		do {
			struct vidmm_commands_operand range = operand(umd, slot, 0);

			result = command_writer_read_back(writer, &range, slot->size_bytes);
			full = result == VIDMM_COMMANDS_FULL && !full;
			if (full)
				status = next_buffer(umd);
		} while (full && status == REPLAY_CLEAN);
		if (status == REPLAY_CLEAN && result == VIDMM_COMMANDS_FULL)
			status = does_not_fit(umd);
		if (result == VIDMM_COMMANDS_NOT_SUPPORTED)
			break;
	}
	return command_writer_broken(writer)[0] ? foreign_broken(umd) : status;
}

static enum replay_status put_all(struct umd *umd, uint32_t count)
{
	struct umd_foreign *foreign = umd->foreign;
	enum replay_status status = begin_buffer(umd);
	uint32_t i;

	for (i = 0; i < foreign->op_count && status == REPLAY_CLEAN; i++)
		status = put_op(umd, &foreign->ops[i], i);
	if (status == REPLAY_CLEAN)
		status = put_read_backs(umd, count);
	if (status == REPLAY_CLEAN)
		status = end_buffer(umd);
	/* After a full buffer nothing may have followed. */
	if (status != REPLAY_CLEAN ||
	    (umd->batch.render_calls && !command_writer_buffer(umd->foreign->writer)->used))
		return status;
	return umd_batch_end(umd);
}

enum replay_status foreign_run(struct umd *umd, struct umd_context *context)
{
	struct umd_foreign *foreign = umd->foreign;
	uint32_t count;
	enum replay_status status = prepare(umd, &count);

	if (status == REPLAY_CLEAN)
		status = umd->model->prepare(umd, context, foreign->slots, count);
	if (status == REPLAY_CLEAN)
		status = umd_batch_begin(umd, context);
	if (status == REPLAY_CLEAN)
		status = put_all(umd, count);
	if (status == REPLAY_CLEAN)
		umd->model->submitted(umd, context, foreign->slots, count);
	return status;
}
