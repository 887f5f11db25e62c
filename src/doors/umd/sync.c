/* SPDX-License-Identifier: MIT */
/* Steps (src/doors/README.md) of the device callbacks that wait and signal. (SYN, MFN) */
#include "umd_calls.h"

NTSTATUS vmm_umd_wait(struct vmm_door_call *call, const struct vmm_sync_list *list, HANDLE event)
{
	const struct vmm_sync_caller caller = {.process = call->process, .device = call->device};

	if (event)
		return vmm_sync_wait_event(call->device, list, (uint64_t)(uintptr_t)event);
	NTSTATUS status = vmm_sync_poll(&caller, list);
	return status == STATUS_PENDING ? vmm_sync_wait(&call->device, &call->guard, list) : status;
}

NTSTATUS vmm_umd_copy_others(const struct vmm_door_call *call, struct vmm_door_arrays *arrays,
			     struct vmm_sched_sync *sync, const HANDLE *contexts, uint32_t count)
{
	NTSTATUS status = vmm_sync_check_broadcast(call->process, count);

	if (!NT_SUCCESS(status))
		return status;
	for (uint32_t i = 0; i < count; i++)
		arrays->others[i] = ((const volatile HANDLE *)contexts)[i];
	sync->others = arrays->others;
	sync->other_count = count;
	return STATUS_SUCCESS;
}

HRESULT vmm_umd_refuse_contexts(HANDLE device)
{
	struct vmm_door_call call;
	NTSTATUS status = vmm_umd_enter(&call, device, VIDMM_DOOR_SIGNAL_FROM_GPU, false);

	if (NT_SUCCESS(status))
		status = vmm_refuse_rule(
			call.observe, STATUS_INVALID_PARAMETER, "SYN-31", call.process->id, 0,
			"signal by contexts: BroadcastContextCount is 0, or the array "
			"is NULL");
	return vmm_umd_leave(&call, status, 0, 0, 0);
}
