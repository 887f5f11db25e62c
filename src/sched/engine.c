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
#include "sched/sched_private.h"

#define NS_PER_MS 1000000u
#define HUNG      3u /* D3DKMT_DEVICEEXECUTION_STATE */

bool vmm_engine_want(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_engine *e = &sched->node[timeout->node].engine;
	bool wanted = false;

	if (!sched->caps->per_engine_tdr || sched->tdr.level != 3)
		return false;
	vmm_state_lock(adapter);
	if (!e->failed && !e->wanted && !e->running) {
		e->wanted = wanted = true;
		e->since_ns = vmm_os_now_ns(adapter->os);
		e->timeout = *timeout;
		atomic_fetch_add(&sched->chores, 1);
	}
	vmm_state_unlock(adapter);
	if (!wanted)
		return false;
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
	return true;
}

void vmm_engine_fault_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout,
			     bool adapter)
{
	struct vmm_engine *e = &sched->node[timeout->node].engine;

	vmm_assert_held(&sched->adapter->state_lock);
	if (adapter || !sched->caps->per_engine_tdr || sched->tdr.level != 3) {
		e->failed = true;
		e->timeout = *timeout;
		vmm_watch_wake(sched); /* the watchdog resets adapters */
	} else if (!e->failed && !e->wanted && !e->running) {
		e->wanted = true;
		e->since_ns = vmm_os_now_ns(sched->adapter->os);
		e->timeout = *timeout;
		atomic_fetch_add(&sched->chores, 1);
	}
}

void vmm_engine_cancel_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (node->engine.device_lost)
		return;
	node->engine.device_lost = true;
	sched->losing_nodes++;
	atomic_fetch_add(&sched->chores, 1);
}

/*
 * Takes the cancellation off the deferred work. Returns true if one was requested. State lock held.
 */
static bool take_lost(struct vmm_sched *sched, struct vmm_engine *e)
	VMM_REQUIRES(vmm_state_lock_class)
{
	bool lost = e->device_lost;

	vmm_assert_held(&sched->adapter->state_lock);
	if (lost) {
		atomic_fetch_sub(&sched->chores, 1);
		sched->losing_nodes--;
	}
	e->device_lost = false;
	return lost;
}

void vmm_engine_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (node->engine.wanted)
		atomic_fetch_sub(&sched->chores, 1);
	(void)take_lost(sched, &node->engine);
	node->engine.timeout.fault = false;
	node->engine.wanted = node->engine.failed = false;
	node->engine.masked = false;
}

/* At DIRQL: discards the reports that the engine made before it was reset. */
static void forget_reports(void *context)
{
	struct vmm_node *node = context;

	atomic_store(&node->reported, node->last_completed);
	atomic_store(&node->report_pending, 0);
	atomic_store(&node->fault_tail, atomic_load(&node->fault_head));
	vmm_page_faults_forget(node);
	atomic_store(&node->preempt.answered, false);
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

static void lose_device(struct vmm_sched *sched, struct vmm_device *device,
			const struct vmm_timeout *timeout)
{
	atomic_store(&device->error, VMM_DEVICE_HUNG);
	vmm_world_next_epoch(sched->adapter->world);
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, device->process->id,
		  device->handle, VIDMM_RECOVERY_DEVICE_LOST, HUNG, timeout->node, timeout->fence,
		  0);
}

/*
 * TDR-20: counts an engine reset against the process. The limit is one less than that of adapter
 * resets, within the same time. Beyond it the process may create no device, and its devices on the
 * adapter are lost.
 */
static void count_reset(struct vmm_sched *sched, struct vmm_process *process,
			const struct vmm_timeout *timeout) VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t limit = sched->tdr.limit_count ? sched->tdr.limit_count - 1 : 0;
	uint64_t now = vmm_os_now_ns(sched->adapter->os);
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_shared_lock(process->world);
	uint32_t n = process->engine_resets++;
	bool below_limit =
		limit && (n < limit || now - process->engine_reset_ns[n % limit] >
					       (uint64_t)sched->tdr.limit_time_ms * NS_PER_MS);

	if (below_limit)
		process->engine_reset_ns[n % limit] = now;
	vmm_shared_unlock(process->world);
	if (below_limit)
		return;
	atomic_store(&process->denied, true);
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, process->id, 0,
		  VIDMM_RECOVERY_DENIED, VMM_PORT_REASON_BLOCKED, timeout->node, timeout->fence, n);
	vmm_list_for_each (link, &sched->adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (device->process == process && !vmm_device_lost(device))
			lose_device(sched, device, timeout);
	}
}

void vmm_engine_blame_locked(struct vmm_sched *sched, struct vmm_device *device,
			     const struct vmm_timeout *timeout, bool collateral)
{
	vmm_assert_held(&sched->adapter->state_lock);
	/* A device that a page fault lost keeps that state (TDR-19). */
	if (!vmm_device_lost(device))
		lose_device(sched, device, timeout);
	else if (collateral)
		return;
	if (collateral)
		atomic_store(&device->error, VMM_DEVICE_RESET);
	else
		count_reset(sched, device->process, timeout);
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

		/* A device that a page fault lost keeps that state (TDR-19). */
		if (device && !vmm_device_lost(device))
			lose_device(sched, device, &node->engine.timeout);
		if (device)
			count_reset(sched, device->process, &node->engine.timeout);
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
	vmm_port_at_interrupt(adapter->port, forget_reports, node);
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
	bool wanted = e->wanted, lost = take_lost(sched, e);
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
