/* SPDX-License-Identifier: MIT */
/*
 * Escapes to the miniport. No lock is held. The adapter keeps its power during the call: a device
 * that the call is inside is paused before a change of power, and a call without a device is
 * counted like the creation of one.
 */
#include "sched/calls/calls.h"

vmm_status vmm_sched_escape(struct vmm_process *process, struct vmm_adapter *adapter,
			    const struct vmm_device *device, const struct vmm_context *context,
			    const struct vmm_escape_request *request)
{
	DXGKARG_ESCAPE args = {.hDevice = device ? device->kmd_device : NULL,
			       .hContext = context ? context->kmd_context : NULL,
			       .Flags.Value = request->flags,
			       .pPrivateDriverData = request->data,
			       .PrivateDriverDataSize = request->size_bytes};
	vmm_status status = device ? VMM_OK : vmm_power_begin_device(adapter);

	if (!vmm_ok(status))
		return status;
	struct vmm_process *before = vmm_calling_process_set(adapter->os, process);
	status = vmm_port_escape(adapter->port, &args);
	vmm_calling_process_set(adapter->os, before);
	if (!device)
		vmm_power_end_device(adapter);
	return status;
}
