/* SPDX-License-Identifier: MIT */
/*
 * Hardware engines that do not answer (TDR-21): a command that runs too long, unless its queue has no timeout (TDRS-09), a
 * suspension that is not answered (SCH-11), a fault that asks for it. The watchdog wants the reset; whoever has the paging lock next, at
 * PASSIVE_LEVEL: no submissions to the node, CollectDbgInfo, ResetHwEngine, in which the miniport names the contexts that it takes down;
 * their devices are lost, the fences that were told meanwhile count, ResumeHwEngine. Whatever goes wrong on the way leaves
 * it to the adapter's reset.
 */
#include "sched/hw_private.h"

#define NS_PER_MS 1000000u

void vmm_hw_want_reset_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_hw_engine *e = &sched->hw->engine[timeout->node];

	if (e->wanted || e->running || e->failed)
		return;
	e->wanted = true;
	e->since_ns = vmm_os_now_ns(sched->adapter->os);
	e->timeout = *timeout;
	atomic_fetch_add(&sched->chores, 1);
	atomic_fetch_add(&sched->kicks, 1);
}

/* ---- the watchdog ---- */

enum due { DUE_NOTHING, DUE_LOOK, DUE_TIMEOUT };

static uint64_t delay_ns(const struct vmm_sched *sched)
{
	return (uint64_t)sched->tdr.delay_ms * NS_PER_MS;
}

static enum due due_of_queue(const struct vmm_sched *sched, const struct vmm_hw_queue *queue,
			     uint64_t now, uint64_t *when_ns)
{
	if (!queue->running_count || queue->flags.DisableGpuTimeout)
		return DUE_NOTHING;
	uint64_t when = queue->since_ns + (queue->looked ? delay_ns(sched) : delay_ns(sched) / 2);

	if (now >= when)
		return queue->looked ? DUE_TIMEOUT : DUE_LOOK;
	*when_ns = vmm_min_u64(*when_ns, when);
	return DUE_NOTHING;
}

/* State lock held. */
static enum due due_of_context(struct vmm_sched *sched, struct vmm_hw_context *context,
			       uint64_t now, uint64_t *when_ns, struct vmm_timeout *timeout)
{
	enum due due = DUE_NOTHING;
	struct vmm_list *link;

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
		enum due mine = due_of_queue(sched, queue, now, when_ns);

		if (mine <= due)
			continue;
		due = mine;
		timeout->fence = (uint32_t)vmm_hw_first(&queue->running)->id;
		timeout->running_ns = now - queue->since_ns;
		queue->looked = true;
	}
	return due;
}

/* DUE_TIMEOUT of an engine: that was asked for too long ago. */
static enum due next_due(struct vmm_sched *sched, uint64_t now, uint64_t *when_ns,
			 struct vmm_timeout *timeout)
{
	uint64_t patience = (uint64_t)sched->tdr.ddi_delay_ms * NS_PER_MS;
	struct vmm_list *link;
	enum due due = DUE_NOTHING;

	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);
		struct vmm_hw_engine *e = &sched->hw->engine[context->node];

		if (e->failed || ((e->wanted || e->running) && now >= e->since_ns + patience)) {
			e->failed = true;
			*timeout = e->timeout;
			return DUE_TIMEOUT;
		}
		if (e->wanted || e->running) {
			*when_ns = vmm_min_u64(*when_ns, e->since_ns + patience);
			continue;
		}
		due = due_of_context(sched, context, now, when_ns, timeout);
		if (due != DUE_NOTHING)
			return due;
	}
	return DUE_NOTHING;
}

static void look(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_recovery_event(sched, VIDMM_RECOVERY_OVERDUE, timeout);
	if (!vmm_hw_scan(sched)) /* SUB-14: the fence itself says it */
		return;
	vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, timeout);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched);
}

/* TDR-01: they are told, and begin anew. */
static void ignore(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	uint64_t now = vmm_os_now_ns(sched->adapter->os);
	struct vmm_list *at, *link;

	vmm_recovery_event(sched, VIDMM_RECOVERY_TIMEOUT, timeout);
	vmm_recovery_event(sched, VIDMM_RECOVERY_IGNORED, timeout);
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_for_each (at, &sched->hw->contexts) {
		struct vmm_hw_context *context = vmm_container_of(at, struct vmm_hw_context, link);

		if (context != timeout->hw)
			continue;
		context->suspended_ns = now;
		vmm_list_for_each (link, &context->queues) {
			struct vmm_hw_queue *queue =
				vmm_container_of(link, struct vmm_hw_queue, link);

			queue->since_ns = now;
			queue->looked = false;
		}
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
}

static void time_out(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool failed;

	if (sched->tdr.debug_mode == 1) {
		ignore(sched, timeout);
		return;
	}
	vmm_os_mutex_lock(&adapter->state_lock);
	failed = sched->hw->engine[timeout->node].failed || sched->tdr.level != 3;
	if (!failed)
		vmm_hw_want_reset_locked(sched, timeout);
	vmm_os_mutex_unlock(&adapter->state_lock);
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
	vmm_os_mutex_lock(&adapter->state_lock);
	enum due due = next_due(sched, vmm_os_now_ns(adapter->os), when_ns, &timeout);
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (due == DUE_LOOK)
		look(sched, &timeout);
	else if (due == DUE_TIMEOUT)
		time_out(sched, &timeout);
	return due != DUE_NOTHING;
}

static bool has_deadline(const struct vmm_hw_context *context)
{
	struct vmm_list *link;

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

bool vmm_hw_owes(struct vmm_sched *sched)
{
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	bool owed = vmm_hw_is_watched_locked(sched) || sched->hw_running;
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return owed;
}

/* ---- the reset ---- */

void vmm_hw_lose_context(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_list *link;

	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		vmm_hw_drop_waiting(queue);
		vmm_os_mutex_lock(&adapter->state_lock);
		while (!vmm_list_empty(&queue->running))
			vmm_hw_retire_locked(vmm_hw_first(&queue->running));
		vmm_os_mutex_unlock(&adapter->state_lock);
		vmm_sync_set(queue->fence, UINT64_MAX); /* TDRS-14 */
	}
	vmm_os_mutex_lock(&adapter->state_lock);
	if (context->state != VMM_HW_RUNNING)
		atomic_fetch_sub(&adapter->sched->hw->waiting, 1);
	context->state = VMM_HW_RUNNING;
	vmm_os_mutex_unlock(&adapter->state_lock);
}

NTSTATUS vmm_hw_invalidate(struct vmm_sched *sched, const void *handle, bool collateral)
{
	struct vmm_list *link;

	if (!sched->hw || !atomic_load(&sched->hw->resetting) ||
	    !vmm_os_mutex_held(&sched->adapter->paging_lock)) {
		vmm_finding(sched->adapter->observe, "TDR-21", 0, 0,
			    "DxgkCbInvalidateHwContext outside DxgkDdiResetHwEngine: ignored");
		return STATUS_INVALID_DEVICE_STATE;
	}
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context != handle)
			continue;
		context->invalidated = true;
		context->collateral = collateral;
		return STATUS_SUCCESS;
	}
	vmm_finding(sched->adapter->observe, "TDR-21", 0, 0,
		    "DxgkCbInvalidateHwContext: hHwContext is none that DxgkDdiCreateHwContext was "
		    "given");
	return STATUS_INVALID_PARAMETER;
}

static void promote(struct vmm_sched *sched, uint32_t node, const char *why)
{
	vmm_reason(sched->adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
		   "TDR-21: the reset of the hardware engine of node %u is not enough: %s. The "
		   "adapter is reset",
		   node, why);
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	sched->hw->engine[node].failed = true;
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
}

/* The devices of those that the miniport named are lost. False: it named none, or not the one that hung. */
static bool lose_named(struct vmm_sched *sched, uint32_t node)
{
	const struct vmm_timeout *timeout = &sched->hw->engine[node].timeout;
	struct vmm_list *link;
	bool named = false;

	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (!context->invalidated)
			continue;
		named |= !timeout->hw || context == timeout->hw;
		context->invalidated = false;
		vmm_reason(sched->adapter->observe, VMM_DEVICE_REMOVED,
			   context->device->process->id, context->handle,
			   "TDR-21: hardware context 0x%08x was invalidated with the reset of node "
			   "%u%s: its device is lost",
			   context->handle, node,
			   context->collateral ? ", which it did not hang" : "");
		vmm_os_mutex_lock(&sched->adapter->state_lock);
		if (!vmm_device_lost(context->device))
			vmm_engine_blame_locked(sched, context->device, timeout,
						context->collateral);
		vmm_os_mutex_unlock(&sched->adapter->state_lock);
		vmm_hw_lose_context(context);
	}
	return named;
}

/* TDR-21 in its order. */
static void reset_engine(struct vmm_sched *sched, uint32_t node)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_port_collect_dbg_info(adapter->port, VMM_PORT_REASON_ENGINE);
	NTSTATUS status = vmm_port_reset_hw_engine(adapter->port, node);
	bool named = lose_named(sched, node);

	vmm_memory_devices_lost_locked(adapter);
	vmm_cancel_lost(sched);
	if (!NT_SUCCESS(status)) {
		promote(sched, node, "DxgkDdiResetHwEngine failed");
		return;
	}
	if (!named) {
		vmm_finding(
			adapter->observe, "TDR-21", 0, 0,
			"DxgkDdiResetHwEngine of node %u returned without having invalidated the "
			"context that hung",
			node);
		promote(sched, node, "what hung it was not invalidated");
		return;
	}
	vmm_recovery_event(sched, VIDMM_RECOVERY_ENGINE_RESET, &sched->hw->engine[node].timeout);
	if (!NT_SUCCESS(vmm_port_resume_hw_engine(adapter->port, node)))
		promote(sched, node, "DxgkDdiResumeHwEngine failed");
}

/* What the fences say by now counts: is there still something to be reset for? */
static bool is_owed(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	const struct vmm_hw_context *hung = timeout->hw;
	struct vmm_list *at, *link;
	bool owed = !hung;

	(void)vmm_hw_scan(sched);
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_for_each (at, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(at, struct vmm_hw_context, link);

		if (context != hung)
			continue;
		owed = context->state == VMM_HW_SUSPENDING;
		vmm_list_for_each (link, &context->queues) {
			const struct vmm_hw_queue *queue =
				vmm_container_of(link, struct vmm_hw_queue, link);

			owed |= queue->looked || atomic_load(&context->device->error);
		}
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return owed && !atomic_load(&sched->adapter->removed);
}

void vmm_hw_reset_chore_locked(struct vmm_sched *sched, uint32_t node)
{
	struct vmm_adapter *adapter = sched->adapter;

	if (vmm_likely(!sched->hw))
		return;
	struct vmm_hw_engine *e = &sched->hw->engine[node];
	vmm_os_mutex_lock(&adapter->state_lock);
	bool wanted = e->wanted;
	e->running = wanted;
	e->wanted = false;
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (!wanted)
		return;
	atomic_fetch_sub(&sched->chores, 1);
	if (is_owed(sched, &e->timeout)) {
		atomic_fetch_or(&sched->hw->resetting, 1u << node);
		reset_engine(sched, node);
		atomic_fetch_and(&sched->hw->resetting, ~(1u << node));
	} else {
		vmm_recovery_event(sched, VIDMM_RECOVERY_MISSED, &e->timeout);
	}
	vmm_os_mutex_lock(&adapter->state_lock);
	e->running = false;
	vmm_os_mutex_unlock(&adapter->state_lock);
	atomic_store(&sched->hw->signaled, true); /* what was told meanwhile */
	(void)vmm_hw_reported(sched);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_worker_wake(sched);
	vmm_watch_wake(sched);
}

/* The adapter was reset, or nothing completes any more: everything of everybody is over. Paging lock held. */
void vmm_hw_forget_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	if (vmm_likely(!sched->hw))
		return;
	sched->hw->starving = NULL;
	vmm_list_for_each (link, &sched->hw->contexts)
		vmm_hw_lose_context(vmm_container_of(link, struct vmm_hw_context, link));
	vmm_os_mutex_lock(&adapter->state_lock);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (sched->hw->engine[n].wanted)
			atomic_fetch_sub(&sched->chores, 1);
		sched->hw->engine[n] = (struct vmm_hw_engine){0};
	}
	atomic_store(&sched->hw->ack_tail, atomic_load(&sched->hw->ack_head));
	atomic_store(&sched->hw->fault_tail, atomic_load(&sched->hw->fault_head));
	vmm_os_mutex_unlock(&adapter->state_lock);
}
