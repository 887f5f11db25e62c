/* SPDX-License-Identifier: MIT */
/*
 * Recovery from a timeout: reset of the adapter (TDR-05), on the watchdog's thread.
 *
 * 1. Threads that wait for the GPU with the paging lock held return (wait_locked).
 * 2. The miniport's call gate is closed. Threads inside leave within TdrDdiDelay (TDR-04).
 * 3. The paging lock is taken. The devices are lost (TDR-07). Clients lose access to video memory
 *    (TDR-06).
 * 4. CollectDbgInfo and ResetFromTimeout are called. All packets with the GPU and all paging
 *    packets are retired as complete (TDR-09), with the cleanup calls to the miniport (PAG-27).
 * 5. RestartFromTimeout is called, then CancelCommand for packets that will not run (TDR-12).
 * 6. The call gate is opened.
 *
 * Every packet counts as complete, so every waiter returns. No waiter sees that before the end: the
 * paging lock is held, and progress is signaled last.
 */
#include "sched/calls/calls.h"

#define NS_PER_MS 1000000u

static void fatal(struct vmm_sched *sched, const struct vmm_timeout *timeout, const char *rule,
		  const char *why)
{
	vmm_reason(sched->adapter->observe, VMM_DEVICE_REMOVED, 0, 0,
		   "%s: node %u has not completed fence 0x%08x for %llu ms: %s", rule,
		   timeout->node, timeout->fence,
		   (unsigned long long)(timeout->running_ns / NS_PER_MS), why);
	vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_TDR, timeout->node, timeout->fence, 0);
}

/*
 * TDR-13, TDRS-08: returns whether another reset is allowed: TdrLimitCount resets within
 * TdrLimitTime are survived, one more is not.
 */
static bool may_reset(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t limit = sched->tdr.limit_count, resets = atomic_load(&sched->adapter->resets);
	uint64_t now = vmm_os_now_ns(sched->adapter->os);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (!limit)
		return false;
	if (resets >= limit &&
	    now - sched->reset_ns[resets % limit] <= (uint64_t)sched->tdr.limit_time_ms * NS_PER_MS)
		return false;
	sched->reset_ns[resets % limit] = now;
	return true;
}

/*
 * TDR-19: after a page fault a device keeps reading as page-faulted, but its calls answer as after
 * a reset.
 */
static enum vmm_device_error error_after_reset(const struct vmm_device *device, bool offender)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t error = atomic_load(&device->error);

	vmm_assert_held(&device->adapter->state_lock);
	if (error == VMM_DEVICE_PAGE_FAULT || error == VMM_DEVICE_PAGE_FAULT_RESET)
		return VMM_DEVICE_PAGE_FAULT_RESET;
	return offender ? VMM_DEVICE_HUNG : VMM_DEVICE_RESET;
}

/* TDR-07: the device whose packet hung reads HUNG, all others read RESET. */
static void lose_devices(struct vmm_sched *sched, const struct vmm_timeout *timeout)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	const struct vmm_list *hardware = &sched->node[timeout->node].hardware;
	const struct vmm_device *offender = NULL;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	if (!vmm_list_empty(hardware) && !timeout->fault) {
		struct vmm_packet *packet =
			vmm_container_of(hardware->next, struct vmm_packet, link);

		if (!packet->paging)
			offender = vmm_dma_of(packet)->context->device;
	}
	if (vmm_unlikely(timeout->hw != NULL))
		offender = vmm_hw_device(sched, timeout);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		enum vmm_device_error error = error_after_reset(device, device == offender);

		atomic_store(&device->error, error);
		vmm_world_next_epoch(adapter->world);
		vmm_event(adapter->observe, VIDMM_EVENT_RECOVERY, device->process->id,
			  device->handle, VIDMM_RECOVERY_DEVICE_LOST,
			  error == VMM_DEVICE_HUNG    ? 3
			  : error == VMM_DEVICE_RESET ? 2
						      : 7,
			  timeout->node, timeout->fence, 0);
		vmm_reason(adapter->observe, VMM_DEVICE_REMOVED, device->process->id,
			   device->handle,
			   "TDR-07: the adapter is reset, device 0x%08x is lost%s: from now on its "
			   "calls return STATUS_DEVICE_REMOVED (LOCK-33, OFR-15)",
			   device->handle, device == offender ? ", whose packet hung" : "");
	}
	atomic_fetch_add(&adapter->resets, 1);
	adapter->reset_suspension = vmm_port_suspensions(adapter->port);
	vmm_state_unlock(adapter);
}

/* TDR-09, at DIRQL: discards interrupt reports of packets from before the reset. */
static void forget_reports(void *context)
{
	struct vmm_sched *sched = context;

	for (uint32_t n = 0; n < sched->adapter->node_count; n++)
		vmm_reports_forget(sched, n, sched->node[n].last_submitted);
}

/*
 * Retires all packets that are with the GPU, and all paging packets, submitted or not. Paging lock
 * and state lock held.
 */
static void retire_node(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_state_lock_class)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_assert_held(&sched->adapter->state_lock);
	vmm_engine_forget_locked(sched, node);
	vmm_preempt_forget_locked(sched, node);
	vmm_list_for_each_safe (link, next, &node->hardware) {
		struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		vmm_list_remove(link);
		if (!packet->paging)
			vmm_dma_of(packet)->context->turn.running--;
		vmm_packet_retired_locked(sched, packet);
	}
	vmm_list_for_each_safe (link, next, &node->paging) {
		struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		vmm_list_remove(link);
		VMM_COUNT_PACKETS_LOCKED(sched->ready_count, -1u);
		vmm_packet_retired_locked(sched, packet);
	}
	sched->hardware_total -= node->hardware_count;
	node->hardware_count = 0;
	node->queried_ns = 0;
	node->expired = false;
	node->current = NULL; /* SUB-20: after a reset no context is current */
	node->last_completed = node->last_submitted;
}

static void retire_queues(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_timeline *paging = &adapter->timeline[adapter->paging_timeline];

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_port_at_interrupt(adapter->port, forget_reports, sched);
	vmm_state_lock(adapter);
	for (uint32_t n = 0; n < adapter->node_count; n++)
		retire_node(sched, &sched->node[n]);
	atomic_store_explicit(&paging->completed, atomic_load(&paging->queued),
			      memory_order_release);
	vmm_state_unlock(adapter);
}

/* ---- the reset ---- */

/* Resets the adapter. This thread alone may enter the miniport; paging lock held. */
static void reset_adapter(struct vmm_sched *sched, const struct vmm_timeout *timeout)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	lose_devices(sched, timeout);
	vmm_memory_hide_locked(adapter);
	vmm_port_collect_dbg_info(adapter->port, VMM_PORT_REASON_ADAPTER);
	if (!NT_SUCCESS(vmm_port_reset_from_timeout(adapter->port)))
		return;
	vmm_recovery_event(sched, VIDMM_RECOVERY_RESET, timeout);
	vmm_dma_unmap_all(adapter);
	vmm_display_forget_locked(sched);
	vmm_memory_reset_locked(adapter);
	retire_queues(sched);
	vmm_hw_forget_locked(sched);
	if (atomic_load(&adapter->removed) || /* a cleanup call failed */
	    !NT_SUCCESS(vmm_port_restart_from_timeout(adapter->port)))
		return;
	vmm_memory_restart_locked(adapter);
	vmm_memory_devices_lost_locked(adapter);
	vmm_cancel_lost(sched);
	vmm_steps_poll(sched); /* TDRS-11 */
	vmm_recovery_event(sched, VIDMM_RECOVERY_RESTARTED, timeout);
}

/*
 * Returns whether the fence is still missing. It may have completed while other threads left the
 * miniport.
 */
static bool is_still_owed(struct vmm_sched *sched, const struct vmm_timeout *timeout)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_unlikely(timeout->hw != NULL))
		return vmm_hw_has_outstanding(sched);
	vmm_state_lock(sched->adapter);
	const struct vmm_node *node = &sched->node[timeout->node];
	bool owed = timeout->fault     ? true
		    : timeout->request ? node->preempt.fence == timeout->request
				       : !vmm_fence_reached(node->last_completed, timeout->fence);
	vmm_state_unlock(sched->adapter);
	return owed;
}

static void reset(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;
	uint64_t until = vmm_os_now_ns(adapter->os) + (uint64_t)sched->tdr.ddi_delay_ms * NS_PER_MS;

	atomic_store(&adapter->recovering, true);
	vmm_world_next_epoch(adapter->world);
	vmm_progress_signal(adapter);
	if (!vmm_port_suspend(adapter->port, until)) {
		vmm_reason(adapter->observe, VMM_DEVICE_REMOVED, 0, 0,
			   "TDR-04: %u threads are still inside the miniport after TdrDdiDelay "
			   "(%u ms)",
			   vmm_port_inside(adapter->port), sched->tdr.ddi_delay_ms);
		fatal(sched, timeout, "TDR-04",
		      "the adapter cannot be reset while a thread is inside the miniport");
		atomic_store(&adapter->recovering, false);
		vmm_port_resume(adapter->port);
		vmm_progress_signal(adapter);
		return;
	}
	vmm_paging_lock(adapter);
	if (vmm_sched_is_gone(adapter) || !is_still_owed(sched, timeout))
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, timeout);
	else if (!may_reset(sched))
		fatal(sched, timeout, "TDR-13",
		      "more resets than TdrLimitCount within TdrLimitTime");
	else
		reset_adapter(sched, timeout);
	atomic_store(&adapter->recovering, false);
	vmm_port_resume(adapter->port);
	/* The restart has written the page tables again. */
	vmm_memory_flush_locked(adapter);
	vmm_paging_unlock(adapter);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
	vmm_worker_wake(sched);
}

void vmm_recover(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	if (sched->tdr.level == 1)
		fatal(sched, timeout, "TDR-01",
		      "TdrLevel 1 stops the adapter instead of resetting it");
	else
		reset(sched, timeout);
}

/* ---- one device ---- */

NTSTATUS vmm_sched_mark_device(struct vmm_device *device, uint32_t reason)
{
	struct vmm_adapter *adapter = device->adapter;
	uint32_t none = VMM_DEVICE_OK;

	vmm_assert(vmm_device_is_valid(device));
	vmm_paging_lock(adapter);
	bool marked = atomic_compare_exchange_strong(&device->error, &none, VMM_DEVICE_RESET);
	if (marked) {
		vmm_world_next_epoch(adapter->world);
		vmm_reason(
			adapter->observe, VMM_DEVICE_REMOVED, device->process->id, device->handle,
			"TDRS-15: device 0x%08x is marked as in error (reason 0x%08x): it is lost",
			device->handle, reason);
		vmm_memory_devices_lost_locked(adapter);
		vmm_cancel_lost(adapter->sched);
		vmm_queue_drain_locked(adapter->sched);
	}
	vmm_paging_commit(adapter);
	if (marked) {
		vmm_device_disturb(device);
		vmm_progress_signal(adapter);
		vmm_worker_wake(adapter->sched);
	}
	return STATUS_SUCCESS;
}
