/* SPDX-License-Identifier: MIT */
/* Implements command_adapter.h. */
#include <d3dkmddi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_adapter.h"

/* ---- the description ---- */

static bool is_printable(const char *name)
{
	size_t length = strlen(name), i;

	for (i = 0; i < length && name[i] >= ' ' && name[i] <= '~'; i++)
		;
	return length && length <= VIDMM_COMMANDS_NAME_MAX && i == length;
}

static const char *missing(const struct vidmm_commands *c)
{
	return !c->allocation  ? "allocation"
	       : !c->copy      ? "copy"
	       : !c->fill      ? "fill"
	       : !c->read_back ? "read_back"
	       : !c->barrier   ? "barrier"
			       : NULL;
}

static bool is_alignment(uint32_t alignment)
{
	return alignment && alignment <= VIDMM_COMMANDS_ALIGNMENT_MAX &&
	       !(alignment & (alignment - 1));
}

/* Returns false for a description of a version or a size that this program cannot read. */
static bool is_readable(const struct vidmm_commands *c, char *why, size_t size)
{
	if (!c)
		snprintf(why, size,
			 "Q-401: the command adapter does not know the driver: its "
			 "description is NULL");
	else if (c->version != VIDMM_COMMANDS_VERSION)
		snprintf(why, size, "Q-401: the command adapter is of version %u: expected %u",
			 c->version, VIDMM_COMMANDS_VERSION);
	else if (c->struct_size != sizeof(*c))
		snprintf(why, size,
			 "Q-401: the command adapter's description has struct_size %u: expected "
			 "%zu",
			 c->struct_size, sizeof(*c));
	else if (!c->name || !is_printable(c->name))
		snprintf(why, size,
			 "Q-401: the command adapter's name is not valid: expected 1 to %u "
			 "printable ASCII characters",
			 VIDMM_COMMANDS_NAME_MAX);
	else if (missing(c))
		snprintf(why, size, "Q-401: the function %s of the command adapter \"%s\" is NULL",
			 missing(c), c->name);
	else
		return true;
	return false;
}

/* A table of 2.x may belong to a miniport that reports a model of 1.x. */
bool command_adapter_is_wddm2(const struct vidmm_adapter_report *report)
{
	return report->interface_version >= DXGKDDI_INTERFACE_VERSION_WDDM2_0 &&
	       (!report->wddm_version || report->wddm_version >= DXGKDDI_WDDMv2);
}

static bool has_valid_values(const struct vidmm_commands *c,
			     const struct vidmm_adapter_report *report, char *why, size_t size)
{
	bool wddm2 = command_adapter_is_wddm2(report);

	if (c->submission != VIDMM_COMMANDS_RENDER &&
	    (c->submission != VIDMM_COMMANDS_VIRTUAL || !wddm2))
		snprintf(why, size,
			 "Q-401: the command adapter \"%s\" has submission %u: expected 1 "
			 "(RENDER)%s",
			 c->name, c->submission, wddm2 ? " or 2 (VIRTUAL)" : " with WDDM 1.x");
	else if (c->node >= report->node_count)
		snprintf(why, size,
			 "Q-401: the command adapter \"%s\" uses node %u, but the driver has %u",
			 c->name, c->node, report->node_count);
	else if (!is_alignment(c->copy_alignment) || !is_alignment(c->fill_alignment))
		snprintf(why, size,
			 "Q-401: the command adapter \"%s\" has alignments %u and %u: expected a "
			 "power of 2 up to %u",
			 c->name, c->copy_alignment, c->fill_alignment,
			 VIDMM_COMMANDS_ALIGNMENT_MAX);
	else if (c->context_data_bytes > VIDMM_COMMANDS_PRIVATE_MAX ||
		 (c->context_data_bytes && !c->context_data))
		snprintf(why, size,
			 "Q-401: the command adapter \"%s\" has %u bytes of context data%s: "
			 "expected up to %u",
			 c->name, c->context_data_bytes, c->context_data ? "" : " at NULL",
			 VIDMM_COMMANDS_PRIVATE_MAX);
	else if (c->longest_copy && c->longest_copy < c->copy_alignment)
		snprintf(why, size,
			 "Q-401: the command adapter \"%s\" copies at most %" PRIu64
			 " bytes: expected 0, or at least copy_alignment %u",
			 c->name, c->longest_copy, c->copy_alignment);
	else
		return true;
	return false;
}

const struct vidmm_commands *command_adapter_describe(vidmm_commands_describe_fn *describe,
						      const struct vidmm_adapter_report *report,
						      char *why, size_t size)
{
	const struct vidmm_commands_driver driver = {
		.struct_size = sizeof(driver),
		.interface_version = report->interface_version,
		.wddm_version = report->wddm_version,
		.memory_management_caps = report->memory_management_caps,
		.segment_count = report->segment_count,
		.node_count = report->node_count,
	};
	const struct vidmm_commands *commands = describe(&driver);

	if (is_readable(commands, why, size) && has_valid_values(commands, report, why, size))
		return commands;
	return NULL;
}

/* ---- guarded arrays ---- */

#define GUARD_BYTES 4096u
#define GUARD_VALUE 0xA5

/* An array with a guard behind it. */
struct guarded {
	uint8_t *bytes;
	size_t capacity; /* of the array that is in use */
	size_t space;    /* allocated, without the guard */
};

static bool guard(struct guarded *array, size_t capacity)
{
	if (!array->bytes || capacity > array->space) {
		uint8_t *bytes = realloc(array->bytes, capacity + GUARD_BYTES);

		if (!bytes)
			return false;
		array->bytes = bytes;
		array->space = capacity;
	}
	array->capacity = capacity;
	memset(array->bytes + capacity, GUARD_VALUE, GUARD_BYTES);
	return true;
}

static bool is_intact(const struct guarded *array)
{
	for (size_t i = 0; i < GUARD_BYTES; i++)
		if (array->bytes[array->capacity + i] != GUARD_VALUE)
			return false;
	return true;
}

/* ---- the writer ---- */

struct command_writer {
	const struct vidmm_commands *commands;
	struct vidmm_commands_buffer buffer;
	struct guarded bytes, patches, private_data, allocation_data, resource_data;
	char broken[240];
};

struct command_writer *command_writer_create(const struct vidmm_commands *commands)
{
	struct command_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return NULL;
	writer->commands = commands;
	if (guard(&writer->private_data, VIDMM_COMMANDS_PRIVATE_MAX) &&
	    guard(&writer->allocation_data, VIDMM_COMMANDS_PRIVATE_MAX) &&
	    guard(&writer->resource_data, VIDMM_COMMANDS_PRIVATE_MAX) && guard(&writer->bytes, 0) &&
	    guard(&writer->patches, 0))
		return writer;
	command_writer_destroy(writer);
	return NULL;
}

void command_writer_destroy(struct command_writer *writer)
{
	if (!writer)
		return;
	free(writer->bytes.bytes);
	free(writer->patches.bytes);
	free(writer->private_data.bytes);
	free(writer->allocation_data.bytes);
	free(writer->resource_data.bytes);
	free(writer);
}

bool command_writer_begin(struct command_writer *writer, uint32_t capacity, uint32_t patch_capacity,
			  uint64_t gpu_address, const void *cpu_address)
{
	uint32_t end = writer->commands->end_bytes;

	if (!guard(&writer->bytes, capacity) ||
	    !guard(&writer->patches, patch_capacity * sizeof(struct vidmm_commands_patch)))
		return false;
	writer->buffer = (struct vidmm_commands_buffer){
		.commands = writer->bytes.bytes,
		.capacity = capacity > end ? capacity - end : 0,
		.patches = (struct vidmm_commands_patch *)(void *)writer->patches.bytes,
		.patch_capacity = patch_capacity,
		.private_data = writer->private_data.bytes,
		.private_capacity = VIDMM_COMMANDS_PRIVATE_MAX,
		.gpu_address = gpu_address,
		.cpu_address = (uint64_t)(uintptr_t)cpu_address,
	};
	return true;
}

const struct vidmm_commands_buffer *command_writer_buffer(const struct command_writer *writer)
{
	return &writer->buffer;
}

const char *command_writer_broken(const struct command_writer *writer)
{
	return writer->broken;
}

static enum vidmm_commands_result broke(struct command_writer *writer, const char *rule,
					const char *function, const char *what, uint64_t value)
{
	snprintf(writer->broken, sizeof(writer->broken),
		 "%s: the function %s of the command adapter \"%s\" %s (%" PRIu64 ")", rule,
		 function, writer->commands->name, what, value);
	return VIDMM_COMMANDS_NOT_SUPPORTED;
}

/* what the adapter may change. */
static const char *find_overrun(const struct command_writer *writer,
				const struct vidmm_commands_buffer *before, uint64_t *value)
{
	const struct vidmm_commands_buffer *now = &writer->buffer;

	*value = now->used;
	if (now->used > now->capacity)
		return "used more than the capacity of the command buffer";
	if (now->used < before->used)
		return "lowered the length of the command buffer";
	*value = now->patch_count;
	if (now->patch_count > now->patch_capacity || now->patch_count < before->patch_count)
		return "left a wrong number of patch locations";
	*value = now->private_bytes;
	if (now->private_bytes > now->private_capacity)
		return "used more than the capacity of the private data";
	*value = now->capacity;
	if (!is_intact(&writer->bytes))
		return "wrote behind the end of the command buffer";
	if (!is_intact(&writer->patches))
		return "wrote behind the end of the patch locations";
	if (!is_intact(&writer->private_data))
		return "wrote behind the end of the private data";
	if (now->commands != before->commands || now->patches != before->patches ||
	    now->private_data != before->private_data || now->capacity != before->capacity ||
	    now->patch_capacity != before->patch_capacity ||
	    now->private_capacity != before->private_capacity ||
	    now->gpu_address != before->gpu_address || now->cpu_address != before->cpu_address)
		return "changed a pointer, an address or a capacity of the buffer";
	return NULL;
}

/* each new patch location is inside the command buffer and names an operand's entry. */
static const char *find_wrong_patch(const struct command_writer *writer, uint32_t first,
				    uint32_t index_a, uint32_t index_b, uint64_t *value)
{
	const struct vidmm_commands_buffer *buffer = &writer->buffer;

	for (uint32_t i = first; i < buffer->patch_count; i++) {
		const struct vidmm_commands_patch *patch = &buffer->patches[i];

		*value = patch->patch_offset;
		if (patch->patch_offset >= buffer->used)
			return "made a patch location outside the commands";
		*value = patch->allocation_index;
		if (patch->allocation_index != index_a && patch->allocation_index != index_b)
			return "made a patch location for an entry that is no operand";
		*value = patch->slot_id;
		if (patch->slot_id >> 24)
			return "made a patch location with a slot of more than 24 bits";
	}
	return NULL;
}

/* Checks a call that has returned RESULT. The buffer was BEFORE; the operands are A and B. */
static enum vidmm_commands_result check(struct command_writer *writer, const char *function,
					const struct vidmm_commands_buffer *before,
					enum vidmm_commands_result result, uint32_t a, uint32_t b)
{
	uint64_t value;
	const char *what = find_overrun(writer, before, &value);
	const char *rule = "Q-402";

	if (!what && (uint32_t)result > VIDMM_COMMANDS_NOT_SUPPORTED) {
		what = "returned no enum vidmm_commands_result";
		value = (uint64_t)result;
	}
	if (!what && result != VIDMM_COMMANDS_OK &&
	    (writer->buffer.used != before->used ||
	     writer->buffer.patch_count != before->patch_count ||
	     writer->buffer.private_bytes != before->private_bytes)) {
		what = "changed the buffer and did not return VIDMM_COMMANDS_OK";
		value = (uint64_t)result;
	}
	if (!what && result == VIDMM_COMMANDS_OK) {
		what = find_wrong_patch(writer, before->patch_count, a, b, &value);
		rule = "Q-403";
	}
	return what ? broke(writer, rule, function, what, value) : result;
}

enum vidmm_commands_result command_writer_copy(struct command_writer *writer,
					       const struct vidmm_commands_operand *to,
					       const struct vidmm_commands_operand *from,
					       uint64_t length)
{
	const struct vidmm_commands *c = writer->commands;
	const struct vidmm_commands_buffer before = writer->buffer;

	if (writer->broken[0])
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	return check(writer, "copy", &before,
		     c->copy(c->context, &writer->buffer, to, from, length), to->index,
		     from->index);
}

enum vidmm_commands_result command_writer_fill(struct command_writer *writer,
					       const struct vidmm_commands_operand *to,
					       uint64_t length, uint32_t pattern)
{
	const struct vidmm_commands *c = writer->commands;
	const struct vidmm_commands_buffer before = writer->buffer;

	if (writer->broken[0])
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	return check(writer, "fill", &before,
		     c->fill(c->context, &writer->buffer, to, length, pattern), to->index,
		     to->index);
}

enum vidmm_commands_result command_writer_read_back(struct command_writer *writer,
						    const struct vidmm_commands_operand *range,
						    uint64_t length)
{
	const struct vidmm_commands *c = writer->commands;
	const struct vidmm_commands_buffer before = writer->buffer;

	if (writer->broken[0])
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	return check(writer, "read_back", &before,
		     c->read_back(c->context, &writer->buffer, range, length), range->index,
		     range->index);
}

enum vidmm_commands_result command_writer_barrier(struct command_writer *writer, uint32_t flags)
{
	const struct vidmm_commands *c = writer->commands;
	struct vidmm_commands_buffer before;

	if (writer->broken[0])
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	if (flags & VIDMM_COMMANDS_END)
		writer->buffer.capacity = (uint32_t)writer->bytes.capacity;
	before = writer->buffer;
	return check(writer, "barrier", &before, c->barrier(c->context, &writer->buffer, flags),
		     UINT32_MAX, UINT32_MAX);
}

enum vidmm_commands_result command_writer_allocation(struct command_writer *writer,
						     struct vidmm_commands_allocation *allocation)
{
	const struct vidmm_commands *c = writer->commands;
	const struct vidmm_commands_allocation asked = *allocation;
	enum vidmm_commands_result result;

	if (writer->broken[0])
		return VIDMM_COMMANDS_NOT_SUPPORTED;
	memset(writer->allocation_data.bytes, 0, VIDMM_COMMANDS_PRIVATE_MAX);
	memset(writer->resource_data.bytes, 0, VIDMM_COMMANDS_PRIVATE_MAX);
	allocation->private_data = writer->allocation_data.bytes;
	allocation->resource_data = writer->resource_data.bytes;
	allocation->private_bytes = allocation->resource_bytes = 0;
	result = c->allocation(c->context, allocation);
	if (result != VIDMM_COMMANDS_OK && result != VIDMM_COMMANDS_NOT_SUPPORTED)
		return broke(writer, "Q-402", "allocation", "returned a wrong result",
			     (uint64_t)result);
	if (!is_intact(&writer->allocation_data) || !is_intact(&writer->resource_data) ||
	    allocation->private_bytes > VIDMM_COMMANDS_PRIVATE_MAX ||
	    allocation->resource_bytes > VIDMM_COMMANDS_PRIVATE_MAX)
		return broke(writer, "Q-402", "allocation",
			     "exceeded the capacity of the private data",
			     VIDMM_COMMANDS_PRIVATE_MAX);
	if (allocation->private_data != writer->allocation_data.bytes ||
	    allocation->resource_data != writer->resource_data.bytes ||
	    allocation->size_bytes != asked.size_bytes ||
	    (allocation->flags | VIDMM_COMMANDS_CPU_VISIBLE) !=
		    (asked.flags | VIDMM_COMMANDS_CPU_VISIBLE) ||
	    (asked.flags & VIDMM_COMMANDS_STAGING &&
	     !(allocation->flags & VIDMM_COMMANDS_CPU_VISIBLE)))
		return broke(writer, "Q-402", "allocation",
			     "changed more than the private data and CPU_VISIBLE",
			     allocation->flags);
	return result;
}
