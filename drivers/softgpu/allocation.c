/* SPDX-License-Identifier: MIT */
/*
 * Allocations: what a user asks for in its private data (vidmm/softgpu.h) becomes what the memory manager is told.
 * Reentrant; owns nothing but the objects it hands out.
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
#define SIZE_LIMIT      ((uint64_t)1 << 46)
#define ALIGNMENT_LIMIT ((uint32_t)1 << 30)

struct softgpu_resource {
	uint32_t allocation_count; /* for a debugger: nothing is kept in a resource */
};

static enum softgpu_tile_mode tile_mode(const struct softgpu_allocation *wish)
{
	if (wish->flags & SOFTGPU_ALLOCATION_TILED_X)
		return SOFTGPU_TILE_X;
	return wish->flags & SOFTGPU_ALLOCATION_TILED_Y ? SOFTGPU_TILE_Y : SOFTGPU_LINEAR;
}

static uint32_t all_segments(const struct softgpu_adapter *adapter)
{
	return adapter->settings.aperture_bytes ? 0x3 : VRAM_BIT;
}

/* Rows of pixels, one behind the other. */
static int picture_is_valid(const struct softgpu_allocation *wish)
{
	uint64_t row = (uint64_t)wish->width * SOFTGPU_PIXEL_BYTES;

	if (!wish->width || !wish->height)
		return wish->width == wish->height;
	return !(wish->flags & (SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y)) &&
	       row <= UINT32_MAX && wish->height <= wish->size_bytes / row;
}

static int layout_is_valid(const struct softgpu_allocation *wish)
{
	uint32_t tiled = wish->flags & (SOFTGPU_ALLOCATION_TILED_X | SOFTGPU_ALLOCATION_TILED_Y);

	if (!tiled)
		return wish->stride_bytes == 0;
	/* SWZ-20: a tiled surface gets its form in video memory, so it must be able to go there. */
	return (tiled & (tiled - 1)) == 0 && wish->stride_bytes &&
	       wish->stride_bytes % softgpu_tile_width(tile_mode(wish)) == 0 &&
	       (wish->segment_set & VRAM_BIT);
}

/* segment_set of the wish is never 0 here. */
static int wish_is_valid(const struct softgpu_adapter *adapter,
			 const struct softgpu_allocation *wish)
{
	uint32_t set = wish->segment_set, preferred = wish->preferred_segment;

	return wish->version == SOFTGPU_ALLOCATION_VERSION && !(wish->flags & ~KNOWN_FLAGS) &&
	       wish->size_bytes && wish->size_bytes <= SIZE_LIMIT &&
	       !(set & ~all_segments(adapter)) &&
	       (!preferred || (preferred <= 2 && (set >> (preferred - 1) & 1))) &&
	       !(wish->alignment & (wish->alignment - 1)) && wish->alignment <= ALIGNMENT_LIMIT &&
	       layout_is_valid(wish) && picture_is_valid(wish);
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Whole pages; of a tiled surface whole rows of tiles, which are whole pages. */
static uint64_t size_of(const struct softgpu_allocation *wish)
{
	enum softgpu_tile_mode mode = tile_mode(wish);

	return round_up(wish->size_bytes,
			mode ? softgpu_tile_row_bytes(mode, wish->stride_bytes) : SOFTGPU_PAGE);
}

static void describe(const struct softgpu_allocation *wish, DXGK_ALLOCATIONINFO *info)
{
	uint32_t set = wish->segment_set, preferred = wish->preferred_segment;

	if (!preferred)
		preferred = set & VRAM_BIT ? SOFTGPU_SEGMENT_VRAM : SOFTGPU_SEGMENT_APERTURE;
	info->Alignment = wish->alignment > SOFTGPU_PAGE ? wish->alignment : (UINT)SOFTGPU_PAGE;
	info->Size = (SIZE_T)size_of(wish);
	info->PitchAlignedSize = 0;
	info->HintedBank.Value = wish->hinted_banks;
	info->PreferredSegment.Value = 0;
	info->PreferredSegment.SegmentId0 = preferred;
	info->SupportedReadSegmentSet = set;
	info->SupportedWriteSegmentSet = set;
	info->EvictionSegmentSet = wish->eviction_set; /* SEG-20, 0: straight to system pages */
	info->MaximumRenamingListLength = wish->renaming_limit;
	info->Flags.Value = 0;
	info->Flags.CpuVisible = !!(wish->flags & SOFTGPU_ALLOCATION_CPU_VISIBLE);
	info->Flags.Cached = !!(wish->flags & SOFTGPU_ALLOCATION_CACHED);
	info->Flags.PermanentSysMem = !!(wish->flags & SOFTGPU_ALLOCATION_PERMANENT_SYSTEM);
	info->Flags.Protected = !!(wish->flags & SOFTGPU_ALLOCATION_PROTECTED);
	info->Flags.ExistingSysMem = !!(wish->flags & SOFTGPU_ALLOCATION_EXISTING_SYSTEM);
	info->Flags.ExistingKernelSysMem = !!(wish->flags & SOFTGPU_ALLOCATION_EXISTING_KERNEL);
	info->Flags.FromEndOfSegment = !!(wish->flags & SOFTGPU_ALLOCATION_FROM_END);
	info->Flags.Overlay = !!(wish->flags & SOFTGPU_ALLOCATION_OVERLAY);
	info->Flags.Capture = !!(wish->flags & SOFTGPU_ALLOCATION_CAPTURE);
	info->Flags.SynchronousPaging = !!(wish->flags & SOFTGPU_ALLOCATION_SYNCHRONOUS_PAGING);
	info->Flags.LinkMirrored = !!(wish->flags & SOFTGPU_ALLOCATION_LINK_MIRRORED);
	info->Flags.LinkInstanced = !!(wish->flags & SOFTGPU_ALLOCATION_LINK_INSTANCED);
	info->Flags.Swizzled = tile_mode(wish) != SOFTGPU_LINEAR;
	info->pAllocationUsageHint = NULL;
	info->AllocationPriority =
		wish->priority ? wish->priority : D3DDDI_ALLOCATIONPRIORITY_NORMAL;
}

static NTSTATUS create_one(const struct softgpu_adapter *adapter, DXGK_ALLOCATIONINFO *info)
{
	struct softgpu_driver_allocation *allocation;
	struct softgpu_allocation wish;

	if (!info->pPrivateDriverData || info->PrivateDriverDataSize != sizeof(wish))
		return STATUS_INVALID_PARAMETER;
	memcpy(&wish, info->pPrivateDriverData, sizeof(wish));
	if (!wish.segment_set)
		wish.segment_set = all_segments(adapter);
	if (!wish_is_valid(adapter, &wish))
		return STATUS_INVALID_PARAMETER;
	allocation = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*allocation), SOFTGPU_POOL_TAG);
	if (!allocation)
		return STATUS_NO_MEMORY;
	allocation->size_bytes = size_of(&wish);
	allocation->tile_mode = tile_mode(&wish);
	allocation->stride_bytes = wish.stride_bytes;
	allocation->picture =
		(struct softgpu_picture){wish.width, wish.height, wish.width * SOFTGPU_PIXEL_BYTES};
	allocation->is_on_each = (wish.flags & (SOFTGPU_ALLOCATION_LINK_MIRRORED |
						SOFTGPU_ALLOCATION_LINK_INSTANCED)) != 0;
	describe(&wish, info);
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

/* What is no picture is bytes: a linear allocation is one row. */
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

/* Primaries, shadows and staging surfaces belong to displays; memory that exists is reached through the aperture. */
NTSTATUS APIENTRY softgpu_get_standard_allocation_driver_data(
	IN_CONST_HANDLE hAdapter,
	INOUT_PDXGKARG_GETSTANDARDALLOCATIONDRIVERDATA pGetStandardAllocationDriverData)
{
	DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args = pGetStandardAllocationDriverData;
	const D3DKMDT_GDISURFACEDATA *surface = args->pCreateGdiSurfaceData;
	struct softgpu_allocation wish = {.version = SOFTGPU_ALLOCATION_VERSION,
					  .flags = SOFTGPU_ALLOCATION_CPU_VISIBLE |
						   SOFTGPU_ALLOCATION_EXISTING_SYSTEM,
					  .segment_set = APERTURE_BIT};

	(void)hAdapter;
	if (args->StandardAllocationType != D3DKMDT_STANDARDALLOCATION_GDISURFACE ||
	    surface->Type != D3DKMDT_GDISURFACE_EXISTINGSYSMEM)
		return STATUS_NOT_SUPPORTED;
	args->ResourcePrivateDriverDataSize = 0;
	if (args->pAllocationPrivateDriverData) {
		if (args->AllocationPrivateDriverDataSize < sizeof(wish))
			return STATUS_BUFFER_TOO_SMALL;
		wish.size_bytes = (uint64_t)surface->Pitch * surface->Height;
		memcpy(args->pAllocationPrivateDriverData, &wish, sizeof(wish));
	}
	args->AllocationPrivateDriverDataSize = sizeof(wish);
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
