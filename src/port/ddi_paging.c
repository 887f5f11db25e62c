/* SPDX-License-Identifier: MIT */
/*
 * DDIs of the scheduler class for paging: BuildPagingBuffer, swizzling ranges, CPU host apertures.
 * The caller's paging lock serializes them. PASSIVE_LEVEL; the paging lock is the one that the DDI
 * documents for these calls.
 */
#include "port/port_internal.h"

static bool inside(const void *start, const void *now, uint64_t room_bytes)
{
	return (uintptr_t)now - (uintptr_t)start <= room_bytes;
}

/* A miniport with GPU virtual addresses executes content operations by such addresses. (PAG-26) */
static void report_failure(struct vmm_port *port, DXGK_BUILDPAGINGBUFFER_OPERATION operation,
			   NTSTATUS status)
{
	bool fill = operation == DXGK_OPERATION_VIRTUAL_FILL;

	if (status == STATUS_NOT_SUPPORTED &&
	    (fill || operation == DXGK_OPERATION_VIRTUAL_TRANSFER))
		vmm_finding(port->observe, "PAG-26", 0, 0,
			    "DxgkDdiBuildPagingBuffer returned 0x%08x for %s: with "
			    "GpuMmuSupported the miniport must execute transfers and fills by GPU "
			    "virtual address",
			    (unsigned)status, fill ? "VIRTUAL_FILL" : "VIRTUAL_TRANSFER");
	else
		vmm_port_wrong_status(port, "PAG-09", VIDMM_DDI_BUILD_PAGING_BUFFER, status);
}

VMM_COLD static void verify_built(struct vmm_port *port, const void *start, uint32_t room,
				  const void *private_start, uint32_t private_room)
{
	const struct vmm_port_limits limits = {
		"DxgkDdiBuildPagingBuffer", VIDMM_DDI_BUILD_PAGING_BUFFER, room, private_room, 0};
	const struct vmm_port_outputs buffers = {start, private_start, NULL};

	vmm_port_verify_outputs(port, &limits, &buffers);
}

NTSTATUS vmm_port_build_paging_buffer(struct vmm_port *port, DXGKARG_BUILDPAGINGBUFFER *args)
{
	const void *start = args->pDmaBuffer, *private_start = args->pDmaBufferPrivateData;
	uint32_t room = args->DmaSize, private_room = args->DmaBufferPrivateDataSize;
	DXGK_BUILDPAGINGBUFFER_OPERATION operation = args->Operation;
	struct vmm_port_call call;
	NTSTATUS status;
	uint64_t used;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_BUILD_PAGING_BUFFER))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiBuildPagingBuffer(port->adapter, args);
	if (vmm_unlikely(port->verify))
		verify_built(port, start, room, private_start, private_room);
	used = (uintptr_t)args->pDmaBuffer - (uintptr_t)start;
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_BUILD_PAGING_BUFFER, status, operation,
				    used, args->MultipassOffset);
	if (status != STATUS_SUCCESS && status != STATUS_GRAPHICS_INSUFFICIENT_DMA_BUFFER &&
	    status != STATUS_GRAPHICS_ALLOCATION_BUSY) {
		report_failure(port, operation, status);
		vmm_port_fatal(port, VMM_PORT_FATAL_VIDMM, VMM_PORT_VIDMM_PAGING_STATUS, operation,
			       (uint32_t)status);
		return STATUS_DEVICE_REMOVED;
	}
	if (!inside(start, args->pDmaBuffer, room) ||
	    !inside(private_start, args->pDmaBufferPrivateData, private_room)) {
		vmm_finding(
			port->observe, "DMA-28", 0, 0,
			"DxgkDdiBuildPagingBuffer moved pDmaBuffer by %lld of %u bytes, private "
			"data by %lld of %u",
			(long long)used, room,
			(long long)((uintptr_t)args->pDmaBufferPrivateData -
				    (uintptr_t)private_start),
			private_room);
		vmm_port_overflow(port, VIDMM_DDI_BUILD_PAGING_BUFFER, used, room,
				  (uintptr_t)args->pDmaBufferPrivateData - (uintptr_t)private_start,
				  private_room);
		return STATUS_DEVICE_REMOVED;
	}
	return status;
}

NTSTATUS vmm_port_release_swizzling_range(struct vmm_port *port,
					  const DXGKARG_RELEASESWIZZLINGRANGE *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_RELEASE_SWIZZLING_RANGE))
		return STATUS_DEVICE_REMOVED;
	vmm_assert(args->RangeId < port->caps.swizzling_range_count);
	status = port->ddi.DxgkDdiReleaseSwizzlingRange(port->adapter, args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_RELEASE_SWIZZLING_RANGE, status,
				    args->RangeId, args->PrivateDriverData, 0);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "SWZ-13", VIDMM_DDI_RELEASE_SWIZZLING_RANGE, status);
	return status;
}

/*
 * SWZ-03: the miniport changed the size or address of the range. The range is released and counts
 * as unsupported.
 */
static NTSTATUS refuse_changed(struct vmm_port *port, DXGKARG_ACQUIRESWIZZLINGRANGE *args,
			       const DXGKARG_ACQUIRESWIZZLINGRANGE *asked)
{
	DXGKARG_RELEASESWIZZLINGRANGE release = {asked->hAllocation, asked->PrivateDriverData,
						 asked->RangeId};

	vmm_finding(port->observe, "SWZ-03", 0, 0,
		    "DxgkDdiAcquireSwizzlingRange changed RangeSize from %llu to %llu, "
		    "CPUTranslatedAddress from 0x%llx to 0x%llx",
		    (unsigned long long)asked->RangeSize, (unsigned long long)args->RangeSize,
		    (unsigned long long)asked->CPUTranslatedAddress.QuadPart,
		    (unsigned long long)args->CPUTranslatedAddress.QuadPart);
	*args = *asked;
	vmm_port_release_swizzling_range(port, &release);
	return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

NTSTATUS vmm_port_acquire_swizzling_range(struct vmm_port *port,
					  DXGKARG_ACQUIRESWIZZLINGRANGE *args, bool may_change)
{
	const DXGKARG_ACQUIRESWIZZLINGRANGE asked = *args;
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE))
		return STATUS_DEVICE_REMOVED;
	vmm_assert(args->RangeId < port->caps.swizzling_range_count); /* SWZ-02 */
	vmm_assert(args->SegmentId && args->SegmentId <= port->caps.segment_count);
	status = port->ddi.DxgkDdiAcquireSwizzlingRange(port->adapter, args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, status,
				    asked.RangeId, asked.PrivateDriverData, asked.RangeSize);
	if (status == STATUS_SUCCESS && !may_change &&
	    (args->RangeSize != asked.RangeSize ||
	     args->CPUTranslatedAddress.QuadPart != asked.CPUTranslatedAddress.QuadPart))
		return refuse_changed(port, args, &asked);
	if (status == STATUS_SUCCESS ||
	    status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE ||
	    status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED)
		return status;
	vmm_port_wrong_status(port, "SWZ-08", VIDMM_DDI_ACQUIRE_SWIZZLING_RANGE, status);
	return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

NTSTATUS vmm_port_map_host_aperture(struct vmm_port *port, const DXGKARG_MAPCPUHOSTAPERTURE *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_MAP_CPU_HOST_APERTURE))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiMapCpuHostAperture(port->adapter, args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_MAP_CPU_HOST_APERTURE, status,
				    args->SegmentId, args->NumberOfPages,
				    args->pCpuHostAperturePages[0]);
	return status;
}

NTSTATUS vmm_port_unmap_host_aperture(struct vmm_port *port,
				      const DXGKARG_UNMAPCPUHOSTAPERTURE *args)
{
	struct vmm_port_call call;
	NTSTATUS status;

	if (!vmm_port_scheduler_call_begin(port, &call, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE))
		return STATUS_DEVICE_REMOVED;
	status = port->ddi.DxgkDdiUnmapCpuHostAperture(port->adapter, args);
	vmm_port_scheduler_call_end(port, &call, VIDMM_DDI_UNMAP_CPU_HOST_APERTURE, status,
				    args->SegmentId, args->NumberOfPages,
				    args->pCpuHostAperturePages[0]);
	if (status != STATUS_SUCCESS)
		vmm_port_wrong_status(port, "SWZ-29", VIDMM_DDI_UNMAP_CPU_HOST_APERTURE, status);
	return status;
}

void vmm_port_describe_pages(const void *mdl, DXGK_ADL *adl)
{
	const MDL *list = mdl;
	PFN_NUMBER *frames = MmGetMdlPfnArray((MDL *)(uintptr_t)mdl);
	UINT count = (UINT)((list->ByteOffset + (uint64_t)list->ByteCount + PAGE_SIZE - 1) >>
			    PAGE_SHIFT);

	*adl = (DXGK_ADL){.PageCount = count, .Pages = frames};
	for (UINT i = 1; i < count; i++)
		if (frames[i] != frames[0] + i)
			return;
	adl->Flags.Contiguous = 1;
	adl->BasePageNumber = frames[0];
}
