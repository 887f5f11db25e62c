/* SPDX-License-Identifier: MIT */
/*
 * Allocations that no user-mode driver describes: an existing heap (ALF-38), which is memory of the
 * caller or of a section that becomes an allocation. The miniport gets the private data that its
 * DxgkDdiGetStandardAllocationDriverData returns for a surface in existing system memory, never
 * that of the caller (ALC-03).
 *
 * The documentation does not say what kind of surface a heap is. This file describes it as a byte
 * surface, one page wide and as high as the heap has pages (inferred).
 */
#include "memory/calls/creation.h"

enum { EXISTING_SYSMEM = 0x10 };

static NTSTATUS refuse_standard(const struct vmm_device *device, const char *rule, const char *what,
				uint64_t is, uint64_t wanted)
{
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, rule,
			       device->process->id, device->handle,
			       "create refused: %s (is %llu, expected %llu)", what,
			       (unsigned long long)is, (unsigned long long)wanted);
}

static NTSTATUS not_supported(const struct vmm_device *device, const char *what)
{
	return vmm_refuse_reason(device->adapter->observe, STATUS_NOT_SUPPORTED,
				 device->process->id, device->handle, "ALF-38: create refused: %s",
				 what);
}

static NTSTATUS call_miniport(const struct vmm_device *device,
			      DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args)
{
	struct vmm_os *os = device->adapter->os;
	struct vmm_process *before = vmm_calling_process_set(os, device->process);
	NTSTATUS status = vmm_port_standard_allocation(device->adapter->port, args);

	vmm_calling_process_set(os, before);
	return status;
}

/* The request owns the buffers, also if only one could be allocated. */
static NTSTATUS attach_buffers(DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA *args,
			       struct vmm_allocate_request *request)
{
	struct vmm_allocate_item *item = &request->items[0];

	item->private_bytes = args->AllocationPrivateDriverDataSize;
	request->private_bytes = args->ResourcePrivateDriverDataSize;
	if (item->private_bytes)
		item->private_data = vmm_calloc(1, item->private_bytes);
	if (request->private_bytes) {
		args->pResourcePrivateDriverData = vmm_calloc(1, request->private_bytes);
		request->private_data = args->pResourcePrivateDriverData;
	}
	args->pAllocationPrivateDriverData = item->private_data;
	return (item->private_bytes && !item->private_data) ||
			       (request->private_bytes && !request->private_data)
		       ? STATUS_NO_MEMORY
		       : STATUS_SUCCESS;
}

/* Calls the miniport twice: for the sizes, then for the data. */
NTSTATUS vmm_standard_ask(struct vmm_device *device, struct vmm_allocate_request *request,
			  const char *rule, D3DKMDT_GDISURFACEDATA *surface)
{
	DXGKARG_GETSTANDARDALLOCATIONDRIVERDATA args = {
		.StandardAllocationType = D3DKMDT_STANDARDALLOCATION_GDISURFACE,
		.pCreateGdiSurfaceData = surface};
	NTSTATUS status = call_miniport(device, &args);

	request->standard = true;
	if (!NT_SUCCESS(status))
		return status;
	status = attach_buffers(&args, request);
	if (NT_SUCCESS(status))
		status = call_miniport(device, &args);
	if (!NT_SUCCESS(status))
		return status;
	if (args.AllocationPrivateDriverDataSize != request->items[0].private_bytes)
		return refuse_standard(
			device, rule, "the size of the miniport's standard data changed",
			args.AllocationPrivateDriverDataSize, request->items[0].private_bytes);
	if (args.ResourcePrivateDriverDataSize != request->private_bytes)
		return refuse_standard(device, rule,
				       "the size of the miniport's standard resource data changed",
				       args.ResourcePrivateDriverDataSize, request->private_bytes);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_standard_describe(struct vmm_device *device, struct vmm_allocate_request *request)
{
	NTSTATUS status;

	if (request->heap_bytes > UINT32_MAX)
		return not_supported(device, "existing memory of 4 GiB or more is not built");
	vmm_assert(!request->items[0].private_bytes && !request->private_bytes);
	if (device->adapter->interface_version < DXGKDDI_INTERFACE_VERSION_WIN7)
		return not_supported(device, "the miniport's interface has no surfaces in existing "
					     "system memory");
	D3DKMDT_GDISURFACEDATA surface = {.Width = (UINT)VMM_PAGE_SIZE,
					  .Height = (UINT)(request->heap_bytes >> VMM_PAGE_SHIFT),
					  .Format = D3DDDIFMT_A8,
					  .Type = D3DKMDT_GDISURFACE_EXISTINGSYSMEM,
					  .Pitch = (UINT)VMM_PAGE_SIZE};
	status = vmm_standard_ask(device, request, "ALF-38", &surface);
	return status == STATUS_NOT_SUPPORTED
		       ? not_supported(device,
				       "the miniport knows no surface in existing system memory")
		       : status;
}

NTSTATUS vmm_standard_check(struct vmm_device *device, const struct vmm_allocate_request *request,
			    const DXGK_ALLOCATIONINFO *info)
{
	if (!info->hAllocation || !info->Size)
		return STATUS_SUCCESS; /* refused by other rules (ALF-33, SEG-11) */
	if (!(info->Flags.Value & EXISTING_SYSMEM))
		return refuse_standard(device, "ALF-38",
				       "the miniport's Flags have no ExistingSysMem",
				       info->Flags.Value, EXISTING_SYSMEM);
	if (info->Size != request->heap_bytes)
		return refuse_standard(device, "ALF-38",
				       "the miniport's Size differs from the heap's", info->Size,
				       request->heap_bytes);
	return STATUS_SUCCESS;
}
