/* SPDX-License-Identifier: MIT */
/*
 * The command adapter (vidmm/commands.h) of softgpu, for both of its models. Without patching by
 * the client: softgpu makes the patch locations itself, one for each operand.
 */
#include <string.h>
#include <vidmm/commands.h>
#include <vidmm/softgpu.h>

#define FIRST_OF_WDDM2 0x5000u /* the first interface version of 2.0 */

static const struct vidmm_commands *in_use; /* with virtual addresses or with lists */
#ifdef WITH_LISTS
static int driver_is_wddm2;
#endif

static enum vidmm_commands_result allocation(void *context, struct vidmm_commands_allocation *a)
{
	struct softgpu_allocation wish = {
		.version = SOFTGPU_ALLOCATION_VERSION,
		.flags = SOFTGPU_ALLOCATION_CPU_VISIBLE,
		.size_bytes = a->size_bytes,
		.segment_set = a->segment ? 1u << (a->segment - 1) : 0,
	};

	(void)context;
	if (a->flags & VIDMM_COMMANDS_STAGING && in_use->submission == VIDMM_COMMANDS_VIRTUAL)
		wish.segment_set = 0x2; /* the aperture */
	else if (a->flags & VIDMM_COMMANDS_STAGING)
		wish.preferred_segment = a->segment;
#ifdef WITH_LISTS /* of WDDM 2.x, too, where allocations then need physical addresses */
	wish.flags |= driver_is_wddm2 ? SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY : 0;
#endif
#ifdef NOT_CPU_VISIBLE
	if (!(a->flags & VIDMM_COMMANDS_STAGING)) {
		a->flags &= ~VIDMM_COMMANDS_CPU_VISIBLE;
		wish.flags = 0;
	}
#endif
	memcpy(a->private_data, &wish, sizeof(wish));
	a->private_bytes = sizeof(wish);
	return VIDMM_COMMANDS_OK;
}

/* Each operand takes a patch location of the miniport, in a list of the client's capacity. */
static enum vidmm_commands_result append(struct vidmm_commands_buffer *buffer, const void *command,
					 size_t bytes)
{
	if (buffer->capacity - buffer->used < bytes)
		return VIDMM_COMMANDS_FULL;
	if (in_use->submission == VIDMM_COMMANDS_RENDER &&
	    buffer->used / sizeof(struct softgpu_fill) >= buffer->patch_capacity / 2)
		return VIDMM_COMMANDS_FULL;
	memcpy(buffer->commands + buffer->used, command, bytes);
	buffer->used += (uint32_t)bytes;
	return VIDMM_COMMANDS_OK;
}

static struct softgpu_operand operand(const struct vidmm_commands_operand *o)
{
	if (in_use->submission == VIDMM_COMMANDS_VIRTUAL)
		return (struct softgpu_operand){.address = o->gpu_address};
	return (struct softgpu_operand){.allocation = o->index, .offset = o->offset};
}

static enum vidmm_commands_result copy(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to,
				       const struct vidmm_commands_operand *from, uint64_t length)
{
	const struct softgpu_copy command = {
		.command = {.opcode = SOFTGPU_COPY, .size_bytes = sizeof(command)},
		.source = operand(from),
		.destination = operand(to),
		.length = length,
	};

	(void)context;
	return append(buffer, &command, sizeof(command));
}

static enum vidmm_commands_result fill(void *context, struct vidmm_commands_buffer *buffer,
				       const struct vidmm_commands_operand *to, uint64_t length,
				       uint32_t pattern)
{
	const struct softgpu_fill command = {
		.command = {.opcode = SOFTGPU_FILL, .size_bytes = sizeof(command)},
		.operand = operand(to),
		.length = length,
		.pattern = pattern,
	};

	(void)context;
	return append(buffer, &command, sizeof(command));
}

/* The CPU sees all memory, and an engine executes one command after the other. */
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

#define COMMANDS(how)                                                                            \
	{                                                                                        \
		.struct_size = sizeof(struct vidmm_commands), .version = VIDMM_COMMANDS_VERSION, \
		.name = "softgpu", .submission = how, .copy_alignment = 4, .fill_alignment = 4,  \
		.allocation = allocation, .copy = copy, .fill = fill, .read_back = read_back,    \
		.barrier = barrier,                                                              \
	}

const struct vidmm_commands *vidmm_commands_describe(const struct vidmm_commands_driver *driver)
{
	static const struct vidmm_commands lists = COMMANDS(VIDMM_COMMANDS_RENDER),
					   addresses = COMMANDS(VIDMM_COMMANDS_VIRTUAL);

#ifdef WITH_LISTS
	driver_is_wddm2 = driver->interface_version >= FIRST_OF_WDDM2;
	in_use = &lists;
	(void)addresses;
	return in_use;
#endif
	in_use = driver->interface_version >= FIRST_OF_WDDM2 ? &addresses : &lists;
	return in_use;
}
