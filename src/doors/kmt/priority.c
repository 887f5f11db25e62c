/* SPDX-License-Identifier: MIT */
/* Scheduling priorities of contexts and of the process (SCH-01 to SCH-04). */
#include "doors/kmt/kmt_private.h"
#include "sched/hw_sched.h"

/*
 * The same calls serve hardware contexts (SCH-10), whose handles are of their own kind. True: it is one of those, and the call
 * on its device has begun.
 */
static bool enter_hw(struct vmm_kmt_call *call, D3DKMT_HANDLE handle, NTSTATUS *status)
{
	struct vmm_process *process = vmm_kmt_process();

	if (!process || !vmm_hw_is_context(process, handle))
		return false;
	*call = (struct vmm_kmt_call){.process = process, .door = VIDMM_DOOR_OTHER};
	call->began = vmm_observe_begin(process->world->observe, VIDMM_EVENT_DOOR);
	call->device = vmm_live_enter(&call->visit, VMM_LIVE_DEVICE,
				      vmm_hw_device_of_context(process, handle));
	*status = call->device ? vmm_kmt_check_alive(call->device) : STATUS_INVALID_PARAMETER;
	return true;
}

#define OWN_PROCESS ((HANDLE)(intptr_t)-1) /* what GetCurrentProcess returns */

KMT_API NTSTATUS APIENTRY
D3DKMTSetContextSchedulingPriority(const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSetContextSchedulingPriority", "no argument");
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY args = *pData;
	NTSTATUS status;

	if (enter_hw(&call, args.hContext, &status)) {
		if (NT_SUCCESS(status))
			status = vmm_hw_set_priority(call.device, args.hContext, args.Priority);
		return vmm_kmt_leave(&call, status, args.hContext, 1, (uint32_t)args.Priority);
	}
	status = vmm_kmt_enter_context(&call, args.hContext, VIDMM_DOOR_OTHER, &context);
	if (NT_SUCCESS(status))
		status = vmm_sched_set_priority(context, args.Priority);
	return vmm_kmt_leave(&call, status, args.hContext, 1, (uint32_t)args.Priority);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetContextSchedulingPriority(D3DKMT_GETCONTEXTSCHEDULINGPRIORITY *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetContextSchedulingPriority", "no argument");
	D3DKMT_HANDLE handle = pData->hContext;
	NTSTATUS status;
	int32_t priority = 0;

	if (enter_hw(&call, handle, &status)) {
		if (NT_SUCCESS(status))
			status = vmm_hw_priority(call.device, handle, false, &priority);
		if (NT_SUCCESS(status))
			pData->Priority = priority;
		return vmm_kmt_leave(&call, status, handle, 1, 0);
	}
	status = vmm_kmt_enter_context(&call, handle, VIDMM_DOOR_OTHER, &context);
	if (NT_SUCCESS(status))
		pData->Priority = vmm_sched_priority(context);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY D3DKMTSetContextInProcessSchedulingPriority(
	const D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTSetContextInProcessSchedulingPriority", "no argument");
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY args = *pData;
	NTSTATUS status;

	if (enter_hw(&call, args.hContext, &status)) {
		if (NT_SUCCESS(status))
			status = vmm_hw_set_in_process_priority(call.device, args.hContext,
								args.Priority);
		return vmm_kmt_leave(&call, status, args.hContext, 1, (uint32_t)args.Priority);
	}
	status = vmm_kmt_enter_context(&call, args.hContext, VIDMM_DOOR_OTHER, &context);
	if (NT_SUCCESS(status))
		status = vmm_sched_set_in_process_priority(context, args.Priority);
	return vmm_kmt_leave(&call, status, args.hContext, 1, (uint32_t)args.Priority);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetContextInProcessSchedulingPriority(D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY *pData)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetContextInProcessSchedulingPriority", "no argument");
	D3DKMT_HANDLE handle = pData->hContext;
	NTSTATUS status;
	int32_t priority = 0;

	if (enter_hw(&call, handle, &status)) {
		if (NT_SUCCESS(status))
			status = vmm_hw_priority(call.device, handle, true, &priority);
		if (NT_SUCCESS(status))
			pData->Priority = priority;
		return vmm_kmt_leave(&call, status, handle, 1, 0);
	}
	status = vmm_kmt_enter_context(&call, handle, VIDMM_DOOR_OTHER, &context);
	if (NT_SUCCESS(status))
		pData->Priority = vmm_sched_in_process_priority(context);
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

/* ---- the process ---- */

static NTSTATUS enter_process(struct vmm_kmt_call *call, HANDLE process, const char *function)
{
	*call = (struct vmm_kmt_call){.process = vmm_kmt_process(), .door = VIDMM_DOOR_OTHER};
	if (!call->process)
		return STATUS_UNSUCCESSFUL;
	call->began = vmm_observe_begin(call->process->world->observe, VIDMM_EVENT_DOOR);
	if (process == OWN_PROCESS)
		return STATUS_SUCCESS;
	vmm_finding(call->process->world->observe, "HND-07", call->process->id, 0,
		    "%s: hProcess is not the caller's own (-1); handles of other processes there "
		    "are none",
		    function);
	return STATUS_INVALID_PARAMETER;
}

KMT_API NTSTATUS APIENTRY
D3DKMTSetProcessSchedulingPriorityClass(HANDLE hProcess, D3DKMT_SCHEDULINGPRIORITYCLASS Class)
{
	struct vmm_kmt_call call;
	NTSTATUS status = enter_process(&call, hProcess, "D3DKMTSetProcessSchedulingPriorityClass");

	if (NT_SUCCESS(status))
		status = vmm_sched_set_priority_class(call.process, (uint32_t)Class);
	return vmm_kmt_leave(&call, status, 0, 1, (uint32_t)Class);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetProcessSchedulingPriorityClass(HANDLE hProcess, D3DKMT_SCHEDULINGPRIORITYCLASS *pClass)
{
	struct vmm_kmt_call call;

	if (!pClass)
		return vmm_kmt_refuse("D3DKMTGetProcessSchedulingPriorityClass", "no argument");
	NTSTATUS status = enter_process(&call, hProcess, "D3DKMTGetProcessSchedulingPriorityClass");
	if (NT_SUCCESS(status))
		*pClass =
			(D3DKMT_SCHEDULINGPRIORITYCLASS)atomic_load(&call.process->priority_class);
	return vmm_kmt_leave(&call, status, 0, 1, 0);
}
