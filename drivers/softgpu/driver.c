/* SPDX-License-Identifier: MIT */
/* DriverEntry, and the adapter object from AddDevice to RemoveDevice. */
#include "softgpu_private.h"

NTSTATUS softgpu_add_device(const PDEVICE_OBJECT PhysicalDeviceObject, PVOID *MiniportDeviceContext)
{
	struct softgpu_adapter *adapter =
		ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(*adapter), SOFTGPU_POOL_TAG);

	if (!adapter)
		return STATUS_NO_MEMORY;
	softgpu_link_add(adapter, PhysicalDeviceObject);
	*MiniportDeviceContext = adapter;
	return STATUS_SUCCESS;
}

NTSTATUS softgpu_remove_device(IN_CONST_PVOID MiniportDeviceContext)
{
	softgpu_link_remove(MiniportDeviceContext);
	ExFreePoolWithTag(MiniportDeviceContext, SOFTGPU_POOL_TAG);
	return STATUS_SUCCESS;
}

/* The list of adapters (link.c) is the only state outside them; there is nothing to free. */
VOID softgpu_unload(VOID)
{
}

static void fill_device_entries(DRIVER_INITIALIZATION_DATA *data)
{
	data->DxgkDdiAddDevice = softgpu_add_device;
	data->DxgkDdiStartDevice = softgpu_start_device;
	data->DxgkDdiStopDevice = softgpu_stop_device;
	data->DxgkDdiRemoveDevice = softgpu_remove_device;
	data->DxgkDdiInterruptRoutine = softgpu_interrupt_routine;
	data->DxgkDdiDpcRoutine = softgpu_dpc_routine;
	data->DxgkDdiSetPowerState = softgpu_set_power_state;
	data->DxgkDdiUnload = softgpu_unload;
	data->DxgkDdiQueryAdapterInfo = softgpu_query_adapter_info;
	data->DxgkDdiResetFromTimeout = softgpu_reset_from_timeout;
	data->DxgkDdiRestartFromTimeout = softgpu_restart_from_timeout;
	data->DxgkDdiCollectDbgInfo = softgpu_collect_dbg_info;
	data->DxgkDdiQueryDependentEngineGroup = softgpu_query_dependent_engine_group;
	data->DxgkDdiQueryEngineStatus = softgpu_query_engine_status;
	data->DxgkDdiResetEngine = softgpu_reset_engine;
	data->DxgkDdiNotifySurpriseRemoval = softgpu_notify_surprise_removal;
	data->DxgkDdiGetNodeMetadata = softgpu_get_node_metadata;
	data->DxgkDdiEscape = softgpu_escape;
	data->DxgkDdiCalibrateGpuClock = softgpu_calibrate_gpu_clock;
}

static void fill_render_entries(DRIVER_INITIALIZATION_DATA *data)
{
	data->DxgkDdiCreateDevice = softgpu_create_device;
	data->DxgkDdiDestroyDevice = softgpu_destroy_device;
	data->DxgkDdiCreateContext = softgpu_create_context;
	data->DxgkDdiDestroyContext = softgpu_destroy_context;
	data->DxgkDdiCreateAllocation = softgpu_create_allocation;
	data->DxgkDdiDestroyAllocation = softgpu_destroy_allocation;
	data->DxgkDdiDescribeAllocation = softgpu_describe_allocation;
	data->DxgkDdiGetStandardAllocationDriverData = softgpu_get_standard_allocation_driver_data;
	data->DxgkDdiOpenAllocation = softgpu_open_allocation_info;
	data->DxgkDdiCloseAllocation = softgpu_close_allocation;
	data->DxgkDdiAcquireSwizzlingRange = softgpu_acquire_swizzling_range;
	data->DxgkDdiReleaseSwizzlingRange = softgpu_release_swizzling_range;
	data->DxgkDdiRender = softgpu_render;
	data->DxgkDdiPresent = softgpu_present;
	data->DxgkDdiSetVidPnSourceAddress = softgpu_set_vidpn_source_address;
	data->DxgkDdiSetVidPnSourceVisibility = softgpu_set_vidpn_source_visibility;
	data->DxgkDdiPatch = softgpu_patch;
	data->DxgkDdiSubmitCommand = softgpu_submit_command;
	data->DxgkDdiPreemptCommand = softgpu_preempt_command;
	data->DxgkDdiBuildPagingBuffer = softgpu_build_paging_buffer;
	data->DxgkDdiQueryCurrentFence = softgpu_query_current_fence;
}

static void fill_address_space_entries(DRIVER_INITIALIZATION_DATA *data)
{
	data->DxgkDdiCreateProcess = softgpu_create_process;
	data->DxgkDdiDestroyProcess = softgpu_destroy_process;
	data->DxgkDdiGetRootPageTableSize = softgpu_get_root_page_table_size;
	data->DxgkDdiSetRootPageTable = softgpu_set_root_page_table;
	data->DxgkDdiSubmitCommandVirtual = softgpu_submit_command_virtual;
}

static void fill_hw_queue_entries(DRIVER_INITIALIZATION_DATA *data)
{
	data->DxgkDdiCreateHwContext = softgpu_create_hw_context;
	data->DxgkDdiDestroyHwContext = softgpu_destroy_hw_context;
	data->DxgkDdiCreateHwQueue = softgpu_create_hw_queue;
	data->DxgkDdiDestroyHwQueue = softgpu_destroy_hw_queue;
	data->DxgkDdiSubmitCommandToHwQueue = softgpu_submit_command_to_hw_queue;
	data->DxgkDdiPresentToHwQueue = softgpu_present_to_hw_queue;
	data->DxgkDdiSetupPriorityBands = softgpu_setup_priority_bands;
	data->DxgkDdiSetContextSchedulingProperties = softgpu_set_context_scheduling_properties;
	data->DxgkDdiSuspendContext = softgpu_suspend_context;
	data->DxgkDdiResumeContext = softgpu_resume_context;
	data->DxgkDdiResetHwEngine = softgpu_reset_hw_engine;
	data->DxgkDdiResumeHwEngine = softgpu_resume_hw_engine;
}

int32_t softgpu_driver_entry(struct _DRIVER_OBJECT *driver, struct _UNICODE_STRING *registry_path)
{
	struct softgpu_settings settings;
	DRIVER_INITIALIZATION_DATA data;

	NTSTATUS status = softgpu_settings_read(registry_path, &settings);

	if (!NT_SUCCESS(status))
		return status;
	if (!softgpu_settings_version_is_valid(&settings))
		return STATUS_NOT_SUPPORTED;
	memset(&data, 0, sizeof(data));
	data.Version = settings.interface_version;
	fill_device_entries(&data);
	fill_render_entries(&data);
	if (softgpu_is_wddm2(&settings))
		fill_address_space_entries(&data);
	if (settings.hardware_queues)
		fill_hw_queue_entries(&data);
	if (settings.linked_adapters == SOFTGPU_LINKS)
		data.DxgkDdiLinkDevice = softgpu_link_device;
	return DxgkInitialize(driver, registry_path, &data);
}
