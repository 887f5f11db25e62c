/* SPDX-License-Identifier: MIT */
/*
 * Devices and contexts. A device only identifies itself in later calls; a context has the root of
 * its page tables if it uses GPU virtual addresses.
 */
#include "softgpu_private.h"

NTSTATUS APIENTRY softgpu_create_device(IN_CONST_HANDLE hAdapter,
					INOUT_PDXGKARG_CREATEDEVICE pCreateDevice)
{
	struct softgpu_adapter *adapter = hAdapter;
	const struct softgpu_settings *settings = &adapter->settings;
	struct softgpu_device *device =
		ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*device), SOFTGPU_POOL_TAG);

	if (!device)
		return STATUS_NO_MEMORY;
	device->adapter = adapter;
	device->info.DmaBufferSize = settings->dma_buffer_bytes;
	device->info.DmaBufferSegmentSet = settings->dma_buffer_segment_set;
	device->info.DmaBufferPrivateDataSize = sizeof(struct softgpu_dma_private);
	device->info.AllocationListSize = settings->allocation_list_size;
	device->info.PatchLocationListSize = settings->patch_location_list_size;
	pCreateDevice->hDevice = device;
	pCreateDevice->pInfo = &device->info;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_destroy_device(IN_CONST_HANDLE hDevice)
{
	ExFreePoolWithTag(hDevice, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

void softgpu_fill_context_info(const struct softgpu_settings *settings, DXGK_CONTEXTINFO *info)
{
	info->DmaBufferSize = settings->dma_buffer_bytes;
	info->DmaBufferSegmentSet = settings->dma_buffer_segment_set;
	info->DmaBufferPrivateDataSize = sizeof(struct softgpu_dma_private);
	info->AllocationListSize = settings->allocation_list_size;
	info->PatchLocationListSize = settings->patch_location_list_size;
}

/*
 * A node has one engine on each adapter of a link, so at most one bit of the affinity is set
 * (SCH-08).
 */
NTSTATUS APIENTRY softgpu_create_context(IN_CONST_HANDLE hDevice,
					 INOUT_PDXGKARG_CREATECONTEXT pCreateContext)
{
	struct softgpu_device *device = hDevice;
	const struct softgpu_settings *settings = &device->adapter->settings;
	DXGK_CONTEXTINFO *info = &pCreateContext->ContextInfo;
	struct softgpu_context *context;

	if (pCreateContext->NodeOrdinal >= SOFTGPU_NODES ||
	    pCreateContext->EngineAffinity >> device->adapter->link_count ||
	    (pCreateContext->EngineAffinity & (pCreateContext->EngineAffinity - 1)))
		return STATUS_INVALID_PARAMETER;
	context = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*context), SOFTGPU_POOL_TAG);
	if (!context)
		return STATUS_NO_MEMORY;
	context->adapter = device->adapter;
	context->node = pCreateContext->NodeOrdinal;
	softgpu_fill_context_info(settings, info);
	context->space = (struct softgpu_space){0};
	/* The memory of an older version's structure ends before Caps. */
	if (softgpu_is_wddm2(settings))
		info->Caps.NoPatchingRequired = pCreateContext->Flags.VirtualAddressing;
	pCreateContext->hContext = context;
	return STATUS_SUCCESS;
}

NTSTATUS APIENTRY softgpu_destroy_context(IN_CONST_HANDLE hContext)
{
	ExFreePoolWithTag(hContext, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}
