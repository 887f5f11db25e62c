/* SPDX-License-Identifier: MIT */
/*
 * Reset of hardware engines (TDR-21). Causes: a command that runs too long, unless its queue has no
 * timeout (TDRS-09); a suspension that is not answered (SCH-11); a page fault that asks for it.
 *
 * The watchdog, or the fault, requests the reset. The next holder of the paging lock at
 * PASSIVE_LEVEL does it:
 *
 *   blocks submissions to the node
 *   DxgkDdiCollectDbgInfo, then DxgkDdiResetHwEngine, in which the miniport invalidates contexts
 *   marks the devices of those contexts lost
 *   DxgkDdiResumeHwEngine
 *   applies the progress fences that were signaled meanwhile
 *
 * If a step fails, the adapter is reset instead.
 */
#include "sched/hw_private.h"

#define NS_PER_MS 1000000u

void vmm_hw_want_reset_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_hw_engine *e = &sched->hw->engine[timeout->node];

	vmm_assert_held(&sched->adapter->state_lock);
	if (e->wanted || e->running || e->failed)
		return;
	e->wanted = true;
	e->since_ns = vmm_os_now_ns(sched->adapter->os);
	e->timeout = *timeout;
	atomic_fetch_add(&sched->chores, 1);
	atomic_fetch_add(&sched->kicks, 1);
}

/* ---- the watchdog ---- */

enum due { DUE_NOTHING, DUE_QUERY, DUE_TIMEOUT };

static uint64_t delay_ns(const struct vmm_sched *sched)
{
	return (uint64_t)sched->tdr.delay_ms * NS_PER_MS;
}

/* Returns what is due for the running commands of a queue that has a timeout. (TDRS-09) */
static enum due due_of_queue(const struct vmm_sched *sched, const struct vmm_hw_queue *queue,
			     uint64_t now, uint64_t *when_ns) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (!queue->running_count || queue->flags.DisableGpuTimeout)
		return DUE_NOTHING;
	uint64_t when =
		queue->since_ns + (queue->fence_read ? delay_ns(sched) : delay_ns(sched) / 2);

	if (now >= when)
		return queue->fence_read ? DUE_TIMEOUT : DUE_QUERY;
	*when_ns = vmm_min_u64(*when_ns, when);
	return DUE_NOTHING;
}

/* State lock held. */
static enum due due_of_context(struct vmm_sched *sched, struct vmm_hw_context *context,
			       uint64_t now, uint64_t *when_ns, struct vmm_timeout *timeout)
	VMM_REQUIRES(vmm_state_lock_class)
{
	enum due due = DUE_NOTHING;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	*timeout = (struct vmm_timeout){.node = context->node, .hw = context};
	if (context->state == VMM_HW_SUSPENDING) { /* SCH-11 */
		uint64_t when = context->suspended_ns + delay_ns(sched);

		timeout->running_ns = now - context->suspended_ns;
		if (now >= when)
			return DUE_TIMEOUT;
		*when_ns = vmm_min_u64(*when_ns, when);
	}
	if (context->state != VMM_HW_RUNNING)
		return DUE_NOTHING;
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);
		enum due due_here = due_of_queue(sched, queue, now, when_ns);

		if (due_here <= due)
			continue;
		due = due_here;
		timeout->fence = (uint32_t)vmm_hw_first(&queue->running)->id;
		timeout->running_ns = now - queue->since_ns;
		queue->fence_read = true;
	}
	return due;
}

/*
 * Finds the first deadline that has passed; else *when_ns is the next one. An engine whose reset
 * has failed, or was requested too long ago, is DUE_TIMEOUT, too. State lock held.
 */
static enum due next_due(struct vmm_sched *sched, uint64_t now, uint64_t *when_ns,
			 struct vmm_timeout *timeout) VMM_REQUIRES(vmm_state_lock_class)
{
	uint64_t limit_ns = (uint64_t)sched->tdr.ddi_delay_ms * NS_PER_MS;
	struct vmm_list *link;
	enum due due = DUE_NOTHING;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);
		struct vmm_hw_engine *e = &sched->hw->engine[context->node];

		if (e->failed || ((e->wanted || e->running) && now >= e->since_ns + limit_ns)) {
			e->failed = true;
			*timeout = e->timeout;
			return DUE_TIMEOUT;
		}
		if (e->wanted || e->running) {
			*when_ns = vmm_min_u64(*when_ns, e->since_ns + limit_ns);
			continue;
		}
		due = due_of_context(sched, context, now, when_ns, timeout);
		if (due != DUE_NOTHING)
			return due;
	}
	return DUE_NOTHING;
}

static void query_fences(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_recovery_event(sched, VIDMM_RECOVERY_OVERDUE, timeout);
	if (!vmm_hw_scan(sched)) /* SUB-14: an interrupt may have been lost, so read the fences */
		return;
	vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, timeout);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched);
}

/* TDR-01: reports the timeout and restarts the deadlines of the context. */
static void ignore(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	uint64_t now = vmm_os_now_ns(sched->adapter->os);
	struct vmm_list *at, *link;

	vmm_recovery_event(sched, VIDMM_RECOVERY_TIMEOUT, timeout);
	vmm_recovery_event(sched, VIDMM_RECOVERY_IGNORED, timeout);
	vmm_state_lock(sched->adapter);
	vmm_list_for_each (at, &sched->hw->contexts) {
		struct vmm_hw_context *context = vmm_container_of(at, struct vmm_hw_context, link);

		if (context != timeout->hw)
			continue;
		context->suspended_ns = now;
		vmm_list_for_each (link, &context->queues) {
			struct vmm_hw_queue *queue =
				vmm_container_of(link, struct vmm_hw_queue, link);

			queue->since_ns = now;
			queue->fence_read = false;
		}
	}
	vmm_state_unlock(sched->adapter);
}

static void time_out(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool failed;

	if (sched->tdr.debug_mode == 1) {
		ignore(sched, timeout);
		return;
	}
	vmm_state_lock(adapter);
	failed = sched->hw->engine[timeout->node].failed || sched->tdr.level != 3;
	if (!failed)
		vmm_hw_want_reset_locked(sched, timeout);
	vmm_state_unlock(adapter);
	if (failed) {
		vmm_recover(sched, timeout);
		return;
	}
	vmm_recovery_event(sched, VIDMM_RECOVERY_TIMEOUT, timeout);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
}

bool vmm_hw_watch(struct vmm_sched *sched, uint64_t *when_ns)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_timeout timeout;

	*when_ns = VMM_OS_FOREVER;
	if (vmm_likely(!sched->hw))
		return false;
	vmm_state_lock(adapter);
	enum due due = next_due(sched, vmm_os_now_ns(adapter->os), when_ns, &timeout);
	vmm_state_unlock(adapter);
	if (due == DUE_QUERY)
		query_fences(sched, &timeout);
	else if (due == DUE_TIMEOUT)
		time_out(sched, &timeout);
	return due != DUE_NOTHING;
}

static bool has_deadline(const struct vmm_hw_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->state_lock);
	if (context->state != VMM_HW_RUNNING)
		return context->state == VMM_HW_SUSPENDING;
	vmm_list_for_each (link, &context->queues) {
		const struct vmm_hw_queue *queue =
			vmm_container_of(link, struct vmm_hw_queue, link);

		if (queue->running_count && !queue->flags.DisableGpuTimeout)
			return true;
	}
	return false;
}

bool vmm_hw_is_watched_locked(const struct vmm_sched *sched)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_likely(!sched->hw))
		return false;
	vmm_list_for_each (link, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);
		const struct vmm_hw_engine *e = &sched->hw->engine[context->node];

		if (e->wanted || e->running || e->failed || has_deadline(context))
			return true;
	}
	return false;
}

const struct vmm_device *vmm_hw_device(const struct vmm_sched *sched,
				       const struct vmm_timeout *timeout)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context == timeout->hw)
			return context->device;
	}
	return NULL;
}

bool vmm_hw_has_outstanding(struct vmm_sched *sched)
{
	vmm_state_lock(sched->adapter);
	bool needed = vmm_hw_is_watched_locked(sched) || sched->hw_running;
	vmm_state_unlock(sched->adapter);
	return needed;
}

/* ---- the reset ---- */

void vmm_hw_lose_context(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		vmm_hw_drop_waiting(queue);
		vmm_state_lock(adapter);
		while (!vmm_list_empty(&queue->running))
			vmm_hw_retire_locked(vmm_hw_first(&queue->running));
		vmm_state_unlock(adapter);
		vmm_sync_set(queue->fence, UINT64_MAX); /* TDRS-14 */
	}
	vmm_state_lock(adapter);
	if (context->state != VMM_HW_RUNNING)
		atomic_fetch_sub(&adapter->sched->hw->waiting, 1);
	context->state = VMM_HW_RUNNING;
	vmm_state_unlock(adapter);
}

NTSTATUS vmm_hw_invalidate(struct vmm_sched *sched, const void *handle, bool collateral)
{
	struct vmm_list *link;

	if (!sched->hw || !atomic_load(&sched->hw->resetting) ||
	    !vmm_os_mutex_held(&sched->adapter->paging_lock))
		return vmm_refuse_rule(
			sched->adapter->observe, STATUS_INVALID_DEVICE_STATE, "TDR-21", 0, 0,
			"DxgkCbInvalidateHwContext outside DxgkDdiResetHwEngine: ignored; it "
			"is allowed only inside");
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context != handle)
			continue;
		context->invalidated = true;
		context->collateral = collateral;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_rule(sched->adapter->observe, STATUS_INVALID_PARAMETER, "TDR-21", 0, 0,
			       "DxgkCbInvalidateHwContext: hHwContext is not a handle that "
			       "DxgkDdiCreateHwContext was given");
}

static void escalate(struct vmm_sched *sched, uint32_t node, const char *why)
{
	vmm_reason(sched->adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
		   "TDR-21: the reset of the hardware engine of node %u is not enough: %s. The "
		   "adapter is reset",
		   node, why);
	vmm_state_lock(sched->adapter);
	sched->hw->engine[node].failed = true;
	vmm_state_unlock(sched->adapter);
}

/*
 * Marks the devices of the invalidated contexts lost. Returns false if the context that hung is not
 * among them, or, if no context is known to have hung, if there are none.
 */
static bool lose_invalidated(struct vmm_sched *sched, uint32_t node)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_timeout *timeout = &sched->hw->engine[node].timeout;
	struct vmm_list *link;
	bool named = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (!context->invalidated)
			continue;
		named |= !timeout->hw || context == timeout->hw;
		context->invalidated = false;
		vmm_reason(sched->adapter->observe, VMM_DEVICE_REMOVED,
			   context->device->process->id, context->handle,
			   "TDR-21: hardware context 0x%08x was invalidated by the reset of node "
			   "%u%s: its device is lost",
			   context->handle, node,
			   context->collateral ? " that another context hung" : "");
		vmm_state_lock(sched->adapter);
		if (!vmm_device_lost(context->device))
			vmm_engine_blame_locked(sched, context->device, timeout,
						context->collateral);
		vmm_state_unlock(sched->adapter);
		vmm_hw_lose_context(context);
	}
	return named;
}

/* The DDI calls of TDR-21, in order. */
static void reset_engine(struct vmm_sched *sched, uint32_t node) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_port_collect_dbg_info(adapter->port, VMM_PORT_REASON_ENGINE);
	NTSTATUS status = vmm_port_reset_hw_engine(adapter->port, node);
	bool named = lose_invalidated(sched, node);

	vmm_memory_devices_lost_locked(adapter);
	vmm_cancel_lost(sched);
	if (!NT_SUCCESS(status)) {
		escalate(sched, node, "DxgkDdiResetHwEngine failed");
		return;
	}
	if (!named) {
		vmm_finding(
			adapter->observe, "TDR-21", 0, 0,
			"DxgkDdiResetHwEngine of node %u returned without having invalidated the "
			"context that hung",
			node);
		escalate(sched, node, "the context that hung was not invalidated");
		return;
	}
	vmm_recovery_event(sched, VIDMM_RECOVERY_ENGINE_RESET, &sched->hw->engine[node].timeout);
	if (!NT_SUCCESS(vmm_port_resume_hw_engine(adapter->port, node)))
		escalate(sched, node, "DxgkDdiResumeHwEngine failed");
}

/*
 * Reads the fences once more. Returns true if the context that hung still needs the reset, or if no
 * context is known.
 */
static bool is_reset_needed(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	const struct vmm_hw_context *hung = timeout->hw;
	struct vmm_list *at, *link;
	bool needed = !hung;

	(void)vmm_hw_scan(sched);
	vmm_state_lock(sched->adapter);
	vmm_list_for_each (at, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(at, struct vmm_hw_context, link);

		if (context != hung)
			continue;
		needed = context->state == VMM_HW_SUSPENDING;
		vmm_list_for_each (link, &context->queues) {
			const struct vmm_hw_queue *queue =
				vmm_container_of(link, struct vmm_hw_queue, link);

			needed |= queue->fence_read || atomic_load(&context->device->error);
		}
	}
	vmm_state_unlock(sched->adapter);
	return needed && !atomic_load(&sched->adapter->removed);
}

void vmm_hw_reset_chore_locked(struct vmm_sched *sched, uint32_t node)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_likely(!sched->hw))
		return;
	struct vmm_hw_engine *e = &sched->hw->engine[node];
	vmm_state_lock(adapter);
	bool wanted = e->wanted;
	e->running = wanted;
	e->wanted = false;
	vmm_state_unlock(adapter);
	if (!wanted)
		return;
	atomic_fetch_sub(&sched->chores, 1);
	if (is_reset_needed(sched, &e->timeout)) {
		atomic_fetch_or(&sched->hw->resetting, 1u << node);
		reset_engine(sched, node);
		atomic_fetch_and(&sched->hw->resetting, ~(1u << node));
	} else {
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, &e->timeout);
	}
	vmm_state_lock(adapter);
	e->running = false;
	vmm_state_unlock(adapter);
	atomic_store(&sched->hw->signaled, true); /* scans skipped the node during the reset */
	(void)vmm_hw_reported(sched);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched);
	vmm_watch_wake(sched);
}

/*
 * The adapter was reset or removed: ends the commands of all contexts, and discards requests and
 * reports. Paging lock held.
 */
void vmm_hw_forget_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_likely(!sched->hw))
		return;
	sched->hw->starving = NULL;
	vmm_list_for_each (link, &sched->hw->contexts)
		vmm_hw_lose_context(vmm_container_of(link, struct vmm_hw_context, link));
	vmm_state_lock(adapter);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (sched->hw->engine[n].wanted)
			atomic_fetch_sub(&sched->chores, 1);
		sched->hw->engine[n] = (struct vmm_hw_engine){0};
	}
	atomic_store(&sched->hw->ack_tail, atomic_load(&sched->hw->ack_head));
	atomic_store(&sched->hw->fault_tail, atomic_load(&sched->hw->fault_head));
	vmm_state_unlock(adapter);
}
