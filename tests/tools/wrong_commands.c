/* SPDX-License-Identifier: MIT */
/*
 * A command adapter whose fills are wrong, for a miniport that must notice: another adapter, which
 * ADAPTER names, with the opcode of each fill changed (WRONG_OPCODE), or its address or offset
 * (WRONG_ADDRESS). In the example drivers the opcode is the first word of a command.
 */
#include <string.h>
#include <vidmm/commands.h>

static vidmm_commands_describe_fn describe_right;
#define vidmm_commands_describe describe_right
#include ADAPTER
#undef vidmm_commands_describe

#ifdef WRONG_ADDRESS
#define DISTANCE ((uint64_t)1 << 38)
#else
#define DISTANCE 0u
#endif

static struct vidmm_commands wrong;
static const struct vidmm_commands *right;

static enum vidmm_commands_result wrong_fill(void *context, struct vidmm_commands_buffer *buffer,
					     const struct vidmm_commands_operand *to,
					     uint64_t length, uint32_t pattern)
{
	struct vidmm_commands_operand moved = *to;
	uint32_t at = buffer->used;
	enum vidmm_commands_result result;

	moved.gpu_address += DISTANCE;
	moved.offset += DISTANCE;
	result = right->fill(context, buffer, &moved, length, pattern);
#ifdef WRONG_OPCODE
	if (result == VIDMM_COMMANDS_OK)
		memcpy(buffer->commands + at, &(uint32_t){WRONG_OPCODE}, sizeof(uint32_t));
#endif
	(void)at;
	return result;
}

const struct vidmm_commands *vidmm_commands_describe(const struct vidmm_commands_driver *driver)
{
	right = describe_right(driver);
	wrong = *right;
	wrong.fill = wrong_fill;
	return &wrong;
}
