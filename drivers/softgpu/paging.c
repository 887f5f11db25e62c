/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiBuildPagingBuffer: writes one privileged command for each operation of the memory manager.
 * An operation is a single command of fixed size, so it is never continued; only updates of page
 * tables are (page_table.c). If it does not fit, it goes into the next buffer as a whole and
 * MultipassOffset stays 0 (PAG-07). Calls are serialized; no GPU state is accessed.
 *
 * The DDI has no status for a lack of memory: any status that it does not document is fatal
 * (PAG-09). So nothing here allocates. The MDLs of the memory manager are mapped already.
 */
#include "softgpu_private.h"

#include "tile.h"

/* Appends a command and stores the buffer's address for SubmitCommand, which does not get it. */
NTSTATUS softgpu_paging_append(DXGKARG_BUILDPAGINGBUFFER *build, const void *command, uint32_t size)
{
	struct softgpu_dma_private *private_data = build->pDmaBufferPrivateData;
	uintptr_t at = (uintptr_t)build->pDmaBuffer;

	if (!private_data || build->DmaBufferPrivateDataSize < sizeof(*private_data))
		return STATUS_INVALID_PARAMETER;
	if (build->DmaSize < size)
		return STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER;
	memcpy(build->pDmaBuffer, command, size);
	build->pDmaBuffer = (char *)build->pDmaBuffer + size;
	if (private_data->next != at)
		private_data->kernel_address = at; /* the first operation in this buffer */
	private_data->next = at + size;
	return STATUS_SUCCESS;
}

static NTSTATUS append_nop(DXGKARG_BUILDPAGINGBUFFER *build)
{
	struct softgpu_command nop = {.opcode = SOFTGPU_PAGING_NOP, .size_bytes = sizeof(nop)};

	return softgpu_paging_append(build, &nop, sizeof(nop));
}

static int segment_range_is_valid(const struct softgpu_adapter *adapter, UINT segment,
				  uint64_t address, uint64_t length)
{
	uint64_t base = segment == SOFTGPU_SEGMENT_APERTURE ? SOFTGPU_APERTURE_BASE : 0;
	uint64_t size = segment == SOFTGPU_SEGMENT_APERTURE ? adapter->settings.aperture_bytes
							    : adapter->memory.vram_bytes;

	return segment >= SOFTGPU_SEGMENT_VRAM && segment <= SOFTGPU_SEGMENT_APERTURE &&
	       address >= base && address - base <= size && length <= size - (address - base);
}

/*
 * Returns whether a surface of another allocation still has a range there: its content has not
 * left, so no other content may be moved in (SWZ-13).
 */
static int has_foreign_window(const struct softgpu_adapter *adapter, HANDLE allocation,
			      UINT segment, uint64_t address, uint64_t length)
{
	const struct softgpu_window *window;

	if (segment != SOFTGPU_SEGMENT_VRAM || !adapter->memory.window_count)
		return 0;
	window = softgpu_window_at(&adapter->memory, address);
	return window && window->surface.first < address + length && window->owner != allocation;
}

/*
 * SegmentId 0 is the MDL from page MdlOffset on. TransferOffset applies to the segment side only
 * (PAG-04).
 */
static NTSTATUS resolve_side(const struct softgpu_adapter *adapter,
			     const DXGKARG_BUILDPAGINGBUFFER *build, const DXGK_TRANSFER_END *end,
			     struct softgpu_side *side)
{
	uint64_t skipped = (uint64_t)build->Transfer.MdlOffset << SOFTGPU_PAGE_SHIFT;
	char *pages;

	if (end->SegmentId) {
		side->address =
			(uint64_t)end->SegmentAddress.QuadPart + build->Transfer.TransferOffset;
		return segment_range_is_valid(adapter, end->SegmentId, side->address,
					      build->Transfer.TransferSize)
			       ? STATUS_SUCCESS
			       : STATUS_INVALID_PARAMETER;
	}
	if (!end->pMdl || skipped > MmGetMdlByteCount(end->pMdl) ||
	    build->Transfer.TransferSize > MmGetMdlByteCount(end->pMdl) - skipped)
		return STATUS_INVALID_PARAMETER;
	pages = MmGetSystemAddressForMdlSafe(end->pMdl, NormalPagePriority);
	if (!pages)
		return STATUS_INVALID_PARAMETER;
	side->address = (uintptr_t)pages + skipped;
	side->is_host = 1;
	return STATUS_SUCCESS;
}

/*
 * The transfer names a part of the linear form, which is spread over all rows of tiles that it
 * touches in the tiled form. The tiled side is a surface in a segment; its address is the beginning
 * of the surface.
 */
static NTSTATUS resolve_surface(const struct softgpu_adapter *adapter, const DXGK_TRANSFER_END *end,
				const struct softgpu_paging_copy *copy, struct softgpu_side *side)
{
	uint64_t row =
		softgpu_tile_row_bytes((enum softgpu_tile_mode)copy->tile_mode, copy->stride_bytes);
	uint64_t last = copy->surface_offset + copy->length;

	if (!end->SegmentId)
		return STATUS_INVALID_PARAMETER;
	side->address = (uint64_t)end->SegmentAddress.QuadPart;
	return segment_range_is_valid(adapter, end->SegmentId, side->address,
				      (last + row - 1) / row * row)
		       ? STATUS_SUCCESS
		       : STATUS_INVALID_PARAMETER;
}

static NTSTATUS transfer(const struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	const struct softgpu_driver_allocation *allocation = build->Transfer.hAllocation;
	const DXGK_TRANSFERFLAGS flags = build->Transfer.Flags;
	struct softgpu_paging_copy copy = {
		.command = {.opcode = SOFTGPU_PAGING_COPY, .size_bytes = sizeof(copy)},
		.length = build->Transfer.TransferSize,
	};
	NTSTATUS status;

	/* After a reset a size of 0 reports that the content is lost; nothing is moved (TDR-05). */
	if (!build->Transfer.TransferSize)
		return STATUS_SUCCESS;
	if (flags.Swizzle && flags.Unswizzle)
		return STATUS_INVALID_PARAMETER;
	status = resolve_side(adapter, build, &build->Transfer.Source, &copy.source);
	if (NT_SUCCESS(status))
		status = resolve_side(adapter, build, &build->Transfer.Destination,
				      &copy.destination);
	if (!NT_SUCCESS(status))
		return status;
	if (has_foreign_window(adapter, build->Transfer.hAllocation,
			       build->Transfer.Destination.SegmentId, copy.destination.address,
			       copy.length))
		return STATUS_INVALID_PARAMETER;
	/* Without these flags a surface is moved in the form that it has (SWZ-22). */
	if ((flags.Swizzle || flags.Unswizzle) && allocation &&
	    allocation->tile_mode != SOFTGPU_LINEAR) {
		copy.tile_mode = (uint16_t)allocation->tile_mode;
		copy.stride_bytes = allocation->stride_bytes;
		copy.destination_tiled = flags.Swizzle;
		copy.surface_offset = build->Transfer.TransferOffset;
		status = resolve_surface(adapter,
					 flags.Swizzle ? &build->Transfer.Destination
						       : &build->Transfer.Source,
					 &copy, flags.Swizzle ? &copy.destination : &copy.source);
		if (!NT_SUCCESS(status))
			return status;
	}
	return softgpu_paging_append(build, &copy, sizeof(copy));
}

/*
 * SWZ-25: a transfer between a surface and the pages behind its alternate address while it is
 * evicted. A range shows a surface as it is, so this is a plain transfer. Its structure has the
 * range where that of a transfer has MdlOffset.
 */
static NTSTATUS special_lock_transfer(const struct softgpu_adapter *adapter,
				      DXGKARG_BUILDPAGINGBUFFER *build)
{
	DXGKARG_BUILDPAGINGBUFFER plain = {0};
	NTSTATUS status;

	/* The structure of an older version ends before the members of 2.0. */
	memcpy(&plain, build, offsetof(DXGKARG_BUILDPAGINGBUFFER, DmaBufferGpuVirtualAddress));

	if (build->SpecialLockTransfer.SwizzlingRangeId >= adapter->settings.swizzling_ranges)
		return STATUS_INVALID_PARAMETER;
	plain.Transfer.MdlOffset = 0;
	status = transfer(adapter, &plain);
	build->pDmaBuffer = plain.pDmaBuffer;
	return status;
}

static NTSTATUS fill(const struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	struct softgpu_paging_fill command = {
		.command = {.opcode = SOFTGPU_PAGING_FILL, .size_bytes = sizeof(command)},
		.address = (uint64_t)build->Fill.Destination.SegmentAddress.QuadPart,
		.length = build->Fill.FillSize,
		.pattern = build->Fill.FillPattern,
	};

	if (!segment_range_is_valid(adapter, build->Fill.Destination.SegmentId, command.address,
				    command.length) ||
	    has_foreign_window(adapter, build->Fill.hAllocation, build->Fill.Destination.SegmentId,
			       command.address, command.length))
		return STATUS_INVALID_PARAMETER;
	return softgpu_paging_append(build, &command, sizeof(command));
}

static int aperture_range_is_valid(const struct softgpu_adapter *adapter, UINT segment,
				   SIZE_T first, SIZE_T count)
{
	uint64_t pages = adapter->memory.aperture_pages;

	return segment == SOFTGPU_SEGMENT_APERTURE && first <= pages && count <= pages - first;
}

static NTSTATUS map(const struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	PMDL mdl = build->MapApertureSegment.pMdl;
	uint64_t skipped = (uint64_t)build->MapApertureSegment.MdlOffset << SOFTGPU_PAGE_SHIFT;
	struct softgpu_paging_map command = {
		.command = {.opcode = SOFTGPU_PAGING_MAP, .size_bytes = sizeof(command)},
		.first_page = build->MapApertureSegment.OffsetInPages,
		.page_count = build->MapApertureSegment.NumberOfPages,
	};
	char *pages;

	if (!aperture_range_is_valid(adapter, build->MapApertureSegment.SegmentId,
				     build->MapApertureSegment.OffsetInPages,
				     build->MapApertureSegment.NumberOfPages) ||
	    !mdl || skipped > MmGetMdlByteCount(mdl) ||
	    command.page_count > (MmGetMdlByteCount(mdl) - skipped) >> SOFTGPU_PAGE_SHIFT)
		return STATUS_INVALID_PARAMETER;
	pages = MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority);
	if (!pages)
		return STATUS_INVALID_PARAMETER;
	command.host = (uintptr_t)pages + skipped;
	return softgpu_paging_append(build, &command, sizeof(command));
}

/*
 * The port uses one dummy page for the life of the adapter. Its mapping is kept, because unmapped
 * ranges refer to it. The MDL was allocated when the adapter started.
 */
static NTSTATUS map_dummy_page(struct softgpu_adapter *adapter, PHYSICAL_ADDRESS address)
{
	if (adapter->dummy && adapter->dummy_address.QuadPart == address.QuadPart)
		return STATUS_SUCCESS;
	if (adapter->dummy)
		return STATUS_INVALID_PARAMETER;
	MmGetMdlPfnArray(adapter->dummy_mdl)[0] =
		(PFN_NUMBER)((uint64_t)address.QuadPart >> SOFTGPU_PAGE_SHIFT);
	adapter->dummy = MmMapLockedPagesSpecifyCache(adapter->dummy_mdl, KernelMode, MmCached,
						      NULL, FALSE, NormalPagePriority);
	adapter->dummy_address = address;
	return adapter->dummy ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static NTSTATUS unmap(struct softgpu_adapter *adapter, DXGKARG_BUILDPAGINGBUFFER *build)
{
	struct softgpu_paging_map command = {
		.command = {.opcode = SOFTGPU_PAGING_UNMAP, .size_bytes = sizeof(command)},
		.first_page = build->UnmapApertureSegment.OffsetInPages,
		.page_count = build->UnmapApertureSegment.NumberOfPages,
	};
	NTSTATUS status;

	if (!aperture_range_is_valid(adapter, build->UnmapApertureSegment.SegmentId,
				     build->UnmapApertureSegment.OffsetInPages,
				     build->UnmapApertureSegment.NumberOfPages))
		return STATUS_INVALID_PARAMETER;
	status = map_dummy_page(adapter, build->UnmapApertureSegment.DummyPage);
	if (!NT_SUCCESS(status))
		return status;
	command.host = (uintptr_t)adapter->dummy;
	return softgpu_paging_append(build, &command, sizeof(command));
}

/*
 * An access for coherency (PAG-11). The engines are coherent with the CPU, so a NOP keeps only its
 * place in the queue.
 */
static NTSTATUS access_physical(const struct softgpu_adapter *adapter,
				DXGKARG_BUILDPAGINGBUFFER *build)
{
	if (!segment_range_is_valid(adapter, build->ReadPhysical.SegmentId,
				    (uint64_t)build->ReadPhysical.PhysicalAddress.QuadPart, 1))
		return STATUS_INVALID_PARAMETER;
	return append_nop(build);
}

NTSTATUS APIENTRY softgpu_build_paging_buffer(IN_CONST_HANDLE hAdapter,
					      IN_PDXGKARG_BUILDPAGINGBUFFER pBuildPagingBuffer)
{
	struct softgpu_adapter *adapter = hAdapter;

	switch (pBuildPagingBuffer->Operation) {
	case DXGK_OPERATION_TRANSFER:
		return transfer(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_FILL:
		return fill(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_DISCARD_CONTENT:
		return append_nop(pBuildPagingBuffer);
	case DXGK_OPERATION_READ_PHYSICAL:
	case DXGK_OPERATION_WRITE_PHYSICAL:
		return access_physical(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_MAP_APERTURE_SEGMENT:
		return map(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_UNMAP_APERTURE_SEGMENT:
		return unmap(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_SPECIAL_LOCK_TRANSFER:
		return special_lock_transfer(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_UPDATE_PAGE_TABLE:
		return softgpu_build_table(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_FLUSH_TLB:
		return softgpu_build_flush(adapter, pBuildPagingBuffer);
	case DXGK_OPERATION_VIRTUAL_TRANSFER:
	case DXGK_OPERATION_VIRTUAL_FILL:
		return softgpu_build_virtual(adapter, pBuildPagingBuffer);
	default:
		return STATUS_NOT_SUPPORTED;
	}
}
