/* SPDX-License-Identifier: MIT */
/* Scheduling priorities of contexts and of the process (SCH-01 to SCH-04). */
#include "kmt_calls.h"
#include "sched/hw_sched.h"

/*
 * The same calls serve hardware contexts (SCH-10), which have their own kind of handle. For one of
 * those *context is NULL and the call is on its device.
 */
NTSTATUS vmm_kmt_enter_scheduled(struct vmm_door_call *call, D3DKMT_HANDLE handle,
				 struct vmm_context **context)
{
	struct vmm_process *process = vmm_kmt_process();

	*context = NULL;
	if (!process || !vmm_hw_is_context(process, handle))
		return vmm_kmt_enter_context(call, handle, VIDMM_DOOR_OTHER, context);
	return vmm_kmt_enter_object(call, handle, VIDMM_DOOR_OTHER, vmm_hw_device_of_context,
				    false);
}

NTSTATUS vmm_kmt_set_priority(const struct vmm_door_call *call, struct vmm_context *context,
			      D3DKMT_HANDLE handle, int32_t priority, bool in_process)
{
	if (context)
		return in_process ? vmm_sched_set_in_process_priority(context, priority)
				  : vmm_sched_set_priority(context, priority);
	return in_process ? vmm_hw_set_in_process_priority(call->device, handle, priority)
			  : vmm_hw_set_priority(call->device, handle, priority);
}

NTSTATUS vmm_kmt_get_priority(const struct vmm_door_call *call, const struct vmm_context *context,
			      D3DKMT_HANDLE handle, bool in_process, int32_t *priority)
{
	if (!context)
		return vmm_hw_priority(call->device, handle, in_process, priority);
	*priority =
		in_process ? vmm_sched_in_process_priority(context) : vmm_sched_priority(context);
	return STATUS_SUCCESS;
}

/* ---- the process ---- */

static NTSTATUS enter_process(struct vmm_door_call *call, HANDLE process, const char *function)
{
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_OTHER);

	if (!NT_SUCCESS(status) || process == VMM_KMT_OWN_PROCESS)
		return status;
	return vmm_refuse_rule(
		call->observe, STATUS_INVALID_PARAMETER, "HND-07", call->process->id, 0,
		"%s: hProcess is not the caller's own (-1); handles of other processes "
		"are not built",
		function);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSetProcessSchedulingPriorityClass(HANDLE hProcess, D3DKMT_SCHEDULINGPRIORITYCLASS Class)
{
	struct vmm_door_call call;
	NTSTATUS status = enter_process(&call, hProcess, "D3DKMTSetProcessSchedulingPriorityClass");

	if (NT_SUCCESS(status))
		status = vmm_sched_set_priority_class(call.process, (uint32_t)Class);
	return vmm_kmt_leave(&call, status, 0, 1, (uint32_t)Class);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetProcessSchedulingPriorityClass(HANDLE hProcess, D3DKMT_SCHEDULINGPRIORITYCLASS *pClass)
{
	struct vmm_door_call call;

	if (!pClass)
		return vmm_kmt_no_argument(VIDMM_DOOR_OTHER,
					   "D3DKMTGetProcessSchedulingPriorityClass");
	NTSTATUS status = enter_process(&call, hProcess, "D3DKMTGetProcessSchedulingPriorityClass");
	if (NT_SUCCESS(status))
		*pClass =
			(D3DKMT_SCHEDULINGPRIORITYCLASS)atomic_load(&call.process->priority_class);
	return vmm_kmt_leave(&call, status, 0, 1, 0);
}
