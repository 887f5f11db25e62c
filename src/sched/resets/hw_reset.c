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
#include "sched/resets/hw_private.h"
#include "sched/resets/resets.h"

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
 * among them. A page fault may come from a queue that has ended since; then no context is known to
 * have hung, and there may be none to invalidate.
 */
static bool lose_invalidated(struct vmm_sched *sched, uint32_t node)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_timeout *timeout = &sched->hw->engine[node].timeout;
	struct vmm_list *link;
	bool named = !timeout->hw;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (!context->invalidated)
			continue;
		named |= context == timeout->hw;
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
