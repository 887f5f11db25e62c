/* SPDX-License-Identifier: MIT */
/*
 * The adapter from StartDevice to StopDevice: resources, memory, engines. All functions run at
 * PASSIVE while no other thread is in the miniport, except softgpu_notify_surprise_removal, which
 * may be called at any time.
 */
#include "softgpu_private.h"

#include "atomic.h"

/* A BAR of 4 GiB or more has its length in units that the descriptor's flags tell. */
#ifndef CM_RESOURCE_MEMORY_LARGE_40
#define CM_RESOURCE_MEMORY_LARGE_40 0x0200
#define CM_RESOURCE_MEMORY_LARGE_48 0x0400
#define CM_RESOURCE_MEMORY_LARGE_64 0x0800
#endif

static uint64_t memory_length(const CM_PARTIAL_RESOURCE_DESCRIPTOR *descriptor)
{
	uint64_t length = descriptor->u.Memory.Length;

	if (descriptor->Type == CmResourceTypeMemory)
		return length;
	if (descriptor->Flags & CM_RESOURCE_MEMORY_LARGE_40)
		return length << 8;
	if (descriptor->Flags & CM_RESOURCE_MEMORY_LARGE_48)
		return length << 16;
	return descriptor->Flags & CM_RESOURCE_MEMORY_LARGE_64 ? length << 32 : 0;
}

/* The first memory resource is BAR 0; the second, if any, is the memory of the monitors (BAR 1). */
static NTSTATUS find_memory(const CM_RESOURCE_LIST *resources, struct softgpu_adapter *adapter,
			    PHYSICAL_ADDRESS *monitor, uint64_t *monitor_bytes)
{
	const CM_PARTIAL_RESOURCE_LIST *list;
	ULONG i;

	*monitor_bytes = 0;

	if (!resources || !resources->Count)
		return STATUS_DEVICE_CONFIGURATION_ERROR;
	list = &resources->List[0].PartialResourceList;
	for (i = 0; i < list->Count; i++) {
		const CM_PARTIAL_RESOURCE_DESCRIPTOR *descriptor = &list->PartialDescriptors[i];

		if (descriptor->Type != CmResourceTypeMemory &&
		    descriptor->Type != CmResourceTypeMemoryLarge)
			continue;
		if (adapter->memory.vram_bytes) {
			*monitor = descriptor->u.Memory.Start;
			*monitor_bytes = memory_length(descriptor);
			break;
		}
		adapter->vram_address = descriptor->u.Memory.Start;
		adapter->memory.vram_bytes = memory_length(descriptor);
	}
	return adapter->memory.vram_bytes && adapter->memory.vram_bytes % SOFTGPU_PAGE == 0 &&
			       adapter->memory.vram_bytes <= SOFTGPU_APERTURE_BASE
		       ? STATUS_SUCCESS
		       : STATUS_DEVICE_CONFIGURATION_ERROR;
}

static NTSTATUS create_memory(struct softgpu_adapter *adapter)
{
	struct softgpu_memory *memory = &adapter->memory;
	uint32_t ranges = adapter->settings.swizzling_ranges;

	memory->vram =
		MmMapIoSpace(adapter->vram_address, (SIZE_T)memory->vram_bytes, MmWriteCombined);
	if (!memory->vram)
		return STATUS_NO_MEMORY;
	memory->drops_content = !adapter->settings.move_content;
	memory->lead = adapter->link_count > 1 ? &adapter->link[0]->memory : NULL;
	memory->aperture_pages = adapter->settings.aperture_bytes >> SOFTGPU_PAGE_SHIFT;
	memory->aperture = ExAllocatePool2(
		POOL_FLAG_NON_PAGED,
		(SIZE_T)(memory->aperture_pages + 1) * sizeof(*memory->aperture), SOFTGPU_POOL_TAG);
	/* One spare element each, so that an array with no elements can be allocated too. */
	adapter->ranges =
		ExAllocatePool2(POOL_FLAG_NON_PAGED,
				((SIZE_T)ranges + 1) * sizeof(*adapter->ranges), SOFTGPU_POOL_TAG);
	memory->windows =
		ExAllocatePool2(POOL_FLAG_NON_PAGED,
				((SIZE_T)ranges + 1) * sizeof(*memory->windows), SOFTGPU_POOL_TAG);
	adapter->dummy_mdl = IoAllocateMdl(NULL, (ULONG)SOFTGPU_PAGE, FALSE, FALSE, NULL);
	return memory->aperture && adapter->ranges && memory->windows && adapter->dummy_mdl
		       ? STATUS_SUCCESS
		       : STATUS_NO_MEMORY;
}

/* Banks are equal parts of whole pages; the last one gets the remainder. */
static void divide_into_banks(struct softgpu_adapter *adapter)
{
	uint32_t banks = adapter->settings.vram_banks, i;
	uint64_t pages = adapter->memory.vram_bytes >> SOFTGPU_PAGE_SHIFT;

	for (i = 0; i < banks; i++)
		adapter->bank_ends[i] = (SIZE_T)((pages * (i + 1) / banks) << SOFTGPU_PAGE_SHIFT);
}

static void destroy_memory(struct softgpu_adapter *adapter)
{
	struct softgpu_memory *memory = &adapter->memory;

	if (adapter->dummy)
		MmUnmapLockedPages(adapter->dummy, adapter->dummy_mdl);
	if (adapter->dummy_mdl)
		IoFreeMdl(adapter->dummy_mdl);
	if (memory->vram)
		MmUnmapIoSpace(memory->vram, (SIZE_T)memory->vram_bytes);
	if (memory->aperture)
		ExFreePoolWithTag(memory->aperture, SOFTGPU_POOL_TAG);
	if (memory->windows)
		ExFreePoolWithTag(memory->windows, SOFTGPU_POOL_TAG);
	if (adapter->ranges)
		ExFreePoolWithTag(adapter->ranges, SOFTGPU_POOL_TAG);
	if (adapter->scratch)
		ExFreePoolWithTag(adapter->scratch, SOFTGPU_POOL_TAG);
	memset(memory, 0, sizeof(*memory));
	adapter->dummy = NULL;
	adapter->dummy_mdl = NULL;
	adapter->ranges = NULL;
	adapter->scratch = NULL;
	adapter->scratch_bytes = 0;
}

static void stop(struct softgpu_adapter *adapter)
{
	uint32_t node;

	softgpu_display_stop(&adapter->display);
	for (node = 0; node < SOFTGPU_NODES; node++)
		softgpu_engine_stop(&adapter->engines[node]);
	destroy_memory(adapter);
}

/* The host enables hardware scheduling. Before 2.6 a miniport cannot ask (SCH-10). */
static int takes_hw_queues(const struct softgpu_adapter *adapter)
{
	DXGKARGCB_ISFEATUREENABLED ask = {adapter->dxgk.DeviceHandle, DXGK_FEATURE_HWSCH, FALSE};

	if (!adapter->settings.hardware_queues)
		return 0;
	if (adapter->settings.interface_version < DXGKDDI_INTERFACE_VERSION_WDDM2_6)
		return 1;
	return NT_SUCCESS(adapter->dxgk.DxgkCbIsFeatureEnabled(&ask)) && ask.Enabled;
}

static NTSTATUS start(struct softgpu_adapter *adapter)
{
	DXGK_DEVICE_INFO info;
	PHYSICAL_ADDRESS monitor = {0};
	uint64_t monitor_bytes = 0;
	NTSTATUS status;
	uint32_t node;

	memset(&info, 0, sizeof(info));
	status = adapter->dxgk.DxgkCbGetDeviceInformation(adapter->dxgk.DeviceHandle, &info);
	if (!NT_SUCCESS(status))
		return status;
	status = softgpu_settings_read(&info.DeviceRegistryPath, &adapter->settings);
	if (!NT_SUCCESS(status))
		return status;
	status = softgpu_settings_check(&adapter->settings);
	if (NT_SUCCESS(status))
		status =
			find_memory(info.TranslatedResourceList, adapter, &monitor, &monitor_bytes);
	if (NT_SUCCESS(status))
		status = create_memory(adapter);
	divide_into_banks(adapter);
	if (NT_SUCCESS(status))
		adapter->takes_hw_queues = takes_hw_queues(adapter);
	for (node = 0; node < SOFTGPU_NODES && NT_SUCCESS(status); node++)
		status = softgpu_engine_start(&adapter->engines[node], adapter, node);
	if (NT_SUCCESS(status))
		status = softgpu_display_start(adapter, monitor, monitor_bytes);
	return status;
}

NTSTATUS softgpu_start_device(IN_CONST_PVOID MiniportDeviceContext, PDXGK_START_INFO DxgkStartInfo,
			      PDXGKRNL_INTERFACE DxgkInterface, PULONG NumberOfVideoPresentSources,
			      PULONG NumberOfChildren)
{
	struct softgpu_adapter *adapter = MiniportDeviceContext;
	NTSTATUS status;

	adapter->start_info = *DxgkStartInfo;
	memcpy(&adapter->dxgk, DxgkInterface,
	       DxgkInterface->Size < sizeof(adapter->dxgk) ? DxgkInterface->Size
							   : sizeof(adapter->dxgk));
	KeInitializeSpinLock(&adapter->report_lock);
	status = start(adapter);
	if (!NT_SUCCESS(status)) {
		stop(adapter);
		return status;
	}
	*NumberOfVideoPresentSources = adapter->settings.source_count;
	*NumberOfChildren = adapter->settings.source_count;
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_stop_device(IN_CONST_PVOID MiniportDeviceContext)
{
	stop(MiniportDeviceContext);
	return STATUS_SUCCESS;
}

/*
 * Everything has been evicted and the aperture unmapped before the power is removed (PNP-05). The
 * page table is cleared because its content would be stale when the power comes back, and so would
 * the TLBs.
 */
NTSTATUS softgpu_set_power_state(IN_CONST_PVOID MiniportDeviceContext, ULONG DeviceUid,
				 DEVICE_POWER_STATE DevicePowerState, POWER_ACTION ActionType)
{
	struct softgpu_adapter *adapter = MiniportDeviceContext;
	uint32_t node;

	(void)DeviceUid; /* there are no child devices: the request is for the adapter */
	(void)ActionType;
	if (DevicePowerState == PowerDeviceD3) {
		softgpu_aperture_clear(&adapter->memory);
		softgpu_bus_hold(softgpu_bus_of(adapter));
		for (node = 0; node < SOFTGPU_NODES; node++)
			softgpu_mmu_flush_all(&adapter->engines[node].mmu);
		softgpu_bus_release(softgpu_bus_of(adapter));
	}
	return STATUS_SUCCESS;
}

/* May overlap any other call (PNP-08). What was submitted is lost with the device. */
NTSTATUS softgpu_notify_surprise_removal(PVOID MiniportDeviceContext,
					 DXGK_SURPRISE_REMOVAL_TYPE RemovalType)
{
	struct softgpu_adapter *adapter = MiniportDeviceContext;
	uint32_t node;

	(void)RemovalType;
	for (node = 0; node < SOFTGPU_NODES; node++) {
		struct softgpu_engine *engine = &adapter->engines[node];
		KIRQL irql;

		KeAcquireSpinLock(&engine->lock, &irql);
		softgpu_store32(&engine->is_removed, 1);
		KeReleaseSpinLock(&engine->lock, irql);
	}
	return STATUS_SUCCESS;
}
