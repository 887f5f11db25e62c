/* SPDX-License-Identifier: MIT */
/*
 * command_adapter: a command adapter (vidmm/commands.h): the check of its description, and a buffer
 * into which it writes commands. The buffer has a guard behind each of its arrays, and every call
 * is checked: an adapter that breaks a rule is found at the call that broke it.
 */
#ifndef VIDMM_TOOLS_COMMAND_ADAPTER_H
#define VIDMM_TOOLS_COMMAND_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <vidmm/commands.h>
#include <vidmm/vidmm.h>

/* Whether the miniport has the model of WDDM 2.x, and its commands may be at virtual addresses. */
bool command_adapter_is_wddm2(const struct vidmm_adapter_report *report);
/*
 * Has the adapter describe itself for the miniport that has reported REPORT. Returns NULL if the
 * description is not valid, and writes what is wrong, with the rule id, to WHY.
 */
const struct vidmm_commands *command_adapter_describe(vidmm_commands_describe_fn *describe,
						      const struct vidmm_adapter_report *report,
						      char *why, size_t size);

struct command_writer;

/* Returns NULL when out of memory. */
struct command_writer *command_writer_create(const struct vidmm_commands *commands);
void command_writer_destroy(struct command_writer *writer); /* NULL is allowed */
/*
 * Begins a buffer. end_bytes of the adapter are withheld from CAPACITY until the end. Returns false
 * when out of memory.
 */
bool command_writer_begin(struct command_writer *writer, uint32_t capacity, uint32_t patch_capacity,
			  uint64_t gpu_address, const void *cpu_address);
/* The buffer, for the caller that submits it. */
const struct vidmm_commands_buffer *command_writer_buffer(const struct command_writer *writer);
/*
 * What the adapter broke, with the rule id; "" if nothing. Then every further call returns
 * NOT_SUPPORTED.
 */
const char *command_writer_broken(const struct command_writer *writer);

/* Calls of the adapter. */
enum vidmm_commands_result command_writer_allocation(struct command_writer *writer,
						     struct vidmm_commands_allocation *allocation);
enum vidmm_commands_result command_writer_copy(struct command_writer *writer,
					       const struct vidmm_commands_operand *to,
					       const struct vidmm_commands_operand *from,
					       uint64_t length);
enum vidmm_commands_result command_writer_fill(struct command_writer *writer,
					       const struct vidmm_commands_operand *to,
					       uint64_t length, uint32_t pattern);
enum vidmm_commands_result command_writer_read_back(struct command_writer *writer,
						    const struct vidmm_commands_operand *range,
						    uint64_t length);
enum vidmm_commands_result command_writer_barrier(struct command_writer *writer, uint32_t flags);

#endif
