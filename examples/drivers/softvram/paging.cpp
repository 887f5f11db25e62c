/* SPDX-License-Identifier: MIT */
/* DxgkDdiBuildPagingBuffer: each operation is one command, and never divided. */
#include "adapter.h"

/* The kernel address of the pages of an MDL, from one page on. */
static ULONGLONG AddressOf(PMDL Mdl, ULONG FirstPage)
{
	PVOID Pages = MmGetSystemAddressForMdlSafe(Mdl, NormalPagePriority);

	return Pages ? (ULONGLONG)(ULONG_PTR)Pages + ((ULONGLONG)FirstPage << PAGE_SHIFT) : 0;
}

/* Segment 0 is an MDL, to which TransferOffset does not apply. */
NTSTATUS SoftAdapter::Transfer(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command) const
{
	const auto &Move = Args->Transfer;

	if (!Move.Source.SegmentId && !Move.Destination.SegmentId)
		return STATUS_INVALID_PARAMETER;
	Command->Opcode = !Move.Source.SegmentId        ? GPU_COPY_IN
			  : !Move.Destination.SegmentId ? GPU_COPY_OUT
							: SVR_COPY;
	Command->Length = Move.TransferSize;
	Command->From = Move.Source.SegmentId
				? Move.Source.SegmentAddress.QuadPart + Move.TransferOffset
				: AddressOf(Move.Source.pMdl, Move.MdlOffset);
	Command->To = Move.Destination.SegmentId
			      ? Move.Destination.SegmentAddress.QuadPart + Move.TransferOffset
			      : AddressOf(Move.Destination.pMdl, Move.MdlOffset);
	if ((Command->Opcode == GPU_COPY_IN && !Command->From) ||
	    (Command->Opcode == GPU_COPY_OUT && !Command->To))
		return STATUS_NO_MEMORY;
	return STATUS_SUCCESS;
}

BOOLEAN SoftAdapter::IsInAperture(UINT Segment, SIZE_T First, SIZE_T Count) const
{
	return Segment == SEGMENT_APERTURE && First <= m_Gpu.AperturePages() &&
	       Count <= m_Gpu.AperturePages() - First;
}

NTSTATUS SoftAdapter::Map(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command) const
{
	const auto &Range = Args->MapApertureSegment;

	if (!IsInAperture(Range.SegmentId, Range.OffsetInPages, Range.NumberOfPages))
		return STATUS_INVALID_PARAMETER;
	Command->Opcode = GPU_MAP;
	Command->To = Range.OffsetInPages;
	Command->From = AddressOf(Range.pMdl, Range.MdlOffset);
	Command->Length = Range.NumberOfPages;
	return Command->From ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* There is one dummy page as long as the adapter runs. */
NTSTATUS SoftAdapter::MapDummyPage(PHYSICAL_ADDRESS Address)
{
	if (!m_DummyPage)
		m_DummyPage = MmMapIoSpace(Address, PAGE_SIZE, MmCached);
	return m_DummyPage ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

NTSTATUS SoftAdapter::Unmap(const DXGKARG_BUILDPAGINGBUFFER *Args, GpuCommand *Command)
{
	const auto &Range = Args->UnmapApertureSegment;

	if (!IsInAperture(Range.SegmentId, Range.OffsetInPages, Range.NumberOfPages))
		return STATUS_INVALID_PARAMETER;
	Command->Opcode = GPU_UNMAP;
	Command->To = Range.OffsetInPages;
	Command->Length = Range.NumberOfPages;
	NTSTATUS Status = MapDummyPage(Range.DummyPage);
	Command->From = (ULONGLONG)(ULONG_PTR)m_DummyPage;
	return Status;
}

static NTSTATUS Append(DXGKARG_BUILDPAGINGBUFFER *Args, const GpuCommand &Command)
{
	DmaPrivate *Private = (DmaPrivate *)Args->pDmaBufferPrivateData;

	if (Args->DmaSize < sizeof(Command) || Args->DmaBufferPrivateDataSize < sizeof(*Private))
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	Private->Commands = (PUCHAR)Args->pDmaBuffer;
	RtlCopyMemory(Args->pDmaBuffer, &Command, sizeof(Command));
	Args->pDmaBuffer = Private->Commands + sizeof(Command);
	Args->pDmaBufferPrivateData = Private + 1;
	return STATUS_SUCCESS;
}

NTSTATUS SoftAdapter::BuildPagingBuffer(DXGKARG_BUILDPAGINGBUFFER *Args)
{
	GpuCommand Command = {};
	NTSTATUS Status = STATUS_SUCCESS;

	switch (Args->Operation) {
	case DXGK_OPERATION_TRANSFER:
		if (!Args->Transfer.TransferSize)
			return STATUS_SUCCESS; /* a reset has lost the content */
		Status = Transfer(Args, &Command);
		break;
	case DXGK_OPERATION_FILL:
		Command.Opcode = SVR_FILL;
		Command.Pattern = Args->Fill.FillPattern;
		Command.To = Args->Fill.Destination.SegmentAddress.QuadPart;
		Command.Length = Args->Fill.FillSize;
		break;
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
		Status = Map(Args, &Command);
		break;
	case DXGK_OPERATION_UNMAP_APERTURE_SEGMENT:
		Status = Unmap(Args, &Command);
		break;
	case DXGK_OPERATION_DISCARD_CONTENT: /* the GPU keeps nothing about a content */
	case DXGK_OPERATION_READ_PHYSICAL:   /* and its memory is coherent */
	case DXGK_OPERATION_WRITE_PHYSICAL:
		return STATUS_SUCCESS;
	default:
		return STATUS_NOT_SUPPORTED;
	}
	return NT_SUCCESS(Status) ? Append(Args, Command) : Status;
}
