/* SPDX-License-Identifier: MIT */
/*
 * Swizzling ranges. A tiled surface with a range has a window (window.h), one for all its ranges.
 * PrivateDriverData, which may name a part of an allocation, has no effect here, because a surface
 * is one picture. A linear surface looks the same through any range. A surface in the aperture is
 * refused: the CPU accesses system memory there, and windows exist only in video memory.
 */
#include "softgpu_private.h"

/*
 * Stores where the surface is. Returns 0 if the range does not cover exactly the whole surface in
 * video memory (SWZ-02).
 */
static int surface_of(const struct softgpu_adapter *adapter,
		      const DXGKARG_ACQUIRESWIZZLINGRANGE *args, struct softgpu_surface *surface)
{
	const struct softgpu_driver_allocation *allocation = args->hAllocation;
	uint64_t base =
		adapter->settings.vram_cpu_visible ? (uint64_t)adapter->vram_address.QuadPart : 0;

	*surface = (struct softgpu_surface){
		.first = (uint64_t)args->CPUTranslatedAddress.QuadPart - base,
		.bytes = allocation->size_bytes,
		.mode = allocation->tile_mode,
		.stride_bytes = allocation->stride_bytes,
	};
	return args->RangeSize == surface->bytes && surface->first % SOFTGPU_PAGE == 0 &&
	       surface->first <= adapter->memory.vram_bytes &&
	       surface->bytes <= adapter->memory.vram_bytes - surface->first;
}

static int reserve_scratch(struct softgpu_adapter *adapter, uint64_t bytes)
{
	char *scratch;

	if (bytes <= adapter->scratch_bytes)
		return 1;
	scratch = ExAllocatePool2(POOL_FLAG_NON_PAGED, (SIZE_T)bytes, SOFTGPU_POOL_TAG);
	if (!scratch)
		return 0;
	if (adapter->scratch)
		ExFreePoolWithTag(adapter->scratch, SOFTGPU_POOL_TAG);
	adapter->scratch = scratch;
	adapter->scratch_bytes = bytes;
	return 1;
}

static NTSTATUS open_window(struct softgpu_adapter *adapter, HANDLE allocation,
			    const struct softgpu_surface *surface)
{
	struct softgpu_window *window = softgpu_window_at(&adapter->memory, surface->first);

	/*
	 * The instances of a renamed allocation share its handle, but each has its own address
	 * (REN-01).
	 */
	if (window && window->owner == allocation && window->surface.first == surface->first) {
		window->uses++;
		return STATUS_SUCCESS;
	}
	/*
	 * The surface there should have been released before other content was moved in (SWZ-13).
	 */
	if (window && window->surface.first < surface->first + surface->bytes)
		return STATUS_INVALID_PARAMETER;
	if (!reserve_scratch(adapter, softgpu_window_scratch_bytes(surface)))
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
	softgpu_bus_hold(softgpu_bus_of(adapter));
	window = softgpu_window_open(&adapter->memory, surface, adapter->scratch);
	window->owner = allocation;
	softgpu_bus_release(softgpu_bus_of(adapter));
	return STATUS_SUCCESS;
}

static void close_window(struct softgpu_adapter *adapter, uint64_t first)
{
	struct softgpu_window *window = softgpu_window_at(&adapter->memory, first);

	if (--window->uses)
		return;
	softgpu_bus_hold(softgpu_bus_of(adapter));
	softgpu_window_close(&adapter->memory, window, adapter->scratch);
	softgpu_bus_release(softgpu_bus_of(adapter));
}

NTSTATUS APIENTRY softgpu_acquire_swizzling_range(
	IN_CONST_HANDLE hAdapter, INOUT_PDXGKARG_ACQUIRESWIZZLINGRANGE pAcquireSwizzlingRange)
{
	struct softgpu_adapter *adapter = hAdapter;
	const struct softgpu_driver_allocation *allocation = pAcquireSwizzlingRange->hAllocation;
	int is_tiled = allocation && allocation->tile_mode != SOFTGPU_LINEAR;
	struct softgpu_surface surface = {0};
	struct softgpu_range *range;
	NTSTATUS status;

	if (pAcquireSwizzlingRange->RangeId >= adapter->settings.swizzling_ranges || !allocation)
		return STATUS_INVALID_PARAMETER;
	if (pAcquireSwizzlingRange->SegmentId != SOFTGPU_SEGMENT_VRAM)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
	range = &adapter->ranges[pAcquireSwizzlingRange->RangeId];
	if (range->allocation)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
	if (is_tiled) {
		if (!surface_of(adapter, pAcquireSwizzlingRange, &surface))
			return STATUS_INVALID_PARAMETER;
		status = open_window(adapter, pAcquireSwizzlingRange->hAllocation, &surface);
		if (!NT_SUCCESS(status))
			return status;
	}
	*range = (struct softgpu_range){
		.allocation = pAcquireSwizzlingRange->hAllocation,
		.private_data = pAcquireSwizzlingRange->PrivateDriverData,
		.is_tiled = is_tiled,
		.first = surface.first,
	};
	/*
	 * If video memory is not CPU-visible, the range is the way to access it; until here the
	 * address is an offset (SWZ-24).
	 */
	if (!adapter->settings.vram_cpu_visible)
		pAcquireSwizzlingRange->CPUTranslatedAddress.QuadPart +=
			adapter->vram_address.QuadPart;
	return STATUS_SUCCESS;
}

/* The request must name the range that was acquired, by its allocation (SWZ-13). */
NTSTATUS APIENTRY softgpu_release_swizzling_range(
	IN_CONST_HANDLE hAdapter, IN_CONST_PDXGKARG_RELEASESWIZZLINGRANGE pReleaseSwizzlingRange)
{
	struct softgpu_adapter *adapter = hAdapter;
	struct softgpu_range *range;

	if (pReleaseSwizzlingRange->RangeId >= adapter->settings.swizzling_ranges)
		return STATUS_INVALID_PARAMETER;
	range = &adapter->ranges[pReleaseSwizzlingRange->RangeId];
	if (!range->allocation || range->allocation != pReleaseSwizzlingRange->hAllocation ||
	    range->private_data != pReleaseSwizzlingRange->PrivateDriverData)
		return STATUS_INVALID_PARAMETER;
	if (range->is_tiled)
		close_window(adapter, range->first);
	range->allocation = NULL;
	return STATUS_SUCCESS;
}
