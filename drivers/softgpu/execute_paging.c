/* SPDX-License-Identifier: MIT */
/*
 * The privileged commands, which DxgkDdiBuildPagingBuffer writes. The aperture's page table and
 * those of GPU virtual addresses are changed only here, when the engine executes the command. Those
 * of the system's process are not (page_table.c). Runs on the paging node's thread.
 */
#include "softgpu_private.h"

static NTSTATUS done(int ok)
{
	return ok ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

static int is_in_video_memory(const struct softgpu_memory *memory, const struct softgpu_side *side)
{
	uint64_t bytes = 1;

	return !side->is_host &&
	       softgpu_is_video_memory(memory,
				       softgpu_decode(memory, side->address, &bytes, SOFTGPU_READ));
}

static NTSTATUS copy(struct softgpu_engine *engine, const struct softgpu_paging_copy *command)
{
	const struct softgpu_memory *memory = &engine->adapter->memory;

	softgpu_charge_bytes(engine, command->length,
			     is_in_video_memory(memory, &command->source) &&
				     is_in_video_memory(memory, &command->destination));
	if (command->tile_mode != SOFTGPU_LINEAR)
		return done(softgpu_memory_copy_tiled(memory, command));
	return done(softgpu_memory_copy(memory, command->destination, command->source,
					command->length));
}

static NTSTATUS fill(struct softgpu_engine *engine, const struct softgpu_paging_fill *command)
{
	const struct softgpu_memory *memory = &engine->adapter->memory;
	struct softgpu_side destination = {.address = command->address};

	softgpu_charge_bytes(engine, command->length, is_in_video_memory(memory, &destination));
	return done(
		softgpu_memory_fill(memory, command->address, command->length, command->pattern));
}

static NTSTATUS table(const struct softgpu_memory *memory,
		      const struct softgpu_paging_table *command)
{
	const uint64_t *entry = (const uint64_t *)(const void *)(command + 1);
	uint32_t i;

	for (i = 0; i < command->count; i++)
		if (!softgpu_table_write(memory, command->first + i * sizeof(*entry),
					 entry[command->is_repeated ? 0 : i]))
			return STATUS_ACCESS_VIOLATION;
	return STATUS_SUCCESS;
}

/* While the bus is held, no engine accesses memory, so none still uses an old translation. */
static NTSTATUS flush(struct softgpu_engine *engine, const struct softgpu_paging_flush *command)
{
	struct softgpu_adapter *adapter = engine->adapter;
	struct softgpu_bus *bus = softgpu_bus_of(adapter);
	uint32_t node;

	softgpu_bus_leave(bus);
	softgpu_bus_hold(bus);
	for (node = 0; node < SOFTGPU_NODES; node++)
		softgpu_mmu_flush(&adapter->engines[node].mmu, command->root, command->start,
				  command->end);
	softgpu_bus_release(bus);
	softgpu_bus_enter(bus);
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_execute_paging(struct softgpu_engine *engine,
				const struct softgpu_command *command)
{
	struct softgpu_memory *memory = &engine->adapter->memory;
	const struct softgpu_paging_map *map =
		(const struct softgpu_paging_map *)(const void *)command;

	softgpu_charge_operation(engine);
	switch (command->opcode) {
	case SOFTGPU_PAGING_NOP:
		return STATUS_SUCCESS;
	case SOFTGPU_PAGING_COPY:
		return copy(engine, (const struct softgpu_paging_copy *)(const void *)command);
	case SOFTGPU_PAGING_FILL:
		return fill(engine, (const struct softgpu_paging_fill *)(const void *)command);
	case SOFTGPU_PAGING_MAP:
		return done(softgpu_aperture_map(memory, map->first_page, map->page_count,
						 (uintptr_t)map->host));
	case SOFTGPU_PAGING_UNMAP:
		return done(softgpu_aperture_unmap(memory, map->first_page, map->page_count,
						   (uintptr_t)map->host));
	case SOFTGPU_PAGING_TABLE:
		return table(memory, (const struct softgpu_paging_table *)(const void *)command);
	case SOFTGPU_PAGING_FLUSH:
		return flush(engine, (const struct softgpu_paging_flush *)(const void *)command);
	case SOFTGPU_PAGING_VIRTUAL_COPY:
	case SOFTGPU_PAGING_VIRTUAL_FILL:
		return softgpu_execute_virtual_paging(
			engine, (const struct softgpu_paging_virtual *)(const void *)command);
	default:
		return STATUS_ILLEGAL_INSTRUCTION;
	}
}
