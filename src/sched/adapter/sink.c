/* SPDX-License-Identifier: MIT */
/*
 * The functions that the port calls when a miniport reports something (struct vmm_port_sink):
 * interrupts, which only record; the DPC, which applies the records and lets the next packets go;
 * look-ups of handle data; fatal violations.
 */
#include "sched/adapter/adapter.h"

/* After a report that is not a completion has been recorded. */
static void note_other(struct vmm_sched *sched, uint32_t node)
{
	atomic_store(&sched->report[node].faulted_or_answered, true);
}

/* DIRQL: only records (SUB-07). */
static void sink_interrupt(void *context, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_adapter *adapter = context;
	struct vmm_sched *sched = adapter->sched;

	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED &&
	    data->DmaCompleted.NodeOrdinal < adapter->node_count) {
		if (vmm_unlikely(adapter->verify_driver))
			vmm_report_check(sched, data->DmaCompleted.NodeOrdinal,
					 data->DmaCompleted.SubmissionFenceId);
		vmm_report_completed(&sched->report[data->DmaCompleted.NodeOrdinal],
				     data->DmaCompleted.SubmissionFenceId);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_PREEMPTED &&
	    data->DmaPreempted.NodeOrdinal < adapter->node_count) {
		vmm_preempt_record(sched, data);
		note_other(sched, data->DmaPreempted.NodeOrdinal);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_FAULTED &&
	    data->DmaFaulted.NodeOrdinal < adapter->node_count &&
	    vmm_report_fault(&sched->node[data->DmaFaulted.NodeOrdinal],
			     data->DmaFaulted.FaultedFenceId, (uint32_t)data->DmaFaulted.Status)) {
		note_other(sched, data->DmaFaulted.NodeOrdinal);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_PAGE_FAULTED &&
	    data->DmaPageFaulted.NodeOrdinal < adapter->node_count &&
	    vmm_page_fault_record(&sched->node[data->DmaPageFaulted.NodeOrdinal], data)) {
		note_other(sched, data->DmaPageFaulted.NodeOrdinal);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_CRTC_VSYNC) {
		vmm_display_record(sched, data);
		return;
	}
	bool of_fences = data->InterruptType == DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED;
	if (of_fences)
		atomic_store(&sched->fences_signaled, true);
	if (vmm_hw_record(sched, data) || of_fences)
		return;
	if (data->InterruptType == DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED) {
		vmm_periodic_record(sched, data);
		return;
	}
	vmm_port_fatal(adapter->port, 0x119, 0x1, (uint64_t)data->InterruptType, 0);
}

/* The reports of a node whose engine is being reset stay where they are. (TDR-14) */
static bool has_reports_locked(const struct vmm_sched *sched, uint32_t n)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_node_report *report = &sched->report[n];

	vmm_assert_held(&sched->adapter->state_lock);
	return (atomic_load(&report->completed) || atomic_load(&report->faulted_or_answered)) &&
	       !sched->node[n].engine.masked;
}

/* Returns true if the node has answered a preemption request. */
static bool apply_reports_locked(struct vmm_sched *sched, uint32_t n, uint32_t *retired)
	VMM_REQUIRES(vmm_state_lock_class)
{
	_Atomic bool *others = &sched->report[n].faulted_or_answered;

	vmm_assert_held(&sched->adapter->state_lock);
	/* A report that arrives after this exchange queues another DPC. */
	if (vmm_unlikely(atomic_load(others)))
		(void)atomic_exchange(others, false);
	*retired += vmm_reports_retire_locked(sched, n);
	return vmm_unlikely(atomic_load(&sched->node[n].preempt.answered)) &&
	       vmm_preempt_answered_locked(sched, n);
}

/* DISPATCH_LEVEL: reports take effect (SUB-07). */
static void sink_dpc(void *context)
{
	struct vmm_adapter *adapter = context;
	struct vmm_sched *sched = adapter->sched;
	uint32_t retired = 0;
	bool preempted = false;

	vmm_state_lock(adapter);
	/*
	 * The removal abandons the packets under this lock. A DPC that waited for it meanwhile
	 * finds no packet any more for an earlier report, and that is no violation. (PNP-08)
	 */
	if (atomic_load(&adapter->removed)) {
		vmm_state_unlock(adapter);
		return;
	}
	for (uint32_t n = 0; n < adapter->node_count; n++)
		if (has_reports_locked(sched, n))
			preempted |= apply_reports_locked(sched, n, &retired);
	if (vmm_unlikely(sched->display != NULL))
		preempted |= vmm_display_reported_locked(sched);
	vmm_state_unlock(adapter);
	if (vmm_unlikely(sched->hw != NULL))
		preempted |= vmm_hw_reported(sched);
	if (vmm_unlikely(sched->periodic != NULL))
		vmm_periodic_dispatch(sched);
	/* A report that arrives after this check queues another DPC. */
	bool signaled = atomic_load(&sched->fences_signaled) &&
			atomic_exchange(&sched->fences_signaled, false);
	if (retired || vmm_unlikely(signaled))
		vmm_sync_reread(adapter->world); /* MFN-26, MFN-27 */
	if (!retired && !preempted && !atomic_load(&sched->chores))
		return;
	bool released = vmm_steps_advance(sched);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
	if (preempted || released || atomic_load(&sched->chores) ||
	    atomic_load(&adapter->zombies) || atomic_load(&adapter->paging_work) ||
	    (vmm_unlikely(sched->display != NULL) && vmm_display_waits(sched)) ||
	    (vmm_unlikely(sched->hw != NULL) && vmm_hw_waits(sched)))
		vmm_worker_wake(sched);
}

static void *sink_handle_data(void *context, uint32_t handle, uint32_t type, bool device_specific)
{
	/*
	 * The miniport asks during a call that a client's thread made, so the handle is that
	 * client's.
	 */
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	void *data = NULL;

	(void)type;
	if (!process)
		return NULL;
	vmm_process_lock(process);
	struct vmm_ref *ref = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_ALLOCATION);
	if (ref)
		data = device_specific ? ref->kmd_open : ref->allocation->kmd_allocation;
	vmm_process_unlock(process);
	return data;
}

static uint32_t sink_handle_parent(void *context, uint32_t allocation)
{
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	uint32_t parent = 0;

	if (!process)
		return 0;
	vmm_process_lock(process);
	struct vmm_ref *ref =
		vmm_handle_lookup(&process->handles, allocation, VMM_HANDLE_ALLOCATION);
	if (ref && ref->resource)
		parent = ref->resource->handle;
	vmm_process_unlock(process);
	return parent;
}

static void sink_fatal(void *context, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3)
{
	struct vmm_adapter *adapter = context;

	(void)code;
	(void)p1;
	(void)p2;
	(void)p3;
	atomic_store(&adapter->removed, true);
	atomic_store(&adapter->closed, true);
	atomic_store(&adapter->world->abandoned, true);
	vmm_world_next_epoch(adapter->world);
	vmm_world_changed(adapter->world);
	vmm_progress_signal(adapter);
	if (adapter->sched)
		vmm_worker_wake(adapter->sched);
}

static NTSTATUS sink_invalidate_hw_context(void *context, HANDLE hw_context, bool collateral)
{
	const struct vmm_adapter *adapter = context;

	return vmm_hw_invalidate(adapter->sched, hw_context, collateral);
}

static NTSTATUS sink_create_context_allocation(void *context,
					       DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	return vmm_context_memory_create(((struct vmm_adapter *)context)->sched, args);
}

static NTSTATUS sink_destroy_context_allocation(void *context, HANDLE allocation)
{
	return vmm_context_memory_destroy(((struct vmm_adapter *)context)->sched, allocation);
}

static NTSTATUS sink_map_context_allocation(void *context,
					    const DXGKARGCB_MAPCONTEXTALLOCATION *args,
					    D3DGPU_VIRTUAL_ADDRESS *address)
{
	return vmm_context_memory_map(((struct vmm_adapter *)context)->sched, args, address);
}

static NTSTATUS sink_update_context_allocation(void *context,
					       const DXGKARGCB_UPDATECONTEXTALLOCATION *args)
{
	return vmm_context_memory_update(((struct vmm_adapter *)context)->sched, args);
}

const struct vmm_port_sink vmm_sched_port_sink = {
	.update_context_allocation = sink_update_context_allocation,
	.map_context_allocation = sink_map_context_allocation,
	.create_context_allocation = sink_create_context_allocation,
	.destroy_context_allocation = sink_destroy_context_allocation,
	.invalidate_hw_context = sink_invalidate_hw_context,
	.interrupt = sink_interrupt,
	.dpc = sink_dpc,
	.handle_data = sink_handle_data,
	.handle_parent = sink_handle_parent,
	.fatal = sink_fatal,
};
