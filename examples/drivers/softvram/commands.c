/* SPDX-License-Identifier: MIT */
/* The command adapter of softvram (vidmm/commands.h), compiled as any program of Linux is. */
#include <string.h>
#include <vidmm/commands.h>

#include "softvram.h"

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	const struct SVR_ALLOCATION wish = {
		.Size = a->size_bytes,
		.Flags = a->flags & VIDMM_COMMANDS_STAGING ? SVR_SYSTEM_ONLY : 0,
		.Segment = a->segment};

	(void)context;
	memcpy(a->private_data, &wish, sizeof(wish));
	a->private_bytes = sizeof(wish);
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result append(struct vidmm_commands_buffer *buffer,
					 const struct SVR_COMMAND *command)
{
	if (buffer->capacity - buffer->used < sizeof(*command))
		return VIDMM_COMMANDS_FULL;
	memcpy(buffer->commands + buffer->used, command, sizeof(*command));
	buffer->used += sizeof(*command);
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result copy(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to,
				       const struct vidmm_commands_operand *from, uint64_t length)
{
	const struct SVR_COMMAND command = {.Opcode = SVR_COPY,
					    .To = to->index,
					    .ToOffset = to->offset,
					    .From = from->index,
					    .FromOffset = from->offset,
					    .Length = length};

	(void)context;
	return append(buffer, &command);
}

static enum vidmm_commands_result fill(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to, uint64_t length,
				       uint32_t pattern)
{
	const struct SVR_COMMAND command = {.Opcode = SVR_FILL,
					    .Pattern = pattern,
					    .To = to->index,
					    .ToOffset = to->offset,
					    .Length = length};

	(void)context;
	return append(buffer, &command);
}

/* The engine is coherent with the CPU. */
static enum vidmm_commands_result read_back(void *context, struct vidmm_commands_buffer *buffer,
					    const struct vidmm_commands_operand *range,
					    uint64_t length)
{
	(void)context, (void)buffer, (void)range, (void)length;
	return VIDMM_COMMANDS_OK;
}

/* The engine executes one command after the other. */
static enum vidmm_commands_result barrier(void *context, struct vidmm_commands_buffer *buffer,
					  uint32_t flags)
{
	(void)context, (void)buffer, (void)flags;
	return VIDMM_COMMANDS_OK;
}

const struct vidmm_commands *vidmm_commands_describe(const struct vidmm_commands_driver *driver)
{
	static const struct vidmm_commands commands = {
		.struct_size = sizeof(commands),
		.version = VIDMM_COMMANDS_VERSION,
		.name = "softvram",
		.submission = VIDMM_COMMANDS_RENDER,
		.copy_alignment = 4,
		.fill_alignment = 4,
		.allocation = allocation,
		.copy = copy,
		.fill = fill,
		.read_back = read_back,
		.barrier = barrier,
	};

	(void)driver;
	return &commands;
}
