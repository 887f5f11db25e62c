/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiBuildPagingBuffer, operations of GPU virtual addresses (Model wddm2). UPDATE_PAGE_TABLE
 * becomes a command with entries in the device's form. One that does not fit is continued in the
 * next paging buffer; MultipassOffset is the number of entries that were written (PAG-07). Tables
 * of the system's process are written at once, by the CPU (VA-11): the engine needs them to move
 * content by virtual address (PAG-26).
 */
#include "softgpu_private.h"

#include "atomic.h"

#define ENTRIES_AT_ONCE 256u

/* The device's form of an entry of one level. Returns 0 if the entry is not one for this device. */
static int encode(const struct softgpu_adapter *adapter, const DXGK_PTE *pte, UINT level,
		  uint64_t *entry)
{
	uint64_t address = pte->PageAddress << SOFTGPU_PAGE_SHIFT;

	*entry = 0;
	if (!pte->Valid)
		return 1;
	if (pte->PageAddress > SOFTGPU_PTE_ADDRESS >> SOFTGPU_PAGE_SHIFT || pte->LargePage ||
	    pte->PageTablePageSize != DXGK_PTE_PAGE_TABLE_PAGE_4KB ||
	    (level && (pte->Zero || pte->Segment != SOFTGPU_SEGMENT_VRAM)) ||
	    pte->Segment > SOFTGPU_SEGMENT_VRAM ||
	    (pte->Segment == SOFTGPU_SEGMENT_VRAM && !pte->Zero &&
	     address >= adapter->memory.vram_bytes))
		return 0;
	*entry = address | SOFTGPU_PTE_VALID;
	if (level)
		return 1;
	if (pte->Zero)
		*entry |= SOFTGPU_PTE_ZERO;
	else if (!pte->Segment)
		*entry |= SOFTGPU_PTE_SYSTEM;
	if (pte->ReadOnly)
		*entry |= SOFTGPU_PTE_READ_ONLY;
	return 1;
}

static int update_is_valid(const struct softgpu_adapter *adapter,
			   const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *update)
{
	uint64_t bytes =
		((uint64_t)update->StartIndex + update->NumPageTableEntries) * sizeof(uint64_t);
	uint64_t table = update->PageTableAddress.GpuPhysical.SegmentOffset;

	return update->UpdateMode == DXGK_PAGETABLEUPDATE_GPU_PHYSICAL &&
	       update->PageTableAddress.GpuPhysical.SegmentId == SOFTGPU_SEGMENT_VRAM &&
	       update->PageTableLevel < adapter->settings.page_table_levels &&
	       update->NumPageTableEntries && update->pPageTableEntries &&
	       !update->Flags.Use64KBPages && table % SOFTGPU_PAGE == 0 &&
	       table <= adapter->memory.vram_bytes && bytes <= adapter->memory.vram_bytes - table;
}

/* Appends one command with at most ENTRIES_AT_ONCE entries, from MultipassOffset on. */
static NTSTATUS append_entries(const struct softgpu_adapter *adapter,
			       DXGKARG_BUILDPAGINGBUFFER *build)
{
	const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *update = &build->UpdatePageTable;
	struct {
		struct softgpu_paging_table head;
		uint64_t entry[ENTRIES_AT_ONCE];
	} command;
	UINT done = build->MultipassOffset, count = update->NumPageTableEntries - done, stored, i;
	UINT room = build->DmaSize < sizeof(command.head)
			    ? 0
			    : (UINT)((build->DmaSize - sizeof(command.head)) / sizeof(uint64_t));

	if (!room)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	if (!update->Flags.Repeat && count > room)
		count = room;
	if (!update->Flags.Repeat && count > ENTRIES_AT_ONCE)
		count = ENTRIES_AT_ONCE;
	stored = update->Flags.Repeat ? 1 : count;
	for (i = 0; i < stored; i++)
		if (!encode(adapter,
			    &update->pPageTableEntries[update->Flags.Repeat ? 0 : done + i],
			    update->PageTableLevel, &command.entry[i]))
			return STATUS_INVALID_PARAMETER;
	command.head = (struct softgpu_paging_table){
		.command = {.opcode = SOFTGPU_PAGING_TABLE,
			    .size_bytes =
				    (uint32_t)(sizeof(command.head) + stored * sizeof(uint64_t))},
		.first = update->PageTableAddress.GpuPhysical.SegmentOffset +
			 ((uint64_t)update->StartIndex + done) * sizeof(uint64_t),
		.count = count,
		.is_repeated = update->Flags.Repeat,
	};
	build->MultipassOffset += count;
	return softgpu_paging_append(build, &command, command.head.command.size_bytes);
}

/* Writes a table of the system's process, which the engine does not use meanwhile. */
static NTSTATUS write_entries(const struct softgpu_adapter *adapter,
			      const DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *update)
{
	volatile uint64_t *table = update->PageTableAddress.CpuVirtual;
	uint64_t entry;
	UINT i;

	if (update->PageTableLevel >= adapter->settings.page_table_levels ||
	    !update->NumPageTableEntries || !update->pPageTableEntries || !table ||
	    update->Flags.Use64KBPages)
		return STATUS_INVALID_PARAMETER;
	for (i = 0; i < update->NumPageTableEntries; i++) {
		if (!encode(adapter, &update->pPageTableEntries[update->Flags.Repeat ? 0 : i],
			    update->PageTableLevel, &entry))
			return STATUS_INVALID_PARAMETER;
		softgpu_store(&table[update->StartIndex + i], entry);
	}
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_build_table(struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	NTSTATUS status = STATUS_SUCCESS;

	if (!softgpu_is_wddm2(&adapter->settings))
		return STATUS_NOT_SUPPORTED;
	if (build->UpdatePageTable.UpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL &&
	    !build->pDmaBuffer)
		return write_entries(adapter, &build->UpdatePageTable);
	if (!update_is_valid(adapter, &build->UpdatePageTable))
		return STATUS_INVALID_PARAMETER;
	while (NT_SUCCESS(status) &&
	       build->MultipassOffset < build->UpdatePageTable.NumPageTableEntries) {
		UINT before = build->DmaSize;
		char *at = build->pDmaBuffer;

		status = append_entries(adapter, build);
		/* DmaSize is that of the free space, for the next command of this call. */
		build->DmaSize = before - (UINT)((char *)build->pDmaBuffer - at);
	}
	return status;
}

NTSTATUS softgpu_build_flush(struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	const DXGK_BUILDPAGINGBUFFER_FLUSHTLB *flush = &build->FlushTlb;
	const struct softgpu_paging_flush command = {
		.command = {.opcode = SOFTGPU_PAGING_FLUSH, .size_bytes = sizeof(command)},
		.root = flush->RootPageTableAddress.SegmentOffset,
		.start = flush->StartVirtualAddress,
		.end = flush->EndVirtualAddress,
	};

	if (!softgpu_is_wddm2(&adapter->settings))
		return STATUS_NOT_SUPPORTED;
	if (flush->RootPageTableAddress.SegmentId != SOFTGPU_SEGMENT_VRAM ||
	    flush->EndVirtualAddress < flush->StartVirtualAddress)
		return STATUS_INVALID_PARAMETER;
	return softgpu_paging_append(build, &command, sizeof(command));
}

/* One command of fixed size, which is never continued. */
NTSTATUS softgpu_build_virtual(const struct softgpu_adapter *adapter,
			       DXGKARG_BUILDPAGINGBUFFER *build)
{
	const struct softgpu_context *system = build->hSystemContext;
	struct softgpu_paging_virtual command = {.command = {.size_bytes = sizeof(command)}};

	if (!softgpu_is_wddm2(&adapter->settings))
		return STATUS_NOT_SUPPORTED;
	if (!system || !system->space.entries)
		return STATUS_INVALID_PARAMETER;
	command.space = (uintptr_t)&system->space;
	if (build->Operation == DXGK_OPERATION_VIRTUAL_FILL) {
		command.command.opcode = SOFTGPU_PAGING_VIRTUAL_FILL;
		command.destination = build->FillVirtual.DestinationVirtualAddress;
		command.length = build->FillVirtual.FillSizeInBytes;
		command.pattern = build->FillVirtual.FillPattern;
	} else {
		command.command.opcode = SOFTGPU_PAGING_VIRTUAL_COPY;
		command.source = build->TransferVirtual.SourceVirtualAddress;
		command.destination = build->TransferVirtual.DestinationVirtualAddress;
		command.length = build->TransferVirtual.TransferSizeInBytes;
	}
	return softgpu_paging_append(build, &command, sizeof(command));
}
