/* SPDX-License-Identifier: MIT */
/*
 * DXGKRNL_INTERFACE: the table of services for the miniport, in the size that its interface version
 * knows. An unsupported service is present, returns STATUS_NOT_SUPPORTED and leaves an event. Also
 * here: finding the port that a callback is meant for, and the handle look-ups.
 */
#include <string.h>
#include "port/port_internal.h"

struct vmm_port *vmm_port_of_thread(void)
{
	struct vmm_os *os = vmm_os_current();

	if (!os)
		return NULL;
	return (struct vmm_port *)(uintptr_t)(VMM_OS_OWN(os)->slot[VMM_PORT_THREAD_SLOT] &
					      (((uint64_t)1 << VMM_PORT_PLACE_SHIFT) - 1));
}

struct vmm_port *vmm_port_from_handle(HANDLE handle, const char *callback)
{
	struct vmm_port *port = handle, *inside;

	if (vmm_likely(port && port->magic == VMM_PORT_MAGIC))
		return port;
	inside = vmm_port_of_thread();
	if (inside)
		vmm_finding(inside->observe, "NT-07", 0, 0,
			    "%s: the handle is not DXGKRNL_INTERFACE.DeviceHandle%s", callback,
			    handle && handle == inside->adapter
				    ? " (it is the miniport's own hAdapter)"
				    : "");
	return NULL;
}

bool vmm_port_below(struct vmm_port *port, uint32_t limit, const char *callback)
{
	uint32_t irql = vmm_nt_irql(port->nt);

	if (vmm_likely(irql <= limit))
		return true;
	vmm_finding(port->observe, "NT-01", 0, 0, "%s called at IRQL %u, its limit is %u: refused",
		    callback, irql, limit);
	return false;
}

/*
 * For callbacks without DeviceHandle. DDIs run on threads of the library, so the thread identifies
 * the adapter.
 */
static struct vmm_port *port_for_handles(const char *callback)
{
	struct vmm_port *port = vmm_port_of_thread();

	return port && vmm_port_below(port, VMM_NT_APC, callback) ? port : NULL;
}

VOID *vmm_port_cb_get_handle_data(IN_CONST_PDXGKARGCB_GETHANDLEDATA data)
{
	struct vmm_port *port = port_for_handles("DxgkCbGetHandleData");
	VOID *result;

	if (!port || !data)
		return NULL;
	result = port->sink->handle_data(port->sink_context, data->hObject, data->Type,
					 data->Flags.DeviceSpecific);
	vmm_port_callback_event(port, VIDMM_CB_GET_HANDLE_DATA,
				result ? STATUS_SUCCESS : STATUS_INVALID_HANDLE);
	return result;
}

static D3DKMT_HANDLE get_handle_parent(D3DKMT_HANDLE allocation)
{
	struct vmm_port *port = port_for_handles("DxgkCbGetHandleParent");
	D3DKMT_HANDLE parent;

	if (!port)
		return 0;
	parent = port->sink->handle_parent(port->sink_context, allocation);
	vmm_port_callback_event(port, VIDMM_CB_OTHER,
				parent ? STATUS_SUCCESS : STATUS_INVALID_HANDLE);
	return parent;
}

/*
 * Reports an unsupported callback. Without a DeviceHandle the event needs a thread that is inside a
 * DDI.
 */
NTSTATUS vmm_port_cb_not_built(HANDLE handle, const char *callback)
{
	struct vmm_port *port =
		handle ? vmm_port_from_handle(handle, callback) : vmm_port_of_thread();

	if (port) {
		vmm_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0, "%s is not built", callback);
		vmm_port_callback_event(port, VIDMM_CB_OTHER, STATUS_NOT_SUPPORTED);
	}
	return STATUS_NOT_SUPPORTED;
}

static NTSTATUS not_built(HANDLE handle, const char *callback)
{
	return vmm_port_cb_not_built(handle, callback);
}

static D3DKMT_HANDLE enum_handle_children(IN_CONST_PDXGKARGCB_ENUMHANDLECHILDREN data)
{
	struct vmm_port *port = port_for_handles("DxgkCbEnumHandleChildren");
	D3DKMT_HANDLE child;

	if (!port || !data)
		return 0;
	if (!port->sink->handle_child) {
		not_built(NULL, "DxgkCbEnumHandleChildren");
		return 0;
	}
	child = port->sink->handle_child(port->sink_context, data->hObject, data->Index);
	vmm_port_callback_event(port, VIDMM_CB_OTHER,
				child ? STATUS_SUCCESS : STATUS_INVALID_HANDLE);
	return child;
}

static NTSTATUS eval_acpi_method(HANDLE handle, ULONG uid, PACPI_EVAL_INPUT_BUFFER_COMPLEX input,
				 ULONG input_size, PACPI_EVAL_OUTPUT_BUFFER output,
				 ULONG output_size)
{
	(void)uid, (void)input, (void)input_size, (void)output, (void)output_size;
	return not_built(handle, "DxgkCbEvalAcpiMethod");
}

static NTSTATUS indicate_child_status(HANDLE handle, PDXGK_CHILD_STATUS status)
{
	(void)status;
	return not_built(handle, "DxgkCbIndicateChildStatus");
}

static NTSTATUS query_services(HANDLE handle, DXGK_SERVICES type, PINTERFACE interface)
{
	(void)type, (void)interface;
	return not_built(handle, "DxgkCbQueryServices");
}

static NTSTATUS query_vidpn_interface(D3DKMDT_HVIDPN vidpn, DXGK_VIDPN_INTERFACE_VERSION version,
				      const DXGK_VIDPN_INTERFACE **interface)
{
	(void)vidpn, (void)version, (void)interface;
	return not_built(NULL, "DxgkCbQueryVidPnInterface");
}

static NTSTATUS query_monitor_interface(IN_CONST_HANDLE handle, ULONG version,
					const VOID **interface)
{
	(void)version, (void)interface;
	return not_built(handle, "DxgkCbQueryMonitorInterface");
}

static NTSTATUS get_capture_address(INOUT_PDXGKARGCB_GETCAPTUREADDRESS data)
{
	(void)data;
	return not_built(NULL, "DxgkCbGetCaptureAddress");
}

static VOID log_etw_event(LPCGUID guid, UCHAR type, USHORT size, PVOID buffer)
{
	struct vmm_port *port = vmm_port_of_thread();

	(void)guid, (void)type, (void)size, (void)buffer;
	/* Drivers log often and expect no answer, so this leaves an event without a text. */
	if (port)
		vmm_port_callback_event(port, VIDMM_CB_OTHER, STATUS_NOT_SUPPORTED);
}

static NTSTATUS exclude_adapter_access(HANDLE handle, ULONG attributes,
				       DXGKDDI_PROTECTED_CALLBACK callback, PVOID context)
{
	(void)attributes, (void)callback, (void)context;
	return not_built(handle, "DxgkCbExcludeAdapterAccess");
}

/* PRE-11: both callbacks may wait, so they need PASSIVE_LEVEL. */
static struct vmm_port *port_for_context_allocation(HANDLE handle, const char *callback)
{
	struct vmm_port *port = vmm_port_from_handle(handle, callback);

	return port && vmm_port_below(port, VMM_NT_PASSIVE, callback) ? port : NULL;
}

static NTSTATUS create_context_allocation(INOUT_PDXGKARGCB_CREATECONTEXTALLOCATION data)
{
	static const char name[] = "DxgkCbCreateContextAllocation";
	struct vmm_port *port = data ? port_for_context_allocation(data->hAdapter, name) : NULL;
	NTSTATUS status;

	if (!port)
		return STATUS_INVALID_PARAMETER;
	if (!port->sink->create_context_allocation)
		return vmm_port_cb_not_built(port, name);
	status = port->sink->create_context_allocation(port->sink_context, data);
	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return status;
}

static NTSTATUS destroy_context_allocation(IN_CONST_HANDLE handle, IN_CONST_HANDLE allocation)
{
	static const char name[] = "DxgkCbDestroyContextAllocation";
	struct vmm_port *port = port_for_context_allocation(handle, name);
	NTSTATUS status;

	if (!port)
		return STATUS_INVALID_PARAMETER;
	if (!port->sink->destroy_context_allocation)
		return vmm_port_cb_not_built(port, name);
	status = port->sink->destroy_context_allocation(port->sink_context, allocation);
	vmm_port_callback_event(port, VIDMM_CB_OTHER, status);
	return status;
}

static VOID set_power_component_active(IN_CONST_HANDLE handle, UINT component)
{
	(void)component;
	not_built(handle, "DxgkCbSetPowerComponentActive");
}

static VOID set_power_component_idle(IN_CONST_HANDLE handle, UINT component)
{
	(void)component;
	not_built(handle, "DxgkCbSetPowerComponentIdle");
}

static NTSTATUS acquire_post_display_ownership(HANDLE handle, PDXGK_DISPLAY_INFORMATION information)
{
	(void)information;
	return not_built(handle, "DxgkCbAcquirePostDisplayOwnership");
}

static NTSTATUS power_runtime_control_request(IN_CONST_HANDLE handle, LPCGUID code, PVOID in,
					      SIZE_T in_size, PVOID out, SIZE_T out_size,
					      PSIZE_T returned)
{
	(void)code, (void)in, (void)in_size, (void)out, (void)out_size, (void)returned;
	return not_built(handle, "DxgkCbPowerRuntimeControlRequest");
}

static VOID set_power_component_latency(IN_CONST_HANDLE handle, UINT component, ULONGLONG latency)
{
	(void)component, (void)latency;
	not_built(handle, "DxgkCbSetPowerComponentLatency");
}

static VOID set_power_component_residency(IN_CONST_HANDLE handle, UINT component,
					  ULONGLONG residency)
{
	(void)component, (void)residency;
	not_built(handle, "DxgkCbSetPowerComponentResidency");
}

static VOID complete_f_state_transition(IN_CONST_HANDLE handle, UINT component)
{
	(void)component;
	not_built(handle, "DxgkCbCompleteFStateTransition");
}

static NTSTATUS complete_p_state_transition(IN_CONST_HANDLE handle, UINT component, UINT state)
{
	(void)component, (void)state;
	return not_built(handle, "DxgkCbCompletePStateTransition");
}

static const DXGKRNL_INTERFACE services = {
	.DxgkCbEvalAcpiMethod = eval_acpi_method,
	.DxgkCbGetDeviceInformation = vmm_port_cb_get_device_information,
	.DxgkCbIndicateChildStatus = indicate_child_status,
	.DxgkCbMapMemory = vmm_port_cb_map_memory,
	.DxgkCbQueueDpc = vmm_port_cb_queue_dpc,
	.DxgkCbQueryServices = query_services,
	.DxgkCbReadDeviceSpace = vmm_port_cb_read_device_space,
	.DxgkCbSynchronizeExecution = vmm_port_cb_synchronize_execution,
	.DxgkCbUnmapMemory = vmm_port_cb_unmap_memory,
	.DxgkCbWriteDeviceSpace = vmm_port_cb_write_device_space,
	.DxgkCbIsDevicePresent = vmm_port_cb_is_device_present,
	.DxgkCbGetHandleData = vmm_port_cb_get_handle_data,
	.DxgkCbGetHandleParent = get_handle_parent,
	.DxgkCbEnumHandleChildren = enum_handle_children,
	.DxgkCbNotifyInterrupt = vmm_port_cb_notify_interrupt,
	.DxgkCbNotifyDpc = vmm_port_cb_notify_dpc,
	.DxgkCbQueryVidPnInterface = query_vidpn_interface,
	.DxgkCbQueryMonitorInterface = query_monitor_interface,
	.DxgkCbGetCaptureAddress = get_capture_address,
	.DxgkCbLogEtwEvent = log_etw_event,
	.DxgkCbExcludeAdapterAccess = exclude_adapter_access,
	.DxgkCbCreateContextAllocation = create_context_allocation,
	.DxgkCbDestroyContextAllocation = destroy_context_allocation,
	.DxgkCbSetPowerComponentActive = set_power_component_active,
	.DxgkCbSetPowerComponentIdle = set_power_component_idle,
	.DxgkCbAcquirePostDisplayOwnership = acquire_post_display_ownership,
	.DxgkCbPowerRuntimeControlRequest = power_runtime_control_request,
	.DxgkCbSetPowerComponentLatency = set_power_component_latency,
	.DxgkCbSetPowerComponentResidency = set_power_component_residency,
	.DxgkCbCompleteFStateTransition = complete_f_state_transition,
	.DxgkCbCompletePStateTransition = complete_p_state_transition,
};

void vmm_port_services_init(struct vmm_port *port)
{
	/*
	 * A miniport copies as many bytes as its own header declares. Behind the size of its
	 * version the table is zero.
	 */
	port->services = services;
	vmm_port_services_fill_wddm2(&port->services);
	memset((char *)&port->services + port->version->services_bytes, 0,
	       sizeof(port->services) - port->version->services_bytes);
	port->services.Size = port->version->services_bytes;
	port->services.Version = port->version->number;
	port->services.DeviceHandle = port;
}
