/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiNotifySurpriseRemoval (PNP-08). Level zero: it may overlap any other call, even a reset.
 */
#include "port/port_internal.h"

static NTSTATUS notify(struct vmm_port *port, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	struct vmm_port_call call = vmm_port_enter(port, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL);
	NTSTATUS status = port->ddi.DxgkDdiNotifySurpriseRemoval(port->adapter, type);

	vmm_port_leave(port, &call, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL);
	vmm_port_ddi_event(port, VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL, status, (uint64_t)type, 0, 0);
	return status;
}

/*
 * The miniport cannot be notified of a removal: from here on it is called only to stop and unload
 * it.
 */
static vmm_status stop_calling(struct vmm_port *port)
{
	vmm_reason(
		port->observe, VMM_NOT_SUPPORTED, 0, 0,
		"PNP-08: the device was removed, and the miniport %s: it is not called any more, "
		"except to unload it",
		port->ddi.DxgkDdiNotifySurpriseRemoval
			? "has neither SupportSurpriseRemovalInHibernation nor "
			  "SupportSurpriseRemoval"
			: "has no DxgkDdiNotifySurpriseRemoval");
	for (uint32_t i = 0; i < port->link_count; i++)
		atomic_store_explicit(&port->link[i]->dead, true, memory_order_release);
	vmm_port_gate_wake(port);
	return VMM_NOT_SUPPORTED;
}

vmm_status vmm_port_notify_removal(struct vmm_port *port, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	NTSTATUS status = STATUS_SUCCESS;

	if (vmm_port_dead(port))
		return VMM_DEVICE_REMOVED;
	vmm_port_check_rank(&port->object_rank);
	if (port->hardware)
		vmm_hardware_set_removed(port->hardware);
	if (!(port->caps.surprise_removal || port->caps.surprise_removal_hibernation) ||
	    !port->ddi.DxgkDdiNotifySurpriseRemoval)
		return stop_calling(port);
	vmm_port_gate_set_removed(port);
	for (uint32_t i = 0; i < port->link_count && status >= 0; i++)
		status = notify(port->link[i], type);
	if (status >= 0)
		return VMM_OK;
	vmm_finding(port->observe, "PNP-08", 0, 0,
		    "DxgkDdiNotifySurpriseRemoval(%s) failed with 0x%08x",
		    type == DxgkRemovalHibernation ? "DxgkRemovalHibernation"
						   : "DxgkRemovalPnPNotify",
		    (unsigned)status);
	if (type == DxgkRemovalHibernation && port->caps.surprise_removal)
		return VMM_OK; /* the stop continues nevertheless */
	vmm_port_fatal(port, VMM_PORT_FATAL_VIDMM,
		       VMM_PORT_VIDMM_OTHER(VIDMM_DDI_NOTIFY_SURPRISE_REMOVAL), (uint32_t)status,
		       (uint64_t)type);
	return VMM_DEVICE_REMOVED;
}
