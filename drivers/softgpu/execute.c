/* SPDX-License-Identifier: MIT */
/*
 * The command decoder of an engine. Runs on the engine's thread. It accesses only memory that
 * addresses decode to. A fault ends the packet at once; what was executed before stays done.
 */
#include "softgpu_private.h"

#include "atomic.h"

#define BUS_FAULT STATUS_ACCESS_VIOLATION

static NTSTATUS done(int ok)
{
	return ok ? STATUS_SUCCESS : BUS_FAULT;
}

static NTSTATUS go_on(int ok)
{
	return ok ? STATUS_SUCCESS : SOFTGPU_ABORTED;
}

static inline NTSTATUS reference(const struct softgpu_memory *memory, uint64_t address,
				 uint32_t flags)
{
	uint32_t word;

	if (!softgpu_read(memory, address, &word, sizeof(word)))
		return BUS_FAULT;
	if (flags & SOFTGPU_FLAG_WRITE)
		return done(softgpu_write(memory, address, &word, sizeof(word)));
	return STATUS_SUCCESS;
}

static NTSTATUS traffic(struct softgpu_engine *engine, const struct softgpu_traffic *command)
{
	const struct softgpu_memory *memory = &engine->adapter->memory;
	uint64_t address = command->operand.address, bytes = 1;
	NTSTATUS status = reference(memory, address, command->command.flags);

	if (NT_SUCCESS(status))
		softgpu_charge_traffic(engine, command,
				       softgpu_decode(memory, address, &bytes, SOFTGPU_READ));
	return status;
}

static NTSTATUS copy(const struct softgpu_memory *memory, const struct softgpu_copy *command)
{
	struct softgpu_side source = {.address = command->source.address};
	struct softgpu_side destination = {.address = command->destination.address};

	return done(softgpu_memory_copy(memory, destination, source, command->length));
}

/*
 * With CHECK, every slot must hold an address that decodes to memory. Without it, the table is not
 * read.
 */
static NTSTATUS relocations(const struct softgpu_memory *memory,
			    const struct softgpu_relocations *command)
{
	const uint64_t *slot = (const uint64_t *)(const void *)(command + 1);
	const uint64_t *end = slot + command->count;

	if (!(command->command.flags & SOFTGPU_FLAG_CHECK))
		return STATUS_SUCCESS;
	for (; slot < end; slot++) {
		uint64_t bytes = 1;

		if (!softgpu_decode(memory, *slot, &bytes, SOFTGPU_READ))
			return BUS_FAULT;
	}
	return STATUS_SUCCESS;
}

/* DxgkDdiRender checked that the word is aligned, so it is in one page. */
static volatile uint64_t *sync_word(const struct softgpu_memory *memory,
				    const struct softgpu_sync *command, enum softgpu_access access)
{
	uint64_t bytes = sizeof(uint64_t);

	return (volatile uint64_t *)(void *)softgpu_decode(memory, command->operand.address, &bytes,
							   access);
}

/*
 * The host address of the word is decoded again each time, because a window may be opened or closed
 * meanwhile.
 */
static NTSTATUS wait_value(struct softgpu_engine *engine, const struct softgpu_sync *command)
{
	uint64_t interval_ns = 0;

	for (;;) {
		const volatile uint64_t *word =
			sync_word(&engine->adapter->memory, command, SOFTGPU_READ);

		if (!word)
			return BUS_FAULT;
		if (softgpu_load(word) >= command->value)
			return STATUS_SUCCESS;
		if (!softgpu_engine_poll(engine, &interval_ns))
			return SOFTGPU_ABORTED;
	}
}

/* The commands before it have taken their time when the value is visible. */
static NTSTATUS signal_value(struct softgpu_engine *engine, const struct softgpu_sync *command)
{
	volatile uint64_t *word;

	if (!softgpu_engine_catch_up(engine))
		return SOFTGPU_ABORTED;
	word = sync_word(&engine->adapter->memory, command, SOFTGPU_WRITE);
	if (!word)
		return BUS_FAULT;
	softgpu_store(word, command->value);
	softgpu_engine_signalled(engine);
	return STATUS_SUCCESS;
}

static NTSTATUS flip(struct softgpu_engine *engine, const struct softgpu_hw_flip *command,
		     uint32_t source)
{
	const struct softgpu_picture picture = {command->width, command->height,
						command->pitch_bytes};

	softgpu_display_flip(&engine->adapter->display, source, command->address, &picture);
	return STATUS_SUCCESS;
}

static NTSTATUS execute_command(struct softgpu_engine *engine,
				const struct softgpu_command *command,
				const struct softgpu_packet *packet)
{
	const struct softgpu_memory *memory = &engine->adapter->memory;

	switch (command->opcode) {
	case SOFTGPU_NOP:
	case SOFTGPU_REPORT: /* the STAMP commands that use it contain the address */
		return STATUS_SUCCESS;
	case SOFTGPU_REFERENCE: {
		const struct softgpu_reference *named =
			(const struct softgpu_reference *)(const void *)command;

		return reference(memory, named->operand.address, command->flags);
	}
	case SOFTGPU_TRAFFIC:
		return traffic(engine, (const struct softgpu_traffic *)(const void *)command);
	case SOFTGPU_FILL: {
		const struct softgpu_fill *fill =
			(const struct softgpu_fill *)(const void *)command;

		return done(softgpu_memory_fill(memory, fill->operand.address, fill->length,
						fill->pattern));
	}
	case SOFTGPU_COPY:
		return copy(memory, (const struct softgpu_copy *)(const void *)command);
	case SOFTGPU_STAMP:
		return softgpu_execute_stamps(
			engine, (const struct softgpu_hw_stamps *)(const void *)command,
			packet->fence);
	case SOFTGPU_RELOCATIONS:
		return relocations(memory,
				   (const struct softgpu_relocations *)(const void *)command);
	case SOFTGPU_WAIT:
		return wait_value(engine, (const struct softgpu_sync *)(const void *)command);
	case SOFTGPU_SIGNAL:
		return signal_value(engine, (const struct softgpu_sync *)(const void *)command);
	case SOFTGPU_STALL:
		return go_on(softgpu_engine_stall(
			engine,
			((const struct softgpu_stall *)(const void *)command)->nanoseconds));
	case SOFTGPU_HANG:
		return go_on(softgpu_engine_hang(engine));
	case SOFTGPU_LOSE_INTERRUPT:
		engine->interrupts = 0;
		return STATUS_SUCCESS;
	case SOFTGPU_REPEAT_INTERRUPT:
		engine->interrupts = 2;
		return STATUS_SUCCESS;
	case SOFTGPU_HW_BLIT:
		return softgpu_execute_blit(engine,
					    (const struct softgpu_hw_blit *)(const void *)command);
	case SOFTGPU_HW_FLIP:
		return flip(engine, (const struct softgpu_hw_flip *)(const void *)command,
			    packet->source);
	default:
		return STATUS_ILLEGAL_INSTRUCTION;
	}
}

NTSTATUS softgpu_execute(struct softgpu_engine *engine, const struct softgpu_packet *packet)
{
	const char *at = packet->commands;
	uint32_t left = packet->length;

	while (left) {
		const struct softgpu_command *command =
			(const struct softgpu_command *)(const void *)at;
		NTSTATUS status;

		/*
		 * Only DxgkDdiRender and BuildPagingBuffer write these commands. A portion that was
		 * cut inside a command is illegal.
		 */
		if (left < sizeof(*command) || command->size_bytes < sizeof(*command) ||
		    command->size_bytes > left)
			return STATUS_ILLEGAL_INSTRUCTION;
		if (command->opcode < SOFTGPU_OPCODE_PRIVILEGED)
			status = execute_command(engine, command, packet);
		else
			status = packet->is_paging ? softgpu_execute_paging(engine, command)
						   : STATUS_PRIVILEGED_INSTRUCTION;
		if (!NT_SUCCESS(status))
			return status;
		softgpu_bus_yield(softgpu_bus_of(engine->adapter));
		at += command->size_bytes;
		left -= command->size_bytes;
	}
	return STATUS_SUCCESS;
}
