/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiBuildPagingBuffer. Content moves by virtual addresses of the system's process, whose own
 * page tables are written by the CPU, at once: the GPU needs them to execute anything here.
 */
#include "driver.h"

/* The first command of an operation in this buffer. */
static NTSTATUS Begin(DXGKARG_BUILDPAGINGBUFFER *Args, SIZE_T Bytes)
{
	DMA_PRIVATE *Private = Args->pDmaBufferPrivateData;

	if (Args->DmaSize < Bytes || Args->DmaBufferPrivateDataSize < sizeof(*Private))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	Private->Commands = Args->pDmaBuffer;
	Args->pDmaBufferPrivateData = Private + 1;
	return STATUS_SUCCESS;
}

static NTSTATUS BuildMove(DXGKARG_BUILDPAGINGBUFFER *Args)
{
	GPU_COMMAND *Command = Args->pDmaBuffer;
	NTSTATUS Status;

	if (!Args->hSystemContext)
		return STATUS_INVALID_PARAMETER;
	Status = Begin(Args, sizeof(*Command));
	if (!NT_SUCCESS(Status))
		return Status;
	RtlZeroMemory(Command, sizeof(*Command));
	Command->Context = Args->hSystemContext;
	if (Args->Operation == DXGK_OPERATION_VIRTUAL_FILL) {
		Command->Opcode = GPU_FILL;
		Command->Pattern = Args->FillVirtual.FillPattern;
		Command->To = Args->FillVirtual.DestinationVirtualAddress;
		Command->Length = Args->FillVirtual.FillSizeInBytes;
	} else {
		Command->Opcode = GPU_COPY;
		Command->To = Args->TransferVirtual.DestinationVirtualAddress;
		Command->From = Args->TransferVirtual.SourceVirtualAddress;
		Command->Length = Args->TransferVirtual.TransferSizeInBytes;
	}
	Args->pDmaBuffer = Command + 1;
	return STATUS_SUCCESS;
}

static BOOLEAN IsTable(CONST ADAPTER *Adapter, CONST DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *Update)
{
	return Update->PageTableLevel < TABLE_LEVELS && Update->StartIndex < TABLE_ENTRIES &&
	       Update->NumPageTableEntries <= TABLE_ENTRIES - Update->StartIndex &&
	       !Update->Flags.Use64KBPages &&
	       (Update->UpdateMode == DXGK_PAGETABLEUPDATE_CPU_VIRTUAL ||
		(Update->PageTableAddress.GpuPhysical.SegmentId == SEGMENT_VRAM &&
		 Update->PageTableAddress.GpuPhysical.SegmentOffset <=
			 Adapter->VramBytes - PAGE_SIZE));
}

static NTSTATUS Encode(CONST ADAPTER *Adapter, CONST DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *Update,
		       UINT First, UINT Count, volatile ULONGLONG *Entries)
{
	UINT i;

	for (i = 0; i < Count; i++) {
		CONST DXGK_PTE *Pte =
			&Update->pPageTableEntries[Update->Flags.Repeat ? 0 : First + i];
		ULONGLONG Entry;

		if (!EncodePte(Adapter, Pte, Update->PageTableLevel, &Entry))
			return STATUS_INVALID_PARAMETER;
		Entries[i] = Entry;
	}
	return STATUS_SUCCESS;
}

/* As many entries as fit; MultipassOffset is the number of those in earlier buffers. */
static NTSTATUS BuildTable(CONST ADAPTER *Adapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	CONST DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *Update = &Args->UpdatePageTable;
	UINT Left = Update->NumPageTableEntries - Args->MultipassOffset, Count;
	GPU_COMMAND *Command = Args->pDmaBuffer;
	NTSTATUS Status;

	Status = Begin(Args, sizeof(*Command) + sizeof(ULONGLONG));
	if (!NT_SUCCESS(Status))
		return Status;
	Count = min(Left, (UINT)((Args->DmaSize - sizeof(*Command)) / sizeof(ULONGLONG)));
	RtlZeroMemory(Command, sizeof(*Command));
	Command->Opcode = GPU_WRITE_TABLE;
	Command->To = Update->PageTableAddress.GpuPhysical.SegmentOffset +
		      (Update->StartIndex + Args->MultipassOffset) * sizeof(ULONGLONG);
	Command->Length = Count;
	Status = Encode(Adapter, Update, Args->MultipassOffset, Count, (ULONGLONG *)(Command + 1));
	if (!NT_SUCCESS(Status))
		return Status;
	Args->pDmaBuffer = (ULONGLONG *)(Command + 1) + Count;
	Args->MultipassOffset += Count;
	return Count == Left ? STATUS_SUCCESS : STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
}

static NTSTATUS UpdateTable(CONST ADAPTER *Adapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	CONST DXGK_BUILDPAGINGBUFFER_UPDATEPAGETABLE *Update = &Args->UpdatePageTable;

	if (!IsTable(Adapter, Update))
		return STATUS_INVALID_PARAMETER;
	if (Update->UpdateMode != DXGK_PAGETABLEUPDATE_CPU_VIRTUAL)
		return BuildTable(Adapter, Args);
	return Encode(Adapter, Update, 0, Update->NumPageTableEntries,
		      (ULONGLONG *)Update->PageTableAddress.CpuVirtual + Update->StartIndex);
}

NTSTATUS G2BuildPagingBuffer(CONST HANDLE hAdapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	switch (Args->Operation) {
	case DXGK_OPERATION_VIRTUAL_TRANSFER:
	case DXGK_OPERATION_VIRTUAL_FILL:
		return BuildMove(Args);
	case DXGK_OPERATION_UPDATE_PAGE_TABLE:
		return UpdateTable(hAdapter, Args);
	case DXGK_OPERATION_FLUSH_TLB:
		return STATUS_SUCCESS; /* there is no TLB */
	default:
		return STATUS_NOT_SUPPORTED; /* operations of physical addresses */
	}
}
