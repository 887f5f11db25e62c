/* SPDX-License-Identifier: MIT */
/*
 * Allocations: translates what a user asks for in private data (vidmm/softgpu.h) into a description
 * for the memory manager. Reentrant; its only state is the objects that it hands out.
 */
#include "softgpu_private.h"

#include "tile.h"

#define VRAM_BIT     0x1u
#define APERTURE_BIT 0x2u
#define KNOWN_FLAGS                                                                                \
	(SOFTGPU_ALLOCATION_CPU_VISIBLE | SOFTGPU_ALLOCATION_CACHED | SOFTGPU_ALLOCATION_TILED_X | \
	 SOFTGPU_ALLOCATION_TILED_Y | SOFTGPU_ALLOCATION_PERMANENT_SYSTEM |                        \
	 SOFTGPU_ALLOCATION_FROM_END | SOFTGPU_ALLOCATION_PROTECTED |                              \
	 SOFTGPU_ALLOCATION_EXISTING_SYSTEM | SOFTGPU_ALLOCATION_EXISTING_KERNEL |                 \
	 SOFTGPU_ALLOCATION_OVERLAY | SOFTGPU_ALLOCATION_CAPTURE |                                 \
	 SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING | SOFTGPU_ALLOCATION_LINK_MIRRORED |                \
	 SOFTGPU_ALLOCATION_LINK_INSTANCED)
/* Properties that WDDM 2.x does not have. */
#define WDDM1_FLAGS                                                                 \
	(SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y |                  \
	 SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING | SOFTGPU_ALLOCATION_LINK_MIRRORED | \
	 SOFTGPU_ALLOCATION_LINK_INSTANCED)
#define SIZE_LIMIT      ((uint64_t)1 << 46)
#define ALIGNMENT_LIMIT ((uint32_t)1 << 30)

struct softgpu_resource {
	uint32_t allocation_count; /* for a debugger: a resource has no state */
};

static enum softgpu_tile_mode tile_mode(const struct softgpu_allocation *request)
{
	if (request->flags & SOFTGPU_ALLOCATION_TILED_X)
		return SOFTGPU_TILE_X;
	return request->flags & SOFTGPU_ALLOCATION_TILED_Y ? SOFTGPU_TILE_Y : SOFTGPU_LINEAR;
}

static uint32_t all_segments(const struct softgpu_adapter *adapter)
{
	return adapter->settings.aperture_bytes ? 0x3 : VRAM_BIT;
}

/* Rows of pixels, one after the other. */
static int picture_is_valid(const struct softgpu_allocation *request)
{
	uint64_t row = (uint64_t)request->width * SOFTGPU_PIXEL_BYTES;

	if (!request->width || !request->height)
		return request->width == request->height;
	return !(request->flags & (SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y)) &&
	       row <= UINT32_MAX && request->height <= request->size_bytes / row;
}

static int layout_is_valid(const struct softgpu_allocation *request)
{
	uint32_t tiled = request->flags & (SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y);

	if (!tiled)
		return request->stride_bytes == 0;
	/*
	 * A tiled surface is unswizzled in video memory, so it must be allowed to be placed there
	 * (SWZ-20).
	 */
	return (tiled & (tiled - 1)) == 0 && request->stride_bytes &&
	       request->stride_bytes % softgpu_tile_width(tile_mode(request)) == 0 &&
	       (request->segment_set & VRAM_BIT);
}

static int model_is_valid(const struct softgpu_adapter *adapter,
			  const struct softgpu_allocation *request)
{
	if (!softgpu_is_wddm2(&adapter->settings))
		return !(request->flags & ~KNOWN_FLAGS);
	return !(request->flags &
		 ~((KNOWN_FLAGS & ~WDDM1_FLAGS) | SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY)) &&
	       !request->renaming_limit && !request->hinted_banks;
}

/* segment_set of the request is never 0 here. */
static int wish_is_valid(const struct softgpu_adapter *adapter,
			 const struct softgpu_allocation *request)
{
	uint32_t set = request->segment_set, preferred = request->preferred_segment;

	return request->version == SOFTGPU_ALLOCATION_VERSION && model_is_valid(adapter, request) &&
	       request->size_bytes && request->size_bytes <= SIZE_LIMIT &&
	       !(set & ~all_segments(adapter)) &&
	       (!preferred || (preferred <= 2 && (set >> (preferred - 1) & 1))) &&
	       !(request->alignment & (request->alignment - 1)) &&
	       request->alignment <= ALIGNMENT_LIMIT && layout_is_valid(request) &&
	       picture_is_valid(request);
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Whole pages. A tiled surface has whole rows of tiles, which are whole pages too. */
static uint64_t size_of(const struct softgpu_allocation *request)
{
	enum softgpu_tile_mode mode = tile_mode(request);

	return round_up(request->size_bytes,
			mode ? softgpu_tile_row_bytes(mode, request->stride_bytes) : SOFTGPU_PAGE);
}

static void describe(const struct softgpu_allocation *request, DXGK_ALLOCATIONINFO *info)
{
	uint32_t set = request->segment_set, preferred = request->preferred_segment;

	if (!preferred)
		preferred = set & VRAM_BIT ? SOFTGPU_SEGMENT_VRAM : SOFTGPU_SEGMENT_APERTURE;
	info->Alignment =
		request->alignment > SOFTGPU_PAGE ? request->alignment : (UINT)SOFTGPU_PAGE;
	info->Size = (SIZE_T)size_of(request);
	info->PitchAlignedSize = 0;
	info->HintedBank.Value = request->hinted_banks;
	info->PreferredSegment.Value = 0;
	info->PreferredSegment.SegmentId0 = preferred;
	info->SupportedReadSegmentSet = set;
	info->SupportedWriteSegmentSet = set;
	/* set 0: evicted straight to system pages (SEG-20) */
	info->EvictionSegmentSet = request->eviction_set;
	info->MaximumRenamingListLength = request->renaming_limit;
	info->Flags.Value = 0;
	info->Flags.CpuVisible = !!(request->flags & SOFTGPU_ALLOCATION_CPU_VISIBLE);
	info->Flags.Cached = !!(request->flags & SOFTGPU_ALLOCATION_CACHED);
	info->Flags.PermanentSysMem = !!(request->flags & SOFTGPU_ALLOCATION_PERMANENT_SYSTEM);
	info->Flags.Protected = !!(request->flags & SOFTGPU_ALLOCATION_PROTECTED);
	info->Flags.ExistingSysMem = !!(request->flags & SOFTGPU_ALLOCATION_EXISTING_SYSTEM);
	info->Flags.ExistingKernelSysMem = !!(request->flags & SOFTGPU_ALLOCATION_EXISTING_KERNEL);
	info->Flags.FromEndOfSegment = !!(request->flags & SOFTGPU_ALLOCATION_FROM_END);
	info->Flags.Overlay = !!(request->flags & SOFTGPU_ALLOCATION_OVERLAY);
	info->Flags.Capture = !!(request->flags & SOFTGPU_ALLOCATION_CAPTURE);
	info->Flags.SynchronousPaging = !!(request->flags & SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING);
	info->Flags.LinkMirrored = !!(request->flags & SOFTGPU_ALLOCATION_LINK_MIRRORED);
	info->Flags.LinkInstanced = !!(request->flags & SOFTGPU_ALLOCATION_LINK_INSTANCED);
	info->Flags.Swizzled = tile_mode(request) != SOFTGPU_LINEAR;
	info->pAllocationUsageHint = NULL;
	info->AllocationPriority =
		request->priority ? request->priority : D3DDDI_ALLOCATIONPRIORITY_NORMAL;
}

/*
 * Contexts with patching use physical addresses, and so do displays: a picture is always accessed
 * physically (PAG-24). A segment of larger pages demands their alignment (VA-05).
 */
static void describe_wddm2(const struct softgpu_adapter *adapter,
			   const struct softgpu_allocation *request, DXGK_ALLOCATIONINFO *info)
{
	uint32_t page = adapter->settings.vram_page_bytes;

	if ((request->segment_set & VRAM_BIT) && info->Alignment < page)
		info->Alignment = page;
	info->FlagsWddm2.AccessedPhysically =
		(request->flags & SOFTGPU_ALLOCATION_ACCESSED_PHYSICALLY) || request->width;
}

static NTSTATUS create_one(const struct softgpu_adapter *adapter, DXGK_ALLOCATIONINFO *info)
{
	struct softgpu_driver_allocation *allocation;
	struct softgpu_allocation request;

	if (!info->pPrivateDriverData || info->PrivateDriverDataSize != sizeof(request))
		return STATUS_INVALID_PARAMETER;
	memcpy(&request, info->pPrivateDriverData, sizeof(request));
	if (!request.segment_set)
		request.segment_set = all_segments(adapter);
	if (!wish_is_valid(adapter, &request))
		return STATUS_INVALID_PARAMETER;
	allocation = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*allocation), SOFTGPU_POOL_TAG);
	if (!allocation)
		return STATUS_NO_MEMORY;
	allocation->size_bytes = size_of(&request);
	allocation->tile_mode = tile_mode(&request);
	allocation->stride_bytes = request.stride_bytes;
	allocation->picture = (struct softgpu_picture){request.width, request.height,
						       request.width * SOFTGPU_PIXEL_BYTES};
	allocation->is_on_each = (request.flags & (SOFTGPU_ALLOCATION_LINK_MIRRORED |
						   SOFTGPU_ALLOCATION_LINK_INSTANCED)) != 0;
	describe(&request, info);
	if (softgpu_is_wddm2(&adapter->settings))
		describe_wddm2(adapter, &request, info);
	info->hAllocation = allocation;
	return STATUS_SUCCESS;
}

static NTSTATUS create_resource(DXGKARG_CREATEALLOCATION *create)
{
	struct softgpu_resource *resource;

	if (!create->Flags.Resource || create->hResource)
		return STATUS_SUCCESS;
	resource = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*resource), SOFTGPU_POOL_TAG);
	if (!resource)
		return STATUS_NO_MEMORY;
	resource->allocation_count = create->NumAllocations;
	create->hResource = resource;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_create_allocation(IN_CONST_HANDLE hAdapter,
					    INOUT_PDXGKARG_CREATEALLOCATION pCreateAllocation)
{
	NTSTATUS status = STATUS_SUCCESS;
	UINT created;

	for (created = 0; created < pCreateAllocation->NumAllocations; created++) {
		status = create_one(hAdapter, &pCreateAllocation->pAllocationInfo[created]);
		if (!NT_SUCCESS(status))
			break;
	}
	if (NT_SUCCESS(status))
		status = create_resource(pCreateAllocation);
	while (!NT_SUCCESS(status) && created > 0) {
		DXGK_ALLOCATIONINFO *info = &pCreateAllocation->pAllocationInfo[--created];

		ExFreePoolWithTag(info->hAllocation, SOFTGPU_POOL_TAG);
		info->hAllocation = NULL;
	}
	return status;
}

NTSTATUS APIENTRY softgpu_destroy_allocation(IN_CONST_HANDLE hAdapter,
					     IN_CONST_PDXGKARG_DESTROYALLOCATION pDestroyAllocation)
{
	UINT i;

	(void)hAdapter;
	for (i = 0; i < pDestroyAllocation->NumAllocations; i++)
		ExFreePoolWithTag(pDestroyAllocation->pAllocationList[i], SOFTGPU_POOL_TAG);
	if (pDestroyAllocation->Flags.DestroyResource && pDestroyAllocation->hResource)
		ExFreePoolWithTag(pDestroyAllocation->hResource, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

/* An allocation that is not a picture is bytes. A linear one is described as one row. */
NTSTATUS APIENTRY softgpu_describe_allocation(IN_CONST_HANDLE hAdapter,
					      INOUT_PDXGKARG_DESCRIBEALLOCATION pDescribe)
{
	const struct softgpu_driver_allocation *allocation = pDescribe->hAllocation;
	uint64_t width =
		allocation->stride_bytes ? allocation->stride_bytes : allocation->size_bytes;

	(void)hAdapter;
	if (allocation->picture.width) {
		pDescribe->Width = allocation->picture.width;
		pDescribe->Height = allocation->picture.height;
		pDescribe->Format = D3DDDIFMT_X8R8G8B8;
		pDescribe->MultisampleMethod.NumSamples = 1;
		pDescribe->MultisampleMethod.NumQualityLevels = 0;
		pDescribe->RefreshRate.Numerator = 0;
		pDescribe->RefreshRate.Denominator = 0;
		pDescribe->PrivateDriverFormatAttribute = 0;
		return STATUS_SUCCESS;
	}
	pDescribe->Width = width > UINT32_MAX ? UINT32_MAX : (UINT)width;
	pDescribe->Height = (UINT)(allocation->size_bytes / width);
	pDescribe->Format = D3DDDIFMT_UNKNOWN;
	pDescribe->MultisampleMethod.NumSamples = 1;
	pDescribe->MultisampleMethod.NumQualityLevels = 0;
	pDescribe->RefreshRate.Numerator = 0;
	pDescribe->RefreshRate.Denominator = 0;
	pDescribe->PrivateDriverFormatAttribute = 0;
	return STATUS_SUCCESS;
}

/*
 * Primaries, shadows and staging surfaces belong to displays. Existing memory is reached through
 * the aperture.
 */
NTSTATUS APIENTRY softgpu_get_standard_allocation_driver_data(
	IN_CONST_HANDLE hAdapter,
	INOUT_PDXGKARG_GETSTANDARDALLOCATIONDRIVERDATA pGetStandardAllocationDriverData)
{
	DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args = pGetStandardAllocationDriverData;
	const D3DKMDT_GDISURFACEDATA *surface = args->pCreateGdiSurfaceData;
	struct softgpu_allocation request = {.version = SOFTGPU_ALLOCATION_VERSION,
					     .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
						      SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
					     .segment_set = APERTURE_BIT};

	(void)hAdapter;
	if (args->StandardAllocationType != D3DKMDT_STANDARDALLOCATION_GDISURFACE ||
	    surface->Type != D3DKMDT_GDISURFACE_EXISTINGSYSMEM)
		return STATUS_NOT_SUPPORTED;
	args->ResourcePrivateDriverDataSize = 0;
	if (args->pAllocationPrivateDriverData) {
		if (args->AllocationPrivateDriverDataSize < sizeof(request))
			return STATUS_BUFFER_TOO_SMALL;
		request.size_bytes = (uint64_t)surface->Pitch * surface->Height;
		memcpy(args->pAllocationPrivateDriverData, &request, sizeof(request));
	}
	args->AllocationPrivateDriverDataSize = sizeof(request);
	return STATUS_SUCCESS;
}

static NTSTATUS open_one(const struct softgpu_device *device, DXGK_OPENALLOCATIONINFO *info)
{
	DXGKARGCB_GETHANDLEDATA query = {.hObject = info->hAllocation,
					 .Type = DXGK_HANDLE_ALLOCATION};
	const struct softgpu_driver_allocation *allocation =
		device->adapter->dxgk.DxgkCbGetHandleData(&query);
	struct softgpu_open_allocation *open;

	if (!allocation)
		return STATUS_INVALID_PARAMETER;
	open = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*open), SOFTGPU_POOL_TAG);
	if (!open)
		return STATUS_NO_MEMORY;
	open->size_bytes = allocation->size_bytes;
	open->allocation = allocation;
	open->base =
		device->adapter->link_count > 1 && !allocation->is_on_each ? SOFTGPU_LEAD_BASE : 0;
	info->hDeviceSpecificAllocation = open;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_open_allocation_info(IN_CONST_HANDLE hDevice,
					       IN_CONST_PDXGKARG_OPENALLOCATION pOpenAllocation)
{
	NTSTATUS status = STATUS_SUCCESS;
	UINT opened;

	for (opened = 0; opened < pOpenAllocation->NumAllocations; opened++) {
		status = open_one(hDevice, &pOpenAllocation->pOpenAllocation[opened]);
		if (!NT_SUCCESS(status))
			break;
	}
	while (!NT_SUCCESS(status) && opened > 0) {
		DXGK_OPENALLOCATIONINFO *info = &pOpenAllocation->pOpenAllocation[--opened];

		ExFreePoolWithTag(info->hDeviceSpecificAllocation, SOFTGPU_POOL_TAG);
		info->hDeviceSpecificAllocation = NULL;
	}
	return status;
}

NTSTATUS APIENTRY softgpu_close_allocation(IN_CONST_HANDLE hDevice,
					   IN_CONST_PDXGKARG_CLOSEALLOCATION pCloseAllocation)
{
	UINT i;

	(void)hDevice;
	for (i = 0; i < pCloseAllocation->NumAllocations; i++)
		ExFreePoolWithTag(pCloseAllocation->pOpenHandleList[i], SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}
