/* SPDX-License-Identifier: MIT */
/* D3DKMTEscape. Only one escape to the miniport is built: the usage of a CPU event (CPN-10). */
#include "doors/kmt/kmt_private.h"

#include <string.h>

#define KNOWN_FLAGS (0x40u | 0x8u) /* DriverKnownEscape, NoAdapterSynchronization */

static NTSTATUS not_built(const struct vmm_process *process, const D3DKMT_ESCAPE *args)
{
	return vmm_refuse_reason(
		process->world->observe, STATUS_NOT_SUPPORTED, process->id, args->hAdapter,
		"D3DKMTEscape of type %u with flags 0x%x: only the usage of a CPU event "
		"(DRIVERPRIVATE, DriverKnownEscape) is built",
		(uint32_t)args->Type, args->Flags.Value);
}

static NTSTATUS refuse_usage(const struct vmm_process *process, uint32_t object, const char *what)
{
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, "CPN-10",
			       process->id, object, "escape of the usage of a CPU event: %s", what);
}

/*
 * Passes the record to the miniport. The event determines the device. An adapter handle other than
 * that device's adapter is refused.
 */
static NTSTATUS pass_record(struct vmm_door_call *call, const D3DKMT_ESCAPE *args,
			    D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record)
{
	struct vmm_adapter *adapter = vmm_kmt_adapter(call->process, args->hAdapter);

	if (!adapter)
		return STATUS_INVALID_PARAMETER;
	void *hazard = vmm_sync_driver_device(call->process, record->hSyncObject);
	call->device = hazard ? vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, hazard) : NULL;
	bool fits = call->device && call->device->adapter == adapter &&
		    (!args->hDevice || args->hDevice == call->device->handle);
	vmm_adapter_put(adapter);
	if (!fits)
		return refuse_usage(
			call->process, record->hSyncObject,
			hazard ? "it belongs to another adapter or device, or is being destroyed"
			       : "hSyncObject is not a CPU notification made with SignalByKmd");
	NTSTATUS status = vmm_door_check_alive(call->device);
	if (!NT_SUCCESS(status))
		return status;
	return vmm_sync_pass_record(call->device, record->hSyncObject, args->Flags.Value, record);
}

NTSTATUS vmm_kmt_escape(struct vmm_door_call *call, const D3DKMT_ESCAPE *args, uint32_t *object)
{
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE record;

	if (args->Type != D3DKMT_ESCAPE_DRIVERPRIVATE || !args->Flags.DriverKnownEscape ||
	    (args->Flags.Value & ~KNOWN_FLAGS))
		return not_built(call->process, args);
	if (!args->pPrivateDriverData || args->PrivateDriverDataSize < sizeof(record.EscapeType))
		return refuse_usage(call->process, 0, "there is no record");
	memcpy(&record.EscapeType, args->pPrivateDriverData, sizeof(record.EscapeType));
	if (record.EscapeType != D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE)
		return not_built(call->process, args);
	if (args->PrivateDriverDataSize != sizeof(record))
		return refuse_usage(call->process, 0, "the record does not have its 48 bytes");
	memcpy(&record, args->pPrivateDriverData, sizeof(record));
	/* the caller may have changed it between the two reads */
	record.EscapeType = D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE;
	*object = record.hSyncObject;
	NTSTATUS status = pass_record(call, args, &record);
	if (NT_SUCCESS(status))
		memcpy(args->pPrivateDriverData, &record, sizeof(record));
	return status;
}
