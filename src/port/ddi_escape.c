/* SPDX-License-Identifier: MIT */
/*
 * DxgkDdiEscape: data that only a user-mode driver and its miniport understand (ESC-02), and the
 * usage of a CPU event (CPN-10). Without HardwareAccess a call of level zero: several threads may
 * be inside, and the caller holds no lock.
 */
#include "port/port_internal.h"

NTSTATUS vmm_port_escape(struct vmm_port *port, DXGKARG_ESCAPE *args)
{
	UINT flags = args->Flags.Value, bytes = args->PrivateDriverDataSize;
	struct vmm_port_call call;

	if (vmm_port_dead(port))
		return STATUS_DEVICE_REMOVED;
	if (!port->ddi.DxgkDdiEscape)
		return vmm_refuse_reason(port->observe, STATUS_NOT_SUPPORTED, 0, 0,
					 "ESC-04: the miniport has no DxgkDdiEscape");
	if (!vmm_port_call_begin_object(port, &call, false, VIDMM_DDI_ESCAPE))
		return STATUS_DEVICE_REMOVED;
	NTSTATUS status = port->ddi.DxgkDdiEscape(port->adapter, args);
	vmm_port_call_end(port, &call, VIDMM_DDI_ESCAPE, status, flags, bytes, 0);
	if (vmm_likely(status == STATUS_SUCCESS))
		return status;
	/* D3DKMTEscape may return any failure of the miniport */
	return vmm_port_failed(port, "ESC-02", VIDMM_DDI_ESCAPE, status, status < 0);
}

NTSTATUS vmm_port_escape_cpu_event(struct vmm_port *port, HANDLE device, uint32_t flags,
				   const struct vmm_port_cpu_event *event,
				   D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record)
{
	DXGKARG_ESCAPE args = {.hDevice = device,
			       .Flags.Value = flags,
			       .pPrivateDriverData = record,
			       .PrivateDriverDataSize = sizeof(*record)};

	record->hKmdCpuEvent = (uint64_t)(uintptr_t)vmm_port_cpu_event_driver(event);
	return vmm_port_escape(port, &args);
}
