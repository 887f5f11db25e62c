/* SPDX-License-Identifier: MIT */
/*
 * STAMP: checks, block by block, that memory contains what was written there before, and reports
 * differences. Runs on engine threads. Appending to a report takes the report lock of the link's
 * lead, because two engines may share a report.
 */
#include "softgpu_private.h"

struct stamp_run {
	struct softgpu_engine *engine;
	const struct softgpu_hw_stamps *command;
	uint32_t fence;
};

/* The stamp of a block that was never written is all zero (version 0). */
struct softgpu_stamp softgpu_make_stamp(uint32_t buffer, uint32_t version, uint32_t block)
{
	struct softgpu_stamp stamp = {0};

	if (version) {
		stamp.buffer = buffer;
		stamp.version = version;
		stamp.block = block;
		stamp.check = softgpu_stamp_check(buffer, version, block);
	}
	return stamp;
}

static int append_locked(const struct softgpu_memory *memory, uint64_t address, uint64_t bytes,
			 const struct softgpu_report_record *record)
{
	struct softgpu_report head;
	uint64_t index, capacity = (bytes - sizeof(head)) / sizeof(*record);

	if (!softgpu_read(memory, address, &head, sizeof(head)))
		return 0;
	index = head.count++;
	/* head.capacity is user data and not trusted; `capacity` ends with the allocation. */
	if (index < head.capacity && index < capacity &&
	    !softgpu_write(memory, address + sizeof(head) + index * sizeof(*record), record,
			   sizeof(*record)))
		return 0;
	return softgpu_write(memory, address, &head.count, sizeof(head.count));
}

struct softgpu_report_record softgpu_make_record(const struct softgpu_stamps *stamps,
						 uint32_t block, const struct softgpu_stamp *found,
						 uint32_t fence)
{
	return (struct softgpu_report_record){
		.buffer = stamps->buffer,
		.block = block,
		.expected_version = stamps->expected_version,
		.found_version = found->version,
		.found_buffer = found->buffer,
		.found_block = found->block,
		.fence = fence,
	};
}

/* Reports a wrong block. Without a REPORT the packet faults. */
static NTSTATUS report(const struct stamp_run *run, uint32_t block,
		       const struct softgpu_stamp *found)
{
	struct softgpu_adapter *adapter = run->engine->adapter;
	const struct softgpu_hw_stamps *command = run->command;
	const struct softgpu_report_record record =
		softgpu_make_record(&command->user, block, found, run->fence);
	KIRQL irql;
	int ok;

	if (!command->report_bytes)
		return STATUS_DATA_ERROR;
	KeAcquireSpinLock(&adapter->link[0]->report_lock, &irql);
	ok = append_locked(&adapter->memory, command->report_address, command->report_bytes,
			   &record);
	KeReleaseSpinLock(&adapter->link[0]->report_lock, irql);
	return ok ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

static NTSTATUS check_block(const struct stamp_run *run, uint32_t index)
{
	const struct softgpu_stamps *stamps = &run->command->user;
	const struct softgpu_memory *memory = &run->engine->adapter->memory;
	uint64_t address = stamps->operand.address + (uint64_t)index * stamps->block_size;
	uint32_t block = stamps->first_block + index;
	struct softgpu_stamp found, stamp;
	NTSTATUS status = STATUS_SUCCESS;

	if (stamps->command.flags & SOFTGPU_FLAG_VERIFY) {
		stamp = softgpu_make_stamp(stamps->buffer, stamps->expected_version, block);
		if (!softgpu_read(memory, address, &found, sizeof(found)))
			return STATUS_ACCESS_VIOLATION;
		if (memcmp(&found, &stamp, sizeof(found)) != 0)
			status = report(run, block, &found);
	}
	if (NT_SUCCESS(status) && (stamps->command.flags & SOFTGPU_FLAG_WRITE)) {
		stamp = softgpu_make_stamp(stamps->buffer, stamps->new_version, block);
		if (!softgpu_write(memory, address, &stamp, sizeof(stamp)))
			return STATUS_ACCESS_VIOLATION;
	}
	return status;
}

NTSTATUS softgpu_execute_stamps(struct softgpu_engine *engine,
				const struct softgpu_hw_stamps *command, uint32_t fence)
{
	struct stamp_run run = {.engine = engine, .command = command, .fence = fence};
	uint32_t index;

	for (index = 0; index < command->user.block_count; index++) {
		NTSTATUS status = check_block(&run, index);

		if (!NT_SUCCESS(status))
			return status;
	}
	return STATUS_SUCCESS;
}
