/* SPDX-License-Identifier: MIT */
/*
 * The reset of one engine, if the miniport supports it. A timeout tries it before the adapter is
 * reset (TDR-14).
 *
 * The watchdog, or a page fault, requests the reset. The next holder of the paging lock at
 * PASSIVE_LEVEL does it:
 *
 *   applies the recorded reports of the node, and masks later ones; if no packet is outstanding,
 *   there is nothing to reset
 *   DxgkDdiQueryDependentEngineGroup (TDR-18), DxgkDdiCollectDbgInfo(0x141), DxgkDdiResetEngine
 *   marks only the device of the aborted packet lost; the packets behind it are queued again
 *   (TDR-15, TDR-16)
 *
 * If a step fails, or if the aborted packet was paging, the adapter is reset instead (TDR-17).
 */
#include "sched/resets/resets.h"

struct forgotten {
	struct vmm_sched *sched;
	uint32_t node;
};

/* At DIRQL: discards the reports that the engine made before it was reset. */
static void forget_reports(void *context)
{
	const struct forgotten *f = context;

	vmm_reports_forget(f->sched, f->node, f->sched->node[f->node].last_completed);
}

static void unmask(struct vmm_sched *sched, uint32_t index) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	sched->node[index].engine.masked = false;
	vmm_queue_flush_locked(sched, index);
	vmm_state_unlock(sched->adapter);
}

/* TDR-17: has the watchdog reset the adapter. */
static void escalate(struct vmm_sched *sched, uint32_t index, const char *why)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_reason(adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
		   "TDR-17: the reset of node %u alone is not enough: %s. The adapter is reset",
		   index, why);
	vmm_state_lock(adapter);
	sched->node[index].engine.failed = true;
	vmm_state_unlock(adapter);
}

/*
 * Applies the node's reports so far, and masks later ones (TDR-14). Returns false if the packet
 * that hung is complete, or if the adapter is removed; the reports are then not masked.
 */
static bool is_reset_needed(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];

	vmm_state_lock(adapter);
	vmm_queue_flush_locked(sched, index);
	bool needed = node->engine.timeout.fault || node->preempt.fence ||
		      (!vmm_list_empty(&node->hardware) &&
		       !vmm_fence_reached(node->last_completed, node->engine.timeout.fence));
	node->engine.masked = needed = needed && !atomic_load(&adapter->removed);
	vmm_state_unlock(adapter);
	return needed;
}

static bool is_independent(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	ULONGLONG engines = 0;
	NTSTATUS status = vmm_port_query_dependent_engines(sched->adapter->port, index, &engines);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (!NT_SUCCESS(status)) {
		escalate(sched, index, "DxgkDdiQueryDependentEngineGroup failed");
		return false;
	}
	if (!(engines >> index & 1)) {
		vmm_finding(sched->adapter->observe, "TDR-18", 0, 0,
			    "engines 0x%llx depend on node %u: the group must contain the node "
			    "itself",
			    (unsigned long long)engines, index);
		vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_VIDMM,
			       VMM_PORT_VIDMM_OTHER(VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP),
			       engines, index);
		return false;
	}
	if (engines != 1ull << index) {
		escalate(sched, index,
			 "other engines depend on it, and resetting them together (TDR-18) is not "
			 "built");
		return false;
	}
	return true;
}

/*
 * Returns the newest packet up to that id, which was aborted; NULL: it is complete. State lock
 * held.
 */
static struct vmm_packet *aborted_packet(const struct vmm_node *node, uint32_t fence)
{
	struct vmm_packet *found = NULL;
	const struct vmm_list *link;

	vmm_list_for_each (link, &node->hardware) {
		struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		if (!vmm_fence_reached(fence, packet->fence))
			break;
		found = packet;
	}
	return found;
}

/* The same words as for the adapter's reset. A page fault has reported its device already. */
static void report_lost(struct vmm_sched *sched, uint32_t index, const struct vmm_device *device)
{
	if (vmm_device_lost(device))
		return;
	vmm_reason(
		sched->adapter->observe, VMM_DEVICE_REMOVED, device->process->id, device->handle,
		"TDR-15: the engine of node %u is reset, device 0x%08x is lost, whose packet hung: "
		"from now on its calls return STATUS_DEVICE_REMOVED (LOCK-33, OFR-15)",
		index, device->handle);
}

/*
 * TDR-15, TDR-16, TDRS-07: one device is lost, and the packets of the others are queued again.
 * Returns false, having done nothing, if the aborted packet was paging.
 */
static bool lose_guilty_device(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];

	vmm_state_lock(adapter);
	struct vmm_packet *packet = aborted_packet(node, fence);
	bool paging = packet && packet->paging;
	if (!paging) {
		struct vmm_device *device =
			packet ? vmm_dma_of(packet)->context->device : node->last_device;

		if (device) {
			report_lost(sched, index, device);
			vmm_engine_blame_locked(sched, device, &node->engine.timeout, false);
		}
		vmm_queue_retire_locked(sched, node, fence);
		uint32_t again = vmm_preempt_aborted_locked(sched, node);

		vmm_watch_restart_locked(sched, node);
		vmm_event(adapter->observe, VIDMM_EVENT_RECOVERY, 0, 0, VIDMM_RECOVERY_ENGINE_RESET,
			  VMM_PORT_REASON_ENGINE, index, fence, again);
	}
	vmm_state_unlock(adapter);
	return !paging;
}

static void reset_engine(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	UINT fence = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_port_collect_dbg_info(adapter->port, VMM_PORT_REASON_ENGINE); /* TDR-03 */
	if (!NT_SUCCESS(vmm_port_reset_engine(adapter->port, index, &fence))) {
		escalate(sched, index, "DxgkDdiResetEngine failed");
		return;
	}
	if (!vmm_fence_reached(fence, node->last_completed) ||
	    !vmm_fence_reached(node->last_submitted, fence)) {
		vmm_finding(
			adapter->observe, "TDR-15", 0, 0,
			"DxgkDdiResetEngine of node %u: LastAbortedFenceId 0x%08x is not between "
			"the last completed 0x%08x and the last submitted 0x%08x",
			index, fence, node->last_completed, node->last_submitted);
		vmm_port_fatal(adapter->port, VMM_PORT_FATAL_VIDSCH, VMM_PORT_VIDSCH_ABORTED, fence,
			       node->last_completed);
		return;
	}
	if (!lose_guilty_device(sched, index, fence)) {
		escalate(sched, index, "the packet that it aborted was paging");
		return;
	}
	vmm_port_at_interrupt(adapter->port, forget_reports, &(struct forgotten){sched, index});
	unmask(sched, index);
	vmm_memory_devices_lost_locked(adapter);
	vmm_cancel_lost(sched);
	vmm_steps_poll(sched);
}

void vmm_engine_chore_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_engine *e = &sched->node[index].engine;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	bool wanted = e->wanted, lost = vmm_engine_take_lost_locked(sched, e);
	e->running = wanted;
	e->wanted = false;
	vmm_state_unlock(adapter);
	if (lost) {
		vmm_memory_devices_lost_locked(adapter);
		vmm_cancel_lost(sched);
		vmm_worker_wake(sched); /* cancels its packets that wait for preparation */
	}
	if (!wanted)
		return;
	atomic_fetch_sub(&sched->chores, 1);
	if (!is_reset_needed(sched, index))
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, &e->timeout);
	else if (is_independent(sched, index))
		reset_engine(sched, index);
	vmm_state_lock(adapter);
	e->running = false;
	e->timeout.fault &= e->failed;
	vmm_state_unlock(adapter);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched); /* cancels packets of the lost device that wait for preparation */
	vmm_watch_wake(sched);  /* the node has a new deadline */
}
