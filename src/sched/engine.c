/* SPDX-License-Identifier: MIT */
/*
 * The reset of one engine, where the miniport supports it: what a timeout tries before the adapter is reset (TDR-14).
 *
 *   the watchdog wants it; whoever has the paging lock next, at PASSIVE_LEVEL:
 *   what the node's interrupts have told is taken in, and what they tell from then on is not; a node that owes nothing needs
 *   no reset
 *   QueryDependentEngineGroup (TDR-18), CollectDbgInfo(0x141), ResetEngine
 *   the aborted packet's device is lost, alone; what was behind it is taken back and runs again (TDR-15, TDR-16)
 *
 * Whatever goes wrong on the way, and a paging packet that was aborted, leaves it to the adapter's reset (TDR-17).
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
	vmm_os_mutex_lock(&adapter->state_lock);
	if (!e->failed && !e->wanted && !e->running) {
		e->wanted = wanted = true;
		e->since_ns = vmm_os_now_ns(adapter->os);
		e->timeout = *timeout;
		atomic_fetch_add(&sched->chores, 1);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
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

	if (adapter || !sched->caps->per_engine_tdr || sched->tdr.level != 3) {
		e->failed = true;
		e->timeout = *timeout;
		vmm_watch_wake(sched); /* who resets adapters */
	} else if (!e->failed && !e->wanted && !e->running) {
		e->wanted = true;
		e->since_ns = vmm_os_now_ns(sched->adapter->os);
		e->timeout = *timeout;
		atomic_fetch_add(&sched->chores, 1);
	}
}

void vmm_engine_cancel_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	if (node->engine.lost)
		return;
	node->engine.lost = true;
	sched->losing++;
	atomic_fetch_add(&sched->chores, 1);
}

/* Off the chores: nothing waits for its turn there any more. State lock held. */
static bool take_lost(struct vmm_sched *sched, struct vmm_engine *e)
{
	bool lost = e->lost;

	if (lost) {
		atomic_fetch_sub(&sched->chores, 1);
		sched->losing--;
	}
	e->lost = false;
	return lost;
}

void vmm_engine_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	if (node->engine.wanted)
		atomic_fetch_sub(&sched->chores, 1);
	(void)take_lost(sched, &node->engine);
	node->engine.timeout.fault = false;
	node->engine.wanted = node->engine.failed = false;
	node->engine.masked = false;
}

/* At DIRQL: what the engine said before it was reset means nothing any more. */
static void forget_reports(void *context)
{
	struct vmm_node *node = context;

	atomic_store(&node->reported, node->last_completed);
	atomic_store(&node->report_pending, 0);
	atomic_store(&node->fault_tail, atomic_load(&node->fault_head));
	vmm_page_faults_forget(node);
	atomic_store(&node->preempt.answered, false);
}

static void unmask(struct vmm_sched *sched, uint32_t index)
{
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	sched->node[index].engine.masked = false;
	vmm_queue_flush_locked(sched, index);
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
}

/* TDR-17 */
static void promote(struct vmm_sched *sched, uint32_t index, const char *why)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_reason(adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
		   "TDR-17: the reset of node %u alone is not enough: %s. The adapter is reset",
		   index, why);
	vmm_os_mutex_lock(&adapter->state_lock);
	sched->node[index].engine.failed = true;
	vmm_os_mutex_unlock(&adapter->state_lock);
}

/*
 * Everything that the node has told so far counts, and from now on nothing (TDR-14). False: it owes nothing, or the miniport
 * is dead.
 */
static bool is_owed(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_queue_flush_locked(sched, index);
	bool owed = node->engine.timeout.fault || node->preempt.fence ||
		    (!vmm_list_empty(&node->hardware) &&
		     !vmm_fence_reached(node->last_completed, node->engine.timeout.fence));
	node->engine.masked = owed = owed && !atomic_load(&adapter->removed);
	vmm_os_mutex_unlock(&adapter->state_lock);
	return owed;
}

static bool stands_alone(struct vmm_sched *sched, uint32_t index)
{
	ULONGLONG engines = 0;
	NTSTATUS status = vmm_port_query_dependent_engines(sched->adapter->port, index, &engines);

	if (!NT_SUCCESS(status)) {
		promote(sched, index, "DxgkDdiQueryDependentEngineGroup failed");
		return false;
	}
	if (!(engines >> index & 1)) {
		vmm_finding(sched->adapter->observe, "TDR-18", 0, 0,
			    "engines 0x%llx depend on node %u, and it is not among them itself",
			    (unsigned long long)engines, index);
		vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_VIDMM,
			       VMM_PORT_VIDMM_OTHER(VIDMM_DDI_QUERY_DEPENDENT_ENGINE_GROUP),
			       engines, index);
		return false;
	}
	if (engines != 1ull << index) {
		promote(sched, index,
			"other engines depend on it, whose resets (TDR-18) are not built");
		return false;
	}
	return true;
}

/* The newest packet up to that id: the one that was aborted. NULL: it is complete. State lock held. */
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

static void lose(struct vmm_sched *sched, struct vmm_device *device,
		 const struct vmm_timeout *timeout)
{
	atomic_store(&device->error, VMM_DEVICE_HUNG);
	vmm_world_next_epoch(sched->adapter->world);
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, device->process->id,
		  device->handle, VIDMM_RECOVERY_DEVICE_LOST, HUNG, timeout->node, timeout->fence,
		  0);
}

/* TDR-20: one less than resets of the adapter, within the same time, and then that process has had its share. */
static void count(struct vmm_sched *sched, struct vmm_process *process,
		  const struct vmm_timeout *timeout)
{
	uint32_t limit = sched->tdr.limit_count ? sched->tdr.limit_count - 1 : 0;
	uint64_t now = vmm_os_now_ns(sched->adapter->os);
	struct vmm_list *link;

	vmm_os_mutex_lock(&process->world->shared_lock);
	uint32_t n = process->engine_resets++;
	bool good = limit && (n < limit || now - process->engine_reset_ns[n % limit] >
						   (uint64_t)sched->tdr.limit_time_ms * NS_PER_MS);

	if (good)
		process->engine_reset_ns[n % limit] = now;
	vmm_os_mutex_unlock(&process->world->shared_lock);
	if (good)
		return;
	atomic_store(&process->denied, true);
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, process->id, 0,
		  VIDMM_RECOVERY_DENIED, VMM_PORT_REASON_BLOCKED, timeout->node, timeout->fence, n);
	vmm_list_for_each (link, &sched->adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (device->process == process && !vmm_device_lost(device))
			lose(sched, device, timeout);
	}
}

void vmm_engine_blame_locked(struct vmm_sched *sched, struct vmm_device *device,
			     const struct vmm_timeout *timeout, bool collateral)
{
	if (!vmm_device_lost(device)) /* one that is lost to a page fault stays so (TDR-19) */
		lose(sched, device, timeout);
	else if (collateral)
		return;
	if (collateral)
		atomic_store(&device->error, VMM_DEVICE_RESET);
	else
		count(sched, device->process, timeout);
}

/* TDR-15, TDR-16, TDRS-07: one device is lost, everybody else goes on. False: it was paging that was aborted. */
static bool settle(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];

	vmm_os_mutex_lock(&adapter->state_lock);
	struct vmm_packet *packet = aborted_packet(node, fence);
	bool paging = packet && packet->paging;
	if (!paging) {
		struct vmm_device *device =
			packet ? vmm_dma_of(packet)->context->device : node->last_device;

		/* One that is lost to a page fault stays so (TDR-19). */
		if (device && !vmm_device_lost(device))
			lose(sched, device, &node->engine.timeout);
		if (device)
			count(sched, device->process, &node->engine.timeout);
		vmm_queue_retire_locked(sched, node, fence);
		uint32_t again = vmm_preempt_aborted_locked(sched, node);

		vmm_watch_moved_locked(sched, node);
		vmm_event(adapter->observe, VIDMM_EVENT_RECOVERY, 0, 0, VIDMM_RECOVERY_ENGINE_RESET,
			  VMM_PORT_REASON_ENGINE, index, fence, again);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return !paging;
}

static void reset_engine(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	UINT fence = 0;

	vmm_port_collect_dbg_info(adapter->port, VMM_PORT_REASON_ENGINE); /* TDR-03 */
	if (!NT_SUCCESS(vmm_port_reset_engine(adapter->port, index, &fence))) {
		promote(sched, index, "DxgkDdiResetEngine failed");
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
	if (!settle(sched, index, fence)) {
		promote(sched, index, "the packet that it aborted was paging");
		return;
	}
	vmm_port_at_interrupt(adapter->port, forget_reports, node);
	unmask(sched, index);
	vmm_memory_devices_lost_locked(adapter);
	vmm_cancel_lost(sched);
	vmm_steps_look(sched);
}

void vmm_engine_chore_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_engine *e = &sched->node[index].engine;

	vmm_os_mutex_lock(&adapter->state_lock);
	bool wanted = e->wanted, lost = take_lost(sched, e);
	e->running = wanted;
	e->wanted = false;
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (lost) {
		vmm_memory_devices_lost_locked(adapter);
		vmm_cancel_lost(sched);
		vmm_worker_wake(sched); /* packets of it that wait for preparation */
	}
	if (!wanted)
		return;
	atomic_fetch_sub(&sched->chores, 1);
	if (!is_owed(sched, index))
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, &e->timeout);
	else if (stands_alone(sched, index))
		reset_engine(sched, index);
	vmm_os_mutex_lock(&adapter->state_lock);
	e->running = false;
	e->timeout.fault &= e->failed;
	vmm_os_mutex_unlock(&adapter->state_lock);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched); /* packets of the lost device that wait for preparation */
	vmm_watch_wake(sched);  /* the node has another time now */
}
