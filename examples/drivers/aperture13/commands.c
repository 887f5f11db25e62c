/* SPDX-License-Identifier: MIT */
/* The command adapter of aperture13 (vidmm/commands.h), compiled as any program of Linux is. */
#include <string.h>
#include <vidmm/commands.h>

#include "aperture13.h"

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	const A13_ALLOCATION wish = {.Size = a->size_bytes};

	(void)context;
	memcpy(a->private_data, &wish, sizeof(wish));
	a->private_bytes = sizeof(wish);
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result append(struct vidmm_commands_buffer *buffer,
					 const A13_COMMAND *command)
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
	const A13_COMMAND command = {.Opcode = A13_COPY,
				     .Destination = to->index,
				     .DestinationOffset = to->offset,
				     .Source = from->index,
				     .SourceOffset = from->offset,
				     .Length = length};

	(void)context;
	return append(buffer, &command);
}

static enum vidmm_commands_result fill(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to, uint64_t length,
				       uint32_t pattern)
{
	const A13_COMMAND command = {.Opcode = A13_FILL,
				     .Pattern = pattern,
				     .Destination = to->index,
				     .DestinationOffset = to->offset,
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
		.name = "aperture13",
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
