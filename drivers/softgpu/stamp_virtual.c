/* SPDX-License-Identifier: MIT */
/*
 * STAMP and RELOCATIONS of contexts with GPU virtual addresses. The report is memory of the same
 * address space, so the client's own capacity bounds it. Appending takes the report lock of the
 * link's lead, because two engines may share a report.
 */
#include "execute_virtual.h"

#define SLOTS_AT_ONCE 64u /* slots of a table that are read together */

static NTSTATUS append_locked(struct softgpu_run *run, const struct softgpu_report_record *record)
{
	const uint64_t records = run->report + sizeof(struct softgpu_report);
	struct softgpu_report head;
	NTSTATUS status = softgpu_run_read(run, run->report, &head, sizeof(head));
	uint64_t index;

	if (!NT_SUCCESS(status))
		return status;
	index = head.count++;
	if (index < head.capacity)
		status = softgpu_run_write(run, records + index * sizeof(*record), record,
					   sizeof(*record));
	return NT_SUCCESS(status)
		       ? softgpu_run_write(run, run->report, &head.count, sizeof(head.count))
		       : status;
}

static NTSTATUS report(struct softgpu_run *run, const struct softgpu_stamps *stamps, uint32_t block,
		       const struct softgpu_stamp *found)
{
	struct softgpu_adapter *lead = run->engine->adapter->link[0];
	const struct softgpu_report_record record =
		softgpu_make_record(stamps, block, found, run->fence);
	NTSTATUS status;
	KIRQL irql;

	KeAcquireSpinLock(&lead->report_lock, &irql);
	status = append_locked(run, &record);
	KeReleaseSpinLock(&lead->report_lock, irql);
	return status;
}

static NTSTATUS check_block(struct softgpu_run *run, const struct softgpu_stamps *stamps,
			    uint32_t index)
{
	uint64_t address = stamps->operand.address + (uint64_t)index * stamps->block_size;
	uint32_t block = stamps->first_block + index;
	struct softgpu_stamp found, stamp;
	NTSTATUS status = STATUS_SUCCESS;

	if (stamps->command.flags & SOFTGPU_FLAG_VERIFY) {
		stamp = softgpu_make_stamp(stamps->buffer, stamps->expected_version, block);
		status = softgpu_run_read(run, address, &found, sizeof(found));
		if (NT_SUCCESS(status) && memcmp(&found, &stamp, sizeof(found)) != 0)
			status = report(run, stamps, block, &found);
	}
	if (NT_SUCCESS(status) && (stamps->command.flags & SOFTGPU_FLAG_WRITE)) {
		stamp = softgpu_make_stamp(stamps->buffer, stamps->new_version, block);
		status = softgpu_run_write(run, address, &stamp, sizeof(stamp));
	}
	return status;
}

NTSTATUS softgpu_run_stamps(struct softgpu_run *run, const struct softgpu_stamps *stamps)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t index;

	for (index = 0; index < stamps->block_count && NT_SUCCESS(status); index++) {
		status = check_block(run, stamps, index);
		if (!softgpu_run_worked(run, sizeof(struct softgpu_stamp)))
			status = SOFTGPU_ABORTED;
	}
	return status;
}

/* With CHECK, each slot must hold an address with memory. Without it, the table is not read. */
NTSTATUS softgpu_run_relocations(struct softgpu_run *run, uint64_t address,
				 const struct softgpu_relocations *command)
{
	uint64_t slots[SLOTS_AT_ONCE];
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t done = 0, count, i;
	char byte;

	if (!(command->command.flags & SOFTGPU_FLAG_CHECK))
		return STATUS_SUCCESS;
	address += sizeof(*command);
	while (done < command->count && NT_SUCCESS(status)) {
		count = command->count - done < SLOTS_AT_ONCE ? command->count - done
							      : SLOTS_AT_ONCE;
		status = softgpu_run_read(run, address + (uint64_t)done * sizeof(slots[0]), slots,
					  count * sizeof(slots[0]));
		for (i = 0; i < count && NT_SUCCESS(status); i++)
			status = softgpu_run_read(run, slots[i], &byte, sizeof(byte));
		if (!softgpu_run_worked(run, count * sizeof(slots[0])))
			status = SOFTGPU_ABORTED;
		done += count;
	}
	return status;
}
