/* SPDX-License-Identifier: MIT */
/*
 * The command adapter (vidmm/commands.h) of tinykmd.c, which has a single command:
 *
 *	vidmm replay --driver ./tinykmd.so --commands ./tinykmd_commands.so TRACE
 *	vidmm conform --driver ./tinykmd.so --commands ./tinykmd_commands.so
 */
#include <string.h>
#include <vidmm/commands.h>

#include "tiny.h"

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	const struct tiny_allocation request = {.bytes = a->size_bytes};

	(void)context;
	memcpy(a->private_data, &request, sizeof(request));
	a->private_bytes = sizeof(request);
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result copy(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to,
				       const struct vidmm_commands_operand *from, uint64_t length)
{
	(void)context, (void)buffer, (void)to, (void)from, (void)length;
	return VIDMM_COMMANDS_NOT_SUPPORTED;
}

/* The miniport makes one patch location for each command, in a list of the same capacity. */
static enum vidmm_commands_result fill(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to, uint64_t length,
				       uint32_t pattern)
{
	const struct tiny_fill command = {
		.allocation = to->index, .value = pattern, .offset = to->offset, .bytes = length};

	(void)context;
	if (buffer->capacity - buffer->used < sizeof(command) ||
	    buffer->used / sizeof(command) >= buffer->patch_capacity)
		return VIDMM_COMMANDS_FULL;
	memcpy(buffer->commands + buffer->used, &command, sizeof(command));
	buffer->used += sizeof(command);
	return VIDMM_COMMANDS_OK;
}

/* The CPU sees the video memory, and the engine executes one command after the other. */
static enum vidmm_commands_result read_back(void *context, struct vidmm_commands_buffer *buffer,
					    const struct vidmm_commands_operand *range,
					    uint64_t length)
{
	(void)context, (void)buffer, (void)range, (void)length;
	return VIDMM_COMMANDS_OK;
}

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
		.name = "tinykmd",
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
