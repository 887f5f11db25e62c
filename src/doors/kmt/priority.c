/* SPDX-License-Identifier: MIT */
/* Scheduling priorities of contexts and of the process (SCH-01 to SCH-04). */
#include "doors/kmt/kmt_private.h"
#include "sched/hw_sched.h"

/*
 * The same calls serve hardware contexts (SCH-10), which have their own kind of handle. For one of
 * those *context is NULL and the call is on its device.
 */
static NTSTATUS enter(struct vmm_kmt_call *call, D3DKMT_HANDLE handle, struct vmm_context **context)
{
	struct vmm_process *process = vmm_kmt_process();

	*context = NULL;
	if (!process || !vmm_hw_is_context(process, handle))
		return vmm_kmt_enter_context(call, handle, VIDMM_DOOR_OTHER, context);
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_OTHER);
	return NT_SUCCESS(status) ? vmm_kmt_enter_hazard(
					    call, vmm_hw_device_of_context(process, handle), false)
				  : status;
}

static NTSTATUS set_priority(D3DKMT_HANDLE handle, int32_t priority, bool in_process)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;
	NTSTATUS status = enter(&call, handle, &context);

	if (!NT_SUCCESS(status))
		return vmm_kmt_leave(&call, status, handle, 1, (uint32_t)priority);
	if (context)
		status = in_process ? vmm_sched_set_in_process_priority(context, priority)
				    : vmm_sched_set_priority(context, priority);
	else
		status = in_process ? vmm_hw_set_in_process_priority(call.device, handle, priority)
				    : vmm_hw_set_priority(call.device, handle, priority);
	return vmm_kmt_leave(&call, status, handle, 1, (uint32_t)priority);
}

static NTSTATUS get_priority(D3DKMT_HANDLE handle, bool in_process, INT *result)
{
	struct vmm_kmt_call call;
	struct vmm_context *context;
	int32_t priority = 0;
	NTSTATUS status = enter(&call, handle, &context);

	if (NT_SUCCESS(status) && context)
		priority = in_process ? vmm_sched_in_process_priority(context)
				      : vmm_sched_priority(context);
	else if (NT_SUCCESS(status))
		status = vmm_hw_priority(call.device, handle, in_process, &priority);
	if (NT_SUCCESS(status))
		*result = priority;
	return vmm_kmt_leave(&call, status, handle, 1, 0);
}

KMT_API NTSTATUS APIENTRY
D3DKMTSetContextSchedulingPriority(const D3DKMT_SETCONTEXTSCHEDULINGPRIORITY *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTSetContextSchedulingPriority",
				      "the argument pointer is NULL");
	D3DKMT_SETCONTEXTSCHEDULINGPRIORITY args = *pData;
	return set_priority(args.hContext, args.Priority, false);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetContextSchedulingPriority(D3DKMT_GETCONTEXTSCHEDULINGPRIORITY *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetContextSchedulingPriority",
				      "the argument pointer is NULL");
	return get_priority(pData->hContext, false, &pData->Priority);
}

KMT_API NTSTATUS APIENTRY D3DKMTSetContextInProcessSchedulingPriority(
	const D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTSetContextInProcessSchedulingPriority",
				      "the argument pointer is NULL");
	D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY args = *pData;
	return set_priority(args.hContext, args.Priority, true);
}

KMT_API NTSTATUS APIENTRY
D3DKMTGetContextInProcessSchedulingPriority(D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY *pData)
{
	if (!pData)
		return vmm_kmt_refuse("D3DKMTGetContextInProcessSchedulingPriority",
				      "the argument pointer is NULL");
	return get_priority(pData->hContext, true, &pData->Priority);
}

/* ---- the process ---- */

static NTSTATUS enter_process(struct vmm_kmt_call *call, HANDLE process, const char *function)
{
	NTSTATUS status = vmm_kmt_begin(call, VIDMM_DOOR_OTHER);

	if (!NT_SUCCESS(status) || process == VMM_KMT_OWN_PROCESS)
		return status;
	return vmm_refuse_rule(
		call->process->world->observe, STATUS_INVALID_PARAMETER, "HND-07",
		call->process->id, 0,
		"%s: hProcess is not the caller's own (-1); handles of other processes "
		"are not built",
		function);
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
		return vmm_kmt_refuse("D3DKMTGetProcessSchedulingPriorityClass",
				      "the argument pointer is NULL");
	NTSTATUS status = enter_process(&call, hProcess, "D3DKMTGetProcessSchedulingPriorityClass");
	if (NT_SUCCESS(status))
		*pClass =
			(D3DKMT_SCHEDULINGPRIORITYCLASS)atomic_load(&call.process->priority_class);
	return vmm_kmt_leave(&call, status, 0, 1, 0);
}
