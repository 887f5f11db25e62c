/* SPDX-License-Identifier: MIT */
/*
 * D3DKMTEscape: private data for the miniport (ESC), and the usage of a CPU event (CPN-10). The
 * caller's buffer is read once, and written once after the miniport has succeeded.
 */
#include "doors/kmt/kmt_private.h"

#include <string.h>

enum {
	HARDWARE_ACCESS = 0x1,
	RUNTIME_REQUESTS = 0x2 | 0x4, /* DeviceStatusQuery, ChangeFrameLatency */
	NO_ADAPTER_SYNCHRONIZATION = 0x8,
	KNOWN_ESCAPE = 0x40,
	/* VirtualMachineData and DriverCommonEscape, whose data nothing here understands */
	NOT_BUILT = HARDWARE_ACCESS | RUNTIME_REQUESTS | 0x20 | 0x80,
	NAMED = NOT_BUILT | NO_ADAPTER_SYNCHRONIZATION | KNOWN_ESCAPE,
};

static NTSTATUS not_built(const struct vmm_process *process, const D3DKMT_ESCAPE *args,
			  const char *what)
{
	return vmm_refuse_reason(process->world->observe, STATUS_NOT_SUPPORTED, process->id,
				 args->hAdapter,
				 "ESC-04: D3DKMTEscape of type %u with flags 0x%x: %s",
				 (uint32_t)args->Type, args->Flags.Value, what);
}

static NTSTATUS refuse_escape(const struct vmm_process *process, const char *rule, uint32_t object,
			      const char *what, uint32_t value)
{
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, rule, process->id,
			       object, "escape: %s (0x%x)", what, value);
}

/* ---- the usage of a CPU event ---- */

static NTSTATUS refuse_usage(const struct vmm_process *process, uint32_t object, const char *what)
{
	return vmm_refuse_rule(process->world->observe, STATUS_INVALID_PARAMETER, "CPN-10",
			       process->id, object, "escape of the usage of a CPU event: %s", what);
}

/*
 * Passes the record to the miniport. The event determines the device. An adapter handle other than
 * that device's adapter is refused.
 */
static NTSTATUS pass_record(struct vmm_door_call *call, const struct vmm_adapter *adapter,
			    const D3DKMT_ESCAPE *args, D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE *record)
{
	void *hazard = vmm_sync_driver_device(call->process, record->hSyncObject);

	call->device = hazard ? vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, hazard) : NULL;
	if (!call->device || call->device->adapter != adapter ||
	    (args->hDevice && args->hDevice != call->device->handle))
		return refuse_usage(
			call->process, record->hSyncObject,
			hazard ? "it belongs to another adapter or device, or is being destroyed"
			       : "hSyncObject is not a CPU notification made with SignalByKmd");
	NTSTATUS status = vmm_door_check_alive(call->device);
	if (!NT_SUCCESS(status))
		return status;
	return vmm_sync_pass_record(call->device, record->hSyncObject, args->Flags.Value, record);
}

static NTSTATUS known_escape(struct vmm_door_call *call, const struct vmm_adapter *adapter,
			     const D3DKMT_ESCAPE *args, uint32_t *object)
{
	D3DDDI_DRIVERESCAPE_CPUEVENTUSAGE record;

	if (!args->pPrivateDriverData || args->PrivateDriverDataSize < sizeof(record.EscapeType))
		return refuse_usage(call->process, 0, "there is no record");
	memcpy(&record.EscapeType, args->pPrivateDriverData, sizeof(record.EscapeType));
	if (record.EscapeType != D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE)
		return not_built(call->process, args,
				 "of the known structures only the usage of a CPU event is built");
	if (args->PrivateDriverDataSize != sizeof(record))
		return refuse_usage(call->process, 0, "the record does not have its 48 bytes");
	memcpy(&record, args->pPrivateDriverData, sizeof(record));
	/* the caller may have changed it between the two reads */
	record.EscapeType = D3DDDI_DRIVERESCAPETYPE_CPUEVENTUSAGE;
	*object = record.hSyncObject;
	NTSTATUS status = pass_record(call, adapter, args, &record);
	if (NT_SUCCESS(status))
		memcpy(args->pPrivateDriverData, &record, sizeof(record));
	return status;
}

/* ---- private data ---- */

/* Enters the device and the context that the escape names, if any. (ESC-03) */
static NTSTATUS enter_named(struct vmm_door_call *call, const struct vmm_adapter *adapter,
			    const D3DKMT_ESCAPE *args, struct vmm_context **context)
{
	void *device = NULL;

	*context = NULL;
	if (!args->hDevice)
		return args->hContext ? refuse_escape(call->process, "ESC-03", args->hContext,
						      "hContext without hDevice", args->hContext)
				      : STATUS_SUCCESS;
	if (args->hContext) {
		void *hazard = vmm_kmt_live_context(call->process, args->hContext, &device);

		*context = vmm_sched_enter_context(&call->guard, device, hazard);
		if (!*context)
			return vmm_door_no_device(call, device, false);
		call->device = vmm_sched_context_device(*context);
	} else {
		device = vmm_kmt_live_device(call->process, args->hDevice);
		call->device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, device);
		if (!call->device)
			return vmm_door_no_device(call, device, false);
	}
	if (call->device->adapter != adapter)
		return refuse_escape(call->process, "ESC-03", args->hDevice,
				     "hDevice is a device of another adapter", args->hDevice);
	if (call->device->handle != args->hDevice)
		return refuse_escape(call->process, "ESC-03", args->hContext,
				     "hContext belongs to another device", args->hContext);
	return vmm_door_check_alive(call->device);
}

static NTSTATUS private_escape(struct vmm_door_call *call, struct vmm_adapter *adapter,
			       const D3DKMT_ESCAPE *args)
{
	struct vmm_escape_request request = {.flags = args->Flags.Value,
					     .size_bytes = args->PrivateDriverDataSize};
	struct vmm_context *context;
	NTSTATUS status = enter_named(call, adapter, args, &context);

	if (!NT_SUCCESS(status))
		return status;
	status = vmm_copy_in(args->pPrivateDriverData, request.size_bytes,
			     VMM_DOOR_PRIVATE_BYTES_MAX, 1, &request.data);
	if (status == VMM_INVALID_PARAMETER)
		return refuse_escape(call->process, "ESC-02", args->hAdapter,
				     "pPrivateDriverData is NULL, or has more bytes than the limit",
				     request.size_bytes);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_sched_escape(call->process, adapter, call->device, context, &request);
	if (NT_SUCCESS(status) && request.size_bytes)
		memcpy(args->pPrivateDriverData, request.data, request.size_bytes);
	vmm_free(request.data);
	return status;
}

/* Caller holds a reference to the adapter. */
static NTSTATUS escape(struct vmm_door_call *call, struct vmm_adapter *adapter,
		       const D3DKMT_ESCAPE *args, uint32_t *object)
{
	uint32_t flags = args->Flags.Value;

	if (args->Type != D3DKMT_ESCAPE_DRIVERPRIVATE)
		return not_built(call->process, args, "only DRIVERPRIVATE (type 0) is built");
	if (flags & ~(uint32_t)NAMED)
		return refuse_escape(call->process, "ESC-05", args->hAdapter,
				     "reserved flags are set", flags);
	if ((flags & HARDWARE_ACCESS) && (flags & RUNTIME_REQUESTS))
		return refuse_escape(call->process, "ESC-05", args->hAdapter,
				     "HardwareAccess with DeviceStatusQuery or ChangeFrameLatency",
				     flags);
	if (flags & NOT_BUILT)
		return not_built(call->process, args,
				 "of the flags only NoAdapterSynchronization (0x8) and "
				 "DriverKnownEscape (0x40) are built");
	return flags & KNOWN_ESCAPE ? known_escape(call, adapter, args, object)
				    : private_escape(call, adapter, args);
}

NTSTATUS vmm_kmt_escape(struct vmm_door_call *call, const D3DKMT_ESCAPE *args, uint32_t *object)
{
	struct vmm_adapter *adapter = vmm_kmt_adapter(call->process, args->hAdapter);

	if (!adapter) /* ESC-01 */
		return STATUS_INVALID_PARAMETER;
	NTSTATUS status = escape(call, adapter, args, object);
	vmm_adapter_put(adapter);
	return status;
}
