/* SPDX-License-Identifier: MIT */
/*
 * Requests for the reset of one engine (engine_reset.c), and the devices that it loses. The
 * watchdog, or a page fault, requests it; a thread that finds a device lost requests that its
 * packets are canceled.
 */
#include "sched/resets/resets.h"

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
	return wanted;
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
bool vmm_engine_take_lost_locked(struct vmm_sched *sched, struct vmm_engine *e)
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
	(void)vmm_engine_take_lost_locked(sched, &node->engine);
	node->engine.timeout.fault = false;
	node->engine.wanted = node->engine.failed = false;
	node->engine.masked = false;
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

		if (device->process != process || vmm_device_lost(device))
			continue;
		vmm_reason(sched->adapter->observe, VMM_DEVICE_REMOVED, process->id, device->handle,
			   "TDR-20: process %u has caused more engine resets than its limit %u, "
			   "device 0x%08x is lost: from now on its calls return "
			   "STATUS_DEVICE_REMOVED",
			   process->id, limit, device->handle);
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

void vmm_recovery_event(struct vmm_sched *sched, uint32_t what, const struct vmm_timeout *timeout)
{
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, timeout->process, timeout->context,
		  what, VMM_PORT_REASON_ADAPTER, timeout->node, timeout->fence,
		  timeout->running_ns);
}
