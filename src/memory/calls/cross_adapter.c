/* SPDX-License-Identifier: MIT */
/*
 * Cross-adapter resources (ALF-39): a linear surface in system memory that adapters of different
 * miniports use. Each adapter has its own allocation over the same section. The creating miniport
 * describes the surface (DxgkDdiDescribeAllocation). An opening miniport is asked for a surface of
 * that size and format (DxgkDdiGetStandardAllocationDriverData).
 *
 * The section is reference counted. It survives the end of the allocation that was shared, and of
 * its adapter.
 *
 * The DDI's documentation gives the alignment of rows and of the height. It is inferred that both
 * miniports must compute the same pitch from them.
 */
#include "memory/calls/creation.h"
#include "memory/store/store.h"

enum {
	CPU_VISIBLE = 0x1,
	CACHED = 0x4,
	PROTECTED = 0x8,
	SWIZZLED = 0x80,
	FORBIDDEN = CACHED | PROTECTED | SWIZZLED | (int)VMM_ALLOCATION_RETAINED,
	PITCH = 128,
	ROWS = 4,
};

static NTSTATUS refuse_cross_adapter(const struct vmm_device *device, const char *what, uint64_t is,
				     uint64_t wanted)
{
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "ALF-39",
			       device->process->id, device->handle,
			       "cross-adapter resource refused: %s (%llu, wanted %llu)", what,
			       (unsigned long long)is, (unsigned long long)wanted);
}

static NTSTATUS not_supported(const struct vmm_device *device, const char *what)
{
	return vmm_refuse_reason(device->adapter->observe, STATUS_NOT_SUPPORTED,
				 device->process->id, device->handle,
				 "ALF-39: cross-adapter resource refused: %s", what);
}

static uint32_t bytes_per_pixel(D3DDDIFORMAT format)
{
	switch (format) {
	case D3DDDIFMT_A8:
		return 1;
	case D3DDDIFMT_R5G6B5:
		return 2;
	case D3DDDIFMT_A8R8G8B8:
	case D3DDDIFMT_X8R8G8B8:
	case D3DDDIFMT_A8B8G8R8:
		return 4;
	default:
		return 0;
	}
}

static uint64_t pitch_of(const struct vmm_picture *picture)
{
	return vmm_align_up((uint64_t)picture->width * bytes_per_pixel(picture->format), PITCH);
}

static uint64_t bytes_of(const struct vmm_picture *picture)
{
	return pitch_of(picture) * vmm_align_up(picture->height, ROWS);
}

/*
 * Asks the opening adapter's miniport for private data of such a surface. Its pitch must be the
 * common one.
 */
static NTSTATUS ask_for_surface(struct vmm_device *device, struct vmm_allocate_request *request)
{
	const struct vmm_picture *picture = &request->section->picture;
	D3DKMDT_GDISURFACEDATA surface = {
		.Width = picture->width,
		.Height = picture->height,
		.Format = picture->format,
		.Type = D3DKMDT_GDISURFACE_TEXTURE_CPUVISIBLE_CROSSADAPTER};
	NTSTATUS status = vmm_standard_ask(device, request, "ALF-39", &surface);

	if (status == STATUS_NOT_SUPPORTED)
		return not_supported(device,
				     "the opening miniport does not support such a surface");
	if (NT_SUCCESS(status) && surface.Pitch != pitch_of(picture))
		return refuse_cross_adapter(device, "pitch answered by the opening miniport",
					    surface.Pitch, pitch_of(picture));
	return status;
}

NTSTATUS vmm_cross_adapter_describe(struct vmm_device *device, struct vmm_allocate_request *request)
{
	if (!vmm_port_caps(device->adapter->port)->cross_adapter_resource)
		return not_supported(device, "the miniport does not report CrossAdapterResource");
	if (request->items[0].flags)
		return not_supported(device, "a primary shared with other adapters is not built");
	return request->section ? ask_for_surface(device, request) : STATUS_SUCCESS;
}

static bool only_apertures(const struct vmm_port_caps *caps, uint32_t set)
{
	for (uint32_t i = 0; i < caps->segment_count; i++)
		if ((set & 1u << i) && !caps->segment[i].flags.Aperture)
			return false;
	return true;
}

/* Creates the section of a new resource, of the size that the creating miniport answered. */
static NTSTATUS create_section(struct vmm_device *device, struct vmm_allocate_request *request,
			       const DXGK_ALLOCATIONINFO *info)
{
	DXGKARG_DESCRIBEALLOCATION args = {.hAllocation = info->hAllocation};
	NTSTATUS status = vmm_port_describe_allocation(device->adapter->port, &args);

	if (status == STATUS_NOT_SUPPORTED)
		return not_supported(device,
				     "DxgkDdiDescribeAllocation answered STATUS_NOT_SUPPORTED");
	if (!NT_SUCCESS(status))
		return status;
	const struct vmm_picture picture = {.width = args.Width,
					    .height = args.Height,
					    .owner = device->process->id,
					    .format = args.Format};
	if (!bytes_per_pixel(picture.format))
		return not_supported(device, "its pixel format is not built");
	if (!picture.width || !picture.height)
		return refuse_cross_adapter(device,
					    "width or height described by the miniport is 0",
					    picture.width, picture.height);
	if (info->Size < bytes_of(&picture))
		return refuse_cross_adapter(
			device,
			"Size is too small for rows of multiples of 128 bytes and a height of a "
			"multiple of 4 rows",
			info->Size, bytes_of(&picture));
	status = vmm_section_create(device->adapter->os, vmm_align_up(info->Size, VMM_PAGE_SIZE),
				    &request->section);
	if (NT_SUCCESS(status))
		request->section->picture = picture;
	return status;
}

static NTSTATUS check_size(const struct vmm_device *device,
			   const struct vmm_allocate_request *request,
			   const DXGK_ALLOCATIONINFO *info)
{
	uint64_t shared_bytes = request->section->memory.size_bytes;

	if (vmm_align_up(info->Size, VMM_PAGE_SIZE) > shared_bytes)
		return refuse_cross_adapter(device, "Size exceeds the shared memory", info->Size,
					    shared_bytes);
	if (info->Size < bytes_of(&request->section->picture))
		return refuse_cross_adapter(device, "Size is less than the surface needs",
					    info->Size, bytes_of(&request->section->picture));
	return STATUS_SUCCESS;
}

NTSTATUS vmm_cross_adapter_check(struct vmm_device *device, struct vmm_allocate_request *request,
				 const DXGK_ALLOCATIONINFO *info)
{
	uint32_t flags = info->Flags.Value;
	uint32_t set = info->SupportedReadSegmentSet | info->SupportedWriteSegmentSet;

	if (!(flags & CPU_VISIBLE) || (flags & FORBIDDEN))
		return refuse_cross_adapter(
			device,
			"Flags must be CpuVisible, without Cached, Protected, Swizzled, "
			"PermanentSysMem or Existing...",
			flags, CPU_VISIBLE);
	if (flags != CPU_VISIBLE)
		return not_supported(device, "a flag other than CpuVisible is not built");
	if (!only_apertures(vmm_port_caps(device->adapter->port), set))
		return refuse_cross_adapter(device, "segment sets may contain apertures only", set,
					    0);
	if (info->Size >> 32)
		return not_supported(device, "4 GiB or more are not built");
	return request->section ? check_size(device, request, info)
				: create_section(device, request, info);
}

/* The opening device's resource ends with its last allocation, as every opened resource does. */
static void mark_opened(struct vmm_device *device, uint32_t handle)
{
	vmm_process_lock(device->process);
	struct vmm_resource *resource =
		vmm_handle_lookup(&device->process->handles, handle, VMM_HANDLE_RESOURCE);
	if (resource)
		resource->opened = true;
	vmm_process_unlock(device->process);
}

NTSTATUS vmm_cross_adapter_open(struct vmm_device *device, struct vmm_section *section,
				uint32_t *resource, uint32_t *allocation)
{
	struct vmm_allocate_item item = {0};
	struct vmm_allocate_request request = {
		.count = 1, .items = &item, .section = section, .cross_adapter = true};
	NTSTATUS status = vmm_resource_create(device, false, &request.runtime_resource);

	if (!NT_SUCCESS(status))
		return status;
	status = vmm_memory_allocate(device, &request);
	vmm_free(item.private_data);
	vmm_free((void *)(uintptr_t)request.private_data);
	if (!NT_SUCCESS(status)) {
		(void)!vmm_memory_deallocate(device, request.runtime_resource, NULL, 0, 0);
		return status;
	}
	mark_opened(device, request.resource_handle);
	*resource = request.resource_handle;
	*allocation = item.handle;
	return STATUS_SUCCESS;
}
