/* SPDX-License-Identifier: MIT */
/*
 * The services that WDDM 2 added. A physically addressed adapter needs only those for handle data.
 * The others serve GPU virtual addresses, displays, hardware queues and isolation. Those that are
 * not built report that.
 */
#include <string.h>
#include "port/port_internal.h"

static NTSTATUS not_built(HANDLE handle, const char *callback)
{
	return vmm_port_cb_not_built(handle, callback);
}

/*
 * The object lives at least until the end of the DDI call in which it is acquired: its destruction
 * waits for that call. So the release has nothing to undo.
 */
static VOID *acquire_handle_data(IN_CONST_PDXGKARGCB_GETHANDLEDATA data, PHANDLE release)
{
	VOID *result = vmm_port_cb_get_handle_data(data);

	if (release)
		*release = result;
	if (result)
		vmm_port_verify_acquired(vmm_port_of_thread());
	return result;
}

static VOID release_handle_data(DXGKARGCB_RELEASEHANDLEDATA data)
{
	struct vmm_port *port = vmm_port_of_thread();

	if (port && data.ReleaseHandle)
		vmm_port_verify_released(port);
	if (port)
		vmm_port_callback_event(port, VIDMM_CB_OTHER,
					data.ReleaseHandle ? STATUS_SUCCESS
							   : STATUS_INVALID_HANDLE);
}

static D3DGPU_VIRTUAL_ADDRESS map_context_allocation(IN_CONST_HANDLE handle,
						     IN_CONST_PDXGKARGCB_MAPCONTEXTALLOCATION args)
{
	static const char name[] = "DxgkCbMapContextAllocation";
	struct vmm_port *port = args ? vmm_port_from_handle(handle, name) : NULL;
	D3DGPU_VIRTUAL_ADDRESS address = 0;

	if (!port || !vmm_port_below(port, PASSIVE_LEVEL, name))
		return 0;
	if (!port->sink->map_context_allocation) {
		not_built(handle, name);
		return 0;
	}
	NTSTATUS status = port->sink->map_context_allocation(port->sink_context, args, &address);

	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return address;
}

static NTSTATUS update_context_allocation(IN_CONST_HANDLE handle,
					  IN_CONST_PDXGKARGCB_UPDATECONTEXTALLOCATION args)
{
	static const char name[] = "DxgkCbUpdateContextAllocation";
	struct vmm_port *port = args ? vmm_port_from_handle(handle, name) : NULL;

	if (!port || !vmm_port_below(port, PASSIVE_LEVEL, name))
		return STATUS_INVALID_PARAMETER;
	if (!port->sink->update_context_allocation)
		return not_built(handle, name);
	NTSTATUS status = port->sink->update_context_allocation(port->sink_context, args);

	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return status;
}

static NTSTATUS reserve_gpu_virtual_address_range(
	IN_CONST_HANDLE handle, INOUT_PDXGKARGCB_RESERVEGPUVIRTUALADDRESSRANGE args)
{
	return vmm_port_cb_reserve(handle, args);
}

static VOID hardware_content_protection_teardown(IN_CONST_HANDLE handle, UINT flags)
{
	(void)flags;
	not_built(handle, "DxgkCbHardwareContentProtectionTeardown");
}

static VOID multi_plane_overlay_disabled(IN_CONST_HANDLE handle, UINT source)
{
	(void)source;
	not_built(handle, "DxgkCbMultiPlaneOverlayDisabled");
}

/*
 * C-36: the enabled features are those that the adapter was started with. Port records each feature
 * that it confirmed, since a miniport must ask before it uses one.
 */
static NTSTATUS answer_feature(HANDLE handle, DXGK_FEATURE_ID id, BOOLEAN *enabled,
			       const char *callback)
{
	struct vmm_port *port = vmm_port_from_handle(handle, callback);

	if (!port)
		return STATUS_INVALID_PARAMETER;
	if (!vmm_port_below(port, PASSIVE_LEVEL, callback))
		return STATUS_INVALID_PARAMETER;
	*enabled = (uint32_t)id < 32 && (port->lead->features & 1u << id);
	if (*enabled)
		atomic_fetch_or(&port->lead->enabled_features, 1u << id);
	vmm_port_callback_event(port, VIDMM_CB_OTHER, STATUS_SUCCESS);
	return STATUS_SUCCESS;
}

static NTSTATUS is_feature_enabled(DXGKARGCB_ISFEATUREENABLED *args)
{
	return args ? answer_feature(args->DeviceHandle, args->FeatureId, &args->Enabled,
				     "DxgkCbIsFeatureEnabled")
		    : STATUS_INVALID_PARAMETER;
}

static NTSTATUS query_feature_support(DXGKARGCB_QUERYFEATURESUPPORT *args)
{
	if (!args || args->DriverSupportState > DXGK_FEATURE_SUPPORT_ALWAYS_ON)
		return STATUS_INVALID_PARAMETER;
	return answer_feature(args->DeviceHandle, args->FeatureId, &args->Enabled,
			      "DxgkCbQueryFeatureSupport");
}

/* TDR-21: allowed only inside ResetHwEngine, where the core waits for it. */
static NTSTATUS invalidate_hw_context(IN_CONST_PDXGKARGCB_INVALIDATEHWCONTEXT args)
{
	struct vmm_port *port = vmm_port_of_thread();
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	if (!port || !args)
		return STATUS_INVALID_PARAMETER;
	if (!vmm_port_below(port, PASSIVE_LEVEL, "DxgkCbInvalidateHwContext"))
		return STATUS_INVALID_PARAMETER;
	if (!port->caps.hw_nodes || !port->sink->invalidate_hw_context)
		return not_built(NULL, "DxgkCbInvalidateHwContext");
	if (args->Flags.Reserved)
		vmm_finding(port->observe, "TDR-21", 0, 0,
			    "DxgkCbInvalidateHwContext: flags 0x%x have reserved bits set",
			    args->Flags.Value);
	else
		status = port->sink->invalidate_hw_context(port->sink_context, args->hHwContext,
							   args->Flags.CollateralDamage);
	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return status;
}

static NTSTATUS undeclared_service(VOID)
{
	return not_built(NULL, "a service of WDDM 2.1 or later");
}

static const DXGKRNL_INTERFACE declared_services = {
	.DxgkCbMapContextAllocation = map_context_allocation,
	.DxgkCbUpdateContextAllocation = update_context_allocation,
	.DxgkCbReserveGpuVirtualAddressRange = reserve_gpu_virtual_address_range,
	.DxgkCbAcquireHandleData = acquire_handle_data,
	.DxgkCbReleaseHandleData = release_handle_data,
	.DxgkCbSignalEvent = vmm_port_cb_signal_event,
	.DxgkCbHardwareContentProtectionTeardown = hardware_content_protection_teardown,
	.DxgkCbMultiPlaneOverlayDisabled = multi_plane_overlay_disabled,
	.DxgkCbIsFeatureEnabled = is_feature_enabled,
	.DxgkCbQueryFeatureSupport = query_feature_support,
};

void vmm_port_services_fill_wddm2(DXGKRNL_INTERFACE *s)
{
	const size_t begin = offsetof(DXGKRNL_INTERFACE, DxgkCbMapContextAllocation);

	memcpy((char *)s + begin, (const char *)&declared_services + begin,
	       sizeof(declared_services) - begin);
	s->DxgkCbMitigatedRangeUpdate = undeclared_service;
	s->DxgkCbInvalidateHwContext = invalidate_hw_context;
	s->DxgkCbIndicateConnectorChange = undeclared_service;
	s->DxgkCbUnblockUEFIFrameBufferRanges = undeclared_service;
	s->DxgkCbAcquirePostDisplayOwnership2 = undeclared_service;
	s->DxgkCbSetProtectedSessionStatus = undeclared_service;
	s->DxgkCbAllocateContiguousMemory = undeclared_service;
	s->DxgkCbFreeContiguousMemory = undeclared_service;
	s->DxgkCbAllocatePagesForMdl = undeclared_service;
	s->DxgkCbFreePagesFromMdl = undeclared_service;
	s->DxgkCbPinFrameBufferForSave = undeclared_service;
	s->DxgkCbUnpinFrameBufferForSave = undeclared_service;
	s->DxgkCbMapFrameBufferPointer = undeclared_service;
	s->DxgkCbUnmapFrameBufferPointer = undeclared_service;
	s->DxgkCbMapMdlToIoMmu = undeclared_service;
	s->DxgkCbUnmapMdlFromIoMmu = undeclared_service;
	s->DxgkCbReportDiagnostic = undeclared_service;
	s->DxgkCbSaveMemoryForHotUpdate = undeclared_service;
	s->DxgkCbNotifyCursorSupportChange = undeclared_service;
	s->DxgkCbCreatePhysicalMemoryObject = undeclared_service;
	s->DxgkCbDestroyPhysicalMemoryObject = undeclared_service;
	s->DxgkCbMapPhysicalMemory = undeclared_service;
	s->DxgkCbUnmapPhysicalMemory = undeclared_service;
	s->DxgkCbAllocateAdl = undeclared_service;
	s->DxgkCbFreeAdl = undeclared_service;
	s->DxgkCbOpenPhysicalMemoryObject = undeclared_service;
	s->DxgkCbClosePhysicalMemoryObject = undeclared_service;
	s->DxgkCbPinFrameBufferForSave2 = undeclared_service;
}
