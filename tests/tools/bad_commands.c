/* SPDX-License-Identifier: MIT */
/*
 * Command adapters of tinykmd.c that break a rule. A macro says which: each is one shared object
 * (meson.build).
 */
#include <string.h>
#include <vidmm/commands.h>

#include "../../examples/tiny.h"

#ifndef VERSION
#define VERSION VIDMM_COMMANDS_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(struct vidmm_commands)
#endif
#ifndef NAME
#define NAME "bad"
#endif
#ifndef SUBMISSION
#define SUBMISSION VIDMM_COMMANDS_RENDER
#endif
#ifndef NODE
#define NODE 0
#endif
#ifndef ALIGNMENT
#define ALIGNMENT 4
#endif
#ifndef CONTEXT_BYTES
#define CONTEXT_BYTES 0
#endif
#ifndef FILL
#define FILL fill
#endif

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	const struct tiny_allocation request = {.bytes = a->size_bytes};

	(void)context;
	memcpy(a->private_data, &request, sizeof(request));
	a->private_bytes = sizeof(request);
#ifdef LONG_PRIVATE_DATA
	a->private_bytes = VIDMM_COMMANDS_PRIVATE_MAX + 1;
#elif defined(WRITE_BEHIND_PRIVATE_DATA)
	a->private_data[VIDMM_COMMANDS_PRIVATE_MAX] = 1;
#elif defined(OTHER_SIZE)
	a->size_bytes *= 2;
#elif defined(HIDDEN)
	a->flags &= ~VIDMM_COMMANDS_CPU_VISIBLE;
#endif
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result copy(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to,
				       const struct vidmm_commands_operand *from, uint64_t length)
{
	(void)context, (void)buffer, (void)to, (void)from, (void)length;
	return VIDMM_COMMANDS_NOT_SUPPORTED;
}

static void spoil(struct vidmm_commands_buffer *buffer, const struct vidmm_commands_operand *to)
{
	(void)buffer, (void)to;
#ifdef WRITE_BEHIND
	buffer->commands[buffer->capacity] = 1;
#elif defined(USE_MORE)
	buffer->used = buffer->capacity + 8;
#elif defined(USE_LESS)
	buffer->used -= sizeof(struct tiny_fill) + 1;
#elif defined(WRITE_BEHIND_PATCHES)
	memset(&buffer->patches[buffer->patch_capacity], 1, sizeof(buffer->patches[0]));
#elif defined(CHANGE_CAPACITY)
	buffer->capacity *= 2;
#elif defined(CHANGE_ADDRESS)
	buffer->cpu_address += 8;
#elif defined(PATCH_OUTSIDE)
	buffer->patches[buffer->patch_count++] = (struct vidmm_commands_patch){
		.allocation_index = to->index, .patch_offset = buffer->used};
#elif defined(PATCH_INDEX)
	buffer->patches[buffer->patch_count++] =
		(struct vidmm_commands_patch){.allocation_index = to->index + 1};
#elif defined(PATCH_SLOT)
	buffer->patches[buffer->patch_count++] =
		(struct vidmm_commands_patch){.allocation_index = to->index, .slot_id = 1u << 24};
#endif
}

/* One adapter has none. */
__attribute__((unused)) static enum vidmm_commands_result fill(
	void *context, struct vidmm_commands_buffer *buffer,
	const struct vidmm_commands_operand *to, uint64_t length, uint32_t pattern)
{
	const struct tiny_fill command = {
		.allocation = to->index, .value = pattern, .offset = to->offset, .bytes = length};

	(void)context;
#ifdef PRIVATE_FULL
	buffer->private_bytes = 8;
	return VIDMM_COMMANDS_FULL;
#elif defined(ALWAYS_FULL)
	return VIDMM_COMMANDS_FULL;
#elif defined(REFUSE_LATER)
	static int calls;
	if (calls++)
		return VIDMM_COMMANDS_NOT_SUPPORTED;
#endif
	if (buffer->capacity - buffer->used < sizeof(command) ||
	    buffer->used / sizeof(command) >= buffer->patch_capacity)
		return VIDMM_COMMANDS_FULL;
	memcpy(buffer->commands + buffer->used, &command, sizeof(command));
	buffer->used += sizeof(command);
	spoil(buffer, to);
#ifdef RESULT
	return (enum vidmm_commands_result)RESULT;
#endif
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result nothing(void *context, struct vidmm_commands_buffer *buffer,
					  const struct vidmm_commands_operand *range,
					  uint64_t length)
{
	(void)context, (void)buffer, (void)range, (void)length;
#ifdef FULL_BARRIER /* which must have begun another buffer */
	if (buffer->used)
		return (enum vidmm_commands_result)9;
#endif
	return VIDMM_COMMANDS_OK;
}

static enum vidmm_commands_result barrier(void *context, struct vidmm_commands_buffer *buffer,
					  uint32_t flags)
{
	(void)context, (void)buffer, (void)flags;
#ifdef NO_END
	return flags & VIDMM_COMMANDS_END ? VIDMM_COMMANDS_FULL : VIDMM_COMMANDS_OK;
#elif defined(FULL_BARRIER)
	return !(flags & VIDMM_COMMANDS_END) && buffer->used ? VIDMM_COMMANDS_FULL
							     : VIDMM_COMMANDS_OK;
#else
	return VIDMM_COMMANDS_OK;
#endif
}

#ifndef DESCRIBE
#define DESCRIBE vidmm_commands_describe
#endif
VIDMM_COMMANDS_EXPORT vidmm_commands_describe_fn DESCRIBE;

const struct vidmm_commands *DESCRIBE(const struct vidmm_commands_driver *driver)
{
	static const uint32_t data;
	static struct vidmm_commands commands = {
		.struct_size = SIZE,
		.version = VERSION,
		.name = NAME,
		.submission = SUBMISSION,
		.node = NODE,
		.copy_alignment = ALIGNMENT,
		.fill_alignment = 4,
		.context_data = &data,
		.context_data_bytes = CONTEXT_BYTES,
		.copy = copy,
		.read_back = nothing,
		.barrier = barrier,
	};

	commands.allocation = allocation;
	commands.fill = FILL;
#ifdef COARSE
	commands.fill_alignment = 16;
#endif
	return driver->interface_version && driver->struct_size == sizeof(*driver) ? &commands
										   : NULL;
}
