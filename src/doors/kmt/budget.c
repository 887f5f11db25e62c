/* SPDX-License-Identifier: MIT */
/*
 * Budgets and reservations of a process on an adapter (RES-10, PRI-14), and trim notifications
 * (RES-09).
 */
#include "kmt_calls.h"

NTSTATUS vmm_kmt_check_budget(const struct vmm_door_call *call, const char *what, HANDLE process,
			      uint32_t physical_adapter)
{
	struct vmm_observe *observe = call->observe;

	if (process && process != VMM_KMT_OWN_PROCESS)
		return vmm_refuse_rule(
			observe, STATUS_INVALID_HANDLE, "HND-07", call->process->id, 0,
			"%s: hProcess must be 0 or the caller's own; handles of other "
			"processes are not built",
			what);
	if (!physical_adapter)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		observe, STATUS_INVALID_PARAMETER, "RES-10", call->process->id, 0,
		"%s: physical adapter %u: must be 0, because residency is counted for the "
		"adapter as a whole",
		what, physical_adapter);
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

NTSTATUS vmm_kmt_register_trim(const struct vmm_door_call *call,
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

NTSTATUS vmm_kmt_unregister_trim(struct vmm_door_call *call,
				 const D3DKMT_UNREGISTERTRIMNOTIFICATION *args)
{
	uint32_t handle = (uint32_t)(uintptr_t)args->Handle;
	void *hazard = vmm_trim_device(call->process, handle);
	NTSTATUS status = vmm_kmt_enter_hazard(call, hazard, true);

	if (call->device)
		status = vmm_trim_unregister(&call->device, &call->guard, handle,
					     (void (*)(void))args->Callback);
	if (!NT_SUCCESS(status) && !call->on_stopped)
		vmm_finding(call->observe, "RES-09", call->process->id, handle,
			    "unregister a trim notification: 0x%x is not a registration of the "
			    "process%s",
			    handle, args->Callback ? ", or belongs to another callback" : "");
	return status;
}
