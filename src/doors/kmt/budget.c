/* SPDX-License-Identifier: MIT */
/*
 * Budgets and reservations of a process on an adapter (RES-10, PRI-14), and trim notifications
 * (RES-09).
 */
#include "doors/kmt/kmt_private.h"

/* The arguments that both calls have. */
struct subject {
	const char *what;
	HANDLE process;
	D3DKMT_HANDLE adapter;
	uint32_t physical_adapter;
};

/* On failure, too, the caller releases *adapter by vmm_adapter_put. */
static NTSTATUS enter(struct vmm_kmt_call *call, const struct subject *subject,
		      struct vmm_adapter **adapter)
{
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_OTHER);

	*adapter = NULL;
	if (!NT_SUCCESS(status))
		return status;
	struct vmm_observe *observe = call->process->world->observe;
	*adapter = vmm_kmt_adapter(call->process, subject->adapter);
	if (!*adapter)
		return STATUS_INVALID_PARAMETER;
	if (subject->process && subject->process != VMM_KMT_OWN_PROCESS)
		return vmm_refuse_rule(
			observe, STATUS_INVALID_HANDLE, "HND-07", call->process->id, 0,
			"%s: hProcess must be 0 or the caller's own; handles of other "
			"processes are not built",
			subject->what);
	if (!subject->physical_adapter)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		observe, STATUS_INVALID_PARAMETER, "RES-10", call->process->id, 0,
		"%s: physical adapter %u: must be 0, because residency is counted for the "
		"adapter as a whole",
		subject->what, subject->physical_adapter);
}

KMT_API NTSTATUS APIENTRY D3DKMTQueryVideoMemoryInfo(D3DKMT_QUERYVIDEOMEMORYINFO *pData)
{
	struct vmm_kmt_call call;
	struct vmm_adapter *adapter;
	struct vmm_video_memory info;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTQueryVideoMemoryInfo", "the argument pointer is NULL");
	D3DKMT_QUERYVIDEOMEMORYINFO args = *pData;
	const struct subject subject = {"query video memory", args.hProcess, args.hAdapter,
					args.PhysicalAdapterIndex};
	NTSTATUS status = enter(&call, &subject, &adapter);
	if (NT_SUCCESS(status))
		status = vmm_budget_query(adapter, call.process, (uint32_t)args.MemorySegmentGroup,
					  &info);
	if (NT_SUCCESS(status)) {
		pData->Budget = info.budget;
		pData->CurrentUsage = info.usage;
		pData->CurrentReservation = info.reserved;
		pData->AvailableForReservation = info.available;
	}
	vmm_adapter_put(adapter);
	return vmm_kmt_leave(&call, status, args.hAdapter, 1, (uint64_t)args.MemorySegmentGroup);
}

KMT_API NTSTATUS APIENTRY
D3DKMTChangeVideoMemoryReservation(const D3DKMT_CHANGEVIDEOMEMORYRESERVATION *pData)
{
	struct vmm_kmt_call call;
	struct vmm_adapter *adapter;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTChangeVideoMemoryReservation",
				      "the argument pointer is NULL");
	D3DKMT_CHANGEVIDEOMEMORYRESERVATION args = *pData;
	const struct subject subject = {"reserve video memory", args.hProcess, args.hAdapter,
					args.PhysicalAdapterIndex};
	NTSTATUS status = enter(&call, &subject, &adapter);
	if (NT_SUCCESS(status))
		status = vmm_budget_reserve(adapter, call.process,
					    (uint32_t)args.MemorySegmentGroup, args.Reservation);
	vmm_adapter_put(adapter);
	return vmm_kmt_leave(&call, status, args.hAdapter, args.Reservation,
			     (uint64_t)args.MemorySegmentGroup);
}

static void call_back(const struct vmm_trim_client *client, uint32_t flags, uint64_t bytes)
{
	/* D3DKMT calls of the callback are calls of the process that registered it. */
	struct vmm_process *before = vmm_kmt_enter(client->owner);
	D3DKMT_TRIMNOTIFICATION data = {
		.Context = client->context, .Flags.Value = flags, .NumBytesToTrim = bytes};

	((PFND3DKMT_TRIMNOTIFICATIONCALLBACK)client->function)(&data);
	(void)vmm_kmt_enter(before);
}

static NTSTATUS register_trim(const struct vmm_kmt_call *call,
			      const D3DKMT_REGISTERTRIMNOTIFICATION *args, uint32_t *handle)
{
	const struct vmm_adapter *adapter = call->device->adapter;
	const struct vmm_trim_client client = {.call = call_back,
					       .function = (void (*)(void))args->Callback,
					       .context = args->Context,
					       .owner = call->process};

	if (args->Callback && args->AdapterLuid.LowPart == adapter->luid &&
	    !args->AdapterLuid.HighPart)
		return vmm_trim_register(call->device, &client, handle);
	return vmm_refuse_rule(
		adapter->observe, STATUS_INVALID_PARAMETER, "RES-09", call->process->id,
		args->hDevice,
		"register a trim notification: %s (AdapterLuid 0x%x:0x%x, the device's adapter "
		"has 0:0x%x)",
		args->Callback ? "the device belongs to another adapter" : "no callback",
		(unsigned)args->AdapterLuid.HighPart, (unsigned)args->AdapterLuid.LowPart,
		adapter->luid);
}

KMT_API NTSTATUS APIENTRY D3DKMTRegisterTrimNotification(D3DKMT_REGISTERTRIMNOTIFICATION *pData)
{
	struct vmm_kmt_call call;
	uint32_t handle = 0;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTRegisterTrimNotification",
				      "the argument pointer is NULL");
	D3DKMT_REGISTERTRIMNOTIFICATION args = *pData;
	NTSTATUS status = vmm_kmt_enter_device(&call, args.hDevice, VIDMM_DOOR_OTHER, false);
	if (NT_SUCCESS(status))
		status = register_trim(&call, &args, &handle);
	if (NT_SUCCESS(status))
		pData->Handle = (VOID *)(uintptr_t)handle;
	return vmm_kmt_leave(&call, status, args.hDevice, 1, 0);
}

static NTSTATUS unregister_trim(struct vmm_kmt_call *call, uint32_t handle,
				PFND3DKMT_TRIMNOTIFICATIONCALLBACK callback)
{
	void *hazard = vmm_trim_device(call->process, handle);
	NTSTATUS status = vmm_kmt_enter_hazard(call, hazard, true);

	if (call->device)
		status = vmm_trim_unregister(&call->device, &call->guard, handle,
					     (void (*)(void))callback);
	if (!NT_SUCCESS(status) && !call->on_stopped)
		vmm_finding(call->process->world->observe, "RES-09", call->process->id, handle,
			    "unregister a trim notification: 0x%x is not a registration of the "
			    "process%s",
			    handle, callback ? ", or belongs to another callback" : "");
	return status;
}

KMT_API NTSTATUS APIENTRY D3DKMTUnregisterTrimNotification(D3DKMT_UNREGISTERTRIMNOTIFICATION *pData)
{
	struct vmm_kmt_call call;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTUnregisterTrimNotification",
				      "the argument pointer is NULL");
	uint32_t handle = (uint32_t)(uintptr_t)pData->Handle;
	NTSTATUS status = vmm_kmt_begin(&call, VIDMM_DOOR_OTHER);
	if (NT_SUCCESS(status))
		status = unregister_trim(&call, handle, pData->Callback);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}
