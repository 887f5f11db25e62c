/* SPDX-License-Identifier: MIT */
/*
 * Swizzling ranges. A range of real hardware is a window of the CPU's address space that shows a tiled surface as
 * linear bytes. Host memory has no such window, so a tiled surface is refused with the status that makes the memory
 * manager unswizzle it into system memory instead (SWZ-08, SWZ-09); a linear one looks the same through any window.
 */
#include "softgpu_private.h"

NTSTATUS APIENTRY softgpu_acquire_swizzling_range(
	IN_CONST_HANDLE hAdapter, INOUT_PDXGKARG_ACQUIRESWIZZLINGRANGE pAcquireSwizzlingRange)
{
	struct softgpu_adapter *adapter = hAdapter;
	const struct softgpu_driver_allocation *allocation = pAcquireSwizzlingRange->hAllocation;
	struct softgpu_range *range;

	if (pAcquireSwizzlingRange->RangeId >= adapter->settings.swizzling_ranges || !allocation)
		return STATUS_INVALID_PARAMETER;
	if (allocation->tile_mode != SOFTGPU_LINEAR ||
	    pAcquireSwizzlingRange->SegmentId != SOFTGPU_SEGMENT_VRAM)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
	range = &adapter->ranges[pAcquireSwizzlingRange->RangeId];
	if (range->allocation)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
	range->allocation = pAcquireSwizzlingRange->hAllocation;
	range->private_data = pAcquireSwizzlingRange->PrivateDriverData;
	/* SWZ-24: where the CPU sees no video memory, a range is the window into it; so far the address is an offset. */
	if (!adapter->settings.vram_cpu_visible)
		pAcquireSwizzlingRange->CPUTranslatedAddress.QuadPart +=
			adapter->vram_address.QuadPart;
	return STATUS_SUCCESS;
}

/* SWZ-13: exactly the range that was acquired, by its allocation. */
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
	range->allocation = NULL;
	return STATUS_SUCCESS;
}
