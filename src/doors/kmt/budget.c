/* SPDX-License-Identifier: MIT */
/* Budgets and reservations of a process on an adapter (RES-10, PRI-14). */
#include "doors/kmt/kmt_private.h"

/* What both calls name. */
struct subject {
	const char *what;
	HANDLE process;
	D3DKMT_HANDLE adapter;
	uint32_t physical_adapter;
};

#define OWN_PROCESS ((HANDLE)(intptr_t)-1) /* what GetCurrentProcess returns */

/* *adapter is kept even where this fails: vmm_adapter_put. */
static NTSTATUS enter(struct vmm_kmt_call *call, const struct subject *subject,
		      struct vmm_adapter **adapter)
{
	struct vmm_observe *observe;

	*adapter = NULL;
	*call = (struct vmm_kmt_call){.process = vmm_kmt_process(), .door = VIDMM_DOOR_OTHER};
	if (!call->process)
		return STATUS_UNSUCCESSFUL;
	observe = call->process->world->observe;
	call->began = vmm_observe_begin(observe, VIDMM_EVENT_DOOR);
	*adapter = vmm_kmt_adapter(call->process, subject->adapter);
	if (!*adapter)
		return STATUS_INVALID_PARAMETER;
	if (subject->process && subject->process != OWN_PROCESS) {
		vmm_finding(observe, "HND-07", call->process->id, 0,
			    "%s: hProcess is neither 0 nor the caller's own; handles of other "
			    "processes there are none",
			    subject->what);
		return STATUS_INVALID_HANDLE;
	}
	if (!subject->physical_adapter)
		return STATUS_SUCCESS;
	vmm_finding(observe, "RES-10", call->process->id, 0,
		    "%s: physical adapter %u: the adapter has no link", subject->what,
		    subject->physical_adapter);
	return STATUS_INVALID_PARAMETER;
}

KMT_API NTSTATUS APIENTRY D3DKMTQueryVideoMemoryInfo(D3DKMT_QUERYVIDEOMEMORYINFO *pData)
{
	struct vmm_kmt_call call;
	struct vmm_adapter *adapter;
	struct vmm_video_memory info;

	if (!pData)
		return vmm_kmt_refuse("D3DKMTQueryVideoMemoryInfo", "no argument");
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
		return vmm_kmt_refuse("D3DKMTChangeVideoMemoryReservation", "no argument");
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
