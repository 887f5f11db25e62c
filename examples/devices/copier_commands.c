/* SPDX-License-Identifier: MIT */
/*
 * The command adapter (vidmm/commands.h) of copier_kmd.c:
 *
 *	vidmm conform --device copier.so --driver copier_kmd.so --commands copier_commands.so
 */
#include <string.h>
#include <vidmm/commands.h>

#include "copier.h"

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	const struct copier_allocation request = {.bytes = a->size_bytes};

	(void)context;
	memcpy(a->private_data, &request, sizeof(request));
	a->private_bytes = sizeof(request);
	return VIDMM_COMMANDS_OK;
}

/*
 * The miniport makes up to two patch locations for each command, in a list of the same capacity.
 * Offsets have 32 bits.
 */
static enum vidmm_commands_result append(struct vidmm_commands_buffer *buffer,
					 const struct copier_request *request)
{
	if (buffer->capacity - buffer->used < sizeof(*request) ||
	    buffer->used / sizeof(*request) >= buffer->patch_capacity / 2)
		return VIDMM_COMMANDS_FULL;
	memcpy(buffer->commands + buffer->used, request, sizeof(*request));
	buffer->used += sizeof(*request);
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result copy(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to,
				       const struct vidmm_commands_operand *from, uint64_t length)
{
	const struct copier_request request = {.op = COPIER_COPY,
					       .destination = to->index,
					       .source = from->index,
					       .bytes = length,
					       .destination_offset = (uint32_t)to->offset,
					       .source_offset = (uint32_t)from->offset};

	(void)context;
	if (to->offset > UINT32_MAX || from->offset > UINT32_MAX)
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	return append(buffer, &request);
}

static enum vidmm_commands_result fill(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to, uint64_t length,
				       uint32_t pattern)
{
	const struct copier_request request = {.op = COPIER_FILL,
					       .value = pattern,
					       .destination = to->index,
					       .bytes = length,
					       .destination_offset = (uint32_t)to->offset};

	(void)context;
	if (to->offset > UINT32_MAX)
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	return append(buffer, &request);
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
		.name = "copier",
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
