/* SPDX-License-Identifier: MIT */
/* Allocations, and the paging operations: without video memory only the GART changes. */
#include "driver.h"

NTSTATUS A13CreateAllocation(CONST HANDLE hAdapter, DXGKARG_CREATEALLOCATION *Args)
{
	UINT i;

	UNREFERENCED_PARAMETER(hAdapter);
	for (i = 0; i < Args->NumAllocations; i++) {
		DXGK_ALLOCATIONINFO *Info = &Args->pAllocationInfo[i];
		CONST A13_ALLOCATION *Wish = Info->pPrivateDriverData;
		ALLOCATION *Allocation = NULL;
		NTSTATUS Status = STATUS_INVALID_PARAMETER;

		if (Info->PrivateDriverDataSize == sizeof(*Wish) && Wish->Size &&
		    Wish->Size < 1ull << 31) {
			Allocation =
				ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*Allocation), A13_TAG);
			Status = STATUS_NO_MEMORY;
		}
		if (!Allocation) {
			while (i--)
				ExFreePoolWithTag(Args->pAllocationInfo[i].hAllocation, A13_TAG);
			return Status;
		}
		Allocation->Size = Wish->Size;
		Info->hAllocation = Allocation;
		Info->Size = (SIZE_T)Wish->Size;
		Info->Alignment = PAGE_SIZE;
		Info->PreferredSegment.SegmentId0 = APERTURE_SEGMENT;
		Info->SupportedReadSegmentSet = 1 << (APERTURE_SEGMENT - 1);
		Info->SupportedWriteSegmentSet = 1 << (APERTURE_SEGMENT - 1);
		Info->AllocationPriority = D3DDDI_ALLOCATIONPRIORITY_NORMAL;
		Info->Flags.CpuVisible = 1;
		Info->Flags.Cached = 1;
	}
	return STATUS_SUCCESS;
}

NTSTATUS A13DestroyAllocation(CONST HANDLE hAdapter, CONST DXGKARG_DESTROYALLOCATION *Args)
{
	UINT i;

	UNREFERENCED_PARAMETER(hAdapter);
	for (i = 0; i < Args->NumAllocations; i++)
		ExFreePoolWithTag(Args->pAllocationList[i], A13_TAG);
	return STATUS_SUCCESS;
}

/* An allocation has no state of one device, so its handle serves for all of them. */
NTSTATUS A13OpenAllocation(CONST HANDLE hDevice, CONST DXGKARG_OPENALLOCATION *Args)
{
	CONST DEVICE *Device = hDevice;
	UINT i;

	for (i = 0; i < Args->NumAllocations; i++) {
		DXGKARGCB_GETHANDLEDATA Data = {0};

		Data.hObject = Args->pOpenAllocation[i].hAllocation;
		Data.Type = DXGK_HANDLE_ALLOCATION;
		Args->pOpenAllocation[i].hDeviceSpecificAllocation =
			Device->Adapter->Dxgk.DxgkCbGetHandleData(&Data);
		if (!Args->pOpenAllocation[i].hDeviceSpecificAllocation)
			return STATUS_INVALID_PARAMETER;
	}
	return STATUS_SUCCESS;
}

NTSTATUS A13CloseAllocation(CONST HANDLE hDevice, CONST DXGKARG_CLOSEALLOCATION *Args)
{
	UNREFERENCED_PARAMETER(hDevice);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_SUCCESS;
}

NTSTATUS A13DescribeAllocation(CONST HANDLE hAdapter, DXGKARG_DESCRIBEALLOCATION *Args)
{
	UNREFERENCED_PARAMETER(hAdapter);
	UNREFERENCED_PARAMETER(Args);
	return STATUS_NOT_SUPPORTED; /* there are no primaries */
}

static BOOLEAN IsInGart(CONST ADAPTER *Adapter, UINT Segment, SIZE_T First, SIZE_T Count)
{
	return Segment == APERTURE_SEGMENT && First <= Adapter->GartPages &&
	       Count <= Adapter->GartPages - First;
}

/*
 * Writes the frames of as many pages as the buffer holds. MultipassOffset is the number of pages
 * that earlier buffers have.
 */
static NTSTATUS BuildMap(CONST ADAPTER *Adapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	CONST PFN_NUMBER *Frames = MmGetMdlPfnArray(Args->MapApertureSegment.pMdl) +
				   Args->MapApertureSegment.MdlOffset + Args->MultipassOffset;
	SIZE_T Left = Args->MapApertureSegment.NumberOfPages - Args->MultipassOffset, Count;
	GPU_COMMAND *Command = Args->pDmaBuffer;

	if (!IsInGart(Adapter, Args->MapApertureSegment.SegmentId,
		      Args->MapApertureSegment.OffsetInPages,
		      Args->MapApertureSegment.NumberOfPages))
		return STATUS_INVALID_PARAMETER;
	if (Args->DmaSize < sizeof(*Command) + sizeof(*Frames))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	Count = min(Left, (Args->DmaSize - sizeof(*Command)) / sizeof(*Frames));
	RtlZeroMemory(Command, sizeof(*Command));
	Command->Opcode = GPU_MAP;
	Command->Destination = Args->MapApertureSegment.OffsetInPages + Args->MultipassOffset;
	Command->Length = Count;
	RtlCopyMemory(Command + 1, Frames, Count * sizeof(*Frames));
	Args->pDmaBuffer = (PUCHAR)(Command + 1) + Count * sizeof(*Frames);
	Args->MultipassOffset += (UINT)Count;
	return Count == Left ? STATUS_SUCCESS : STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
}

/* The GPU may still read the range (a prefetch, for example): it gets the dummy page. */
static NTSTATUS BuildUnmap(CONST ADAPTER *Adapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	GPU_COMMAND *Command = Args->pDmaBuffer;

	if (!IsInGart(Adapter, Args->UnmapApertureSegment.SegmentId,
		      Args->UnmapApertureSegment.OffsetInPages,
		      Args->UnmapApertureSegment.NumberOfPages))
		return STATUS_INVALID_PARAMETER;
	if (Args->DmaSize < sizeof(*Command))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	RtlZeroMemory(Command, sizeof(*Command));
	Command->Opcode = GPU_UNMAP;
	Command->Destination = Args->UnmapApertureSegment.OffsetInPages;
	Command->Source = Args->UnmapApertureSegment.DummyPage.QuadPart >> PAGE_SHIFT;
	Command->Length = Args->UnmapApertureSegment.NumberOfPages;
	Args->pDmaBuffer = Command + 1;
	return STATUS_SUCCESS;
}

NTSTATUS A13BuildPagingBuffer(CONST HANDLE hAdapter, DXGKARG_BUILDPAGINGBUFFER *Args)
{
	switch (Args->Operation) {
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
		return BuildMap(hAdapter, Args);
	case DXGK_OPERATION_UNMAP_APERTURE_SEGMENT:
		return BuildUnmap(hAdapter, Args);
	case DXGK_OPERATION_READ_PHYSICAL:
	case DXGK_OPERATION_WRITE_PHYSICAL:
		return STATUS_SUCCESS; /* for coherency, and the engine is coherent */
	default:
		return STATUS_NOT_SUPPORTED; /* the others are about video memory */
	}
}
