/* SPDX-License-Identifier: MIT */
/*
 * The watchdog's part for hardware queues: commands that run too long, unless their queue has no
 * timeout (TDRS-09), and suspensions that are not answered (SCH-11). It requests the reset of the
 * engine (hw_reset.c), or of the adapter.
 */
#include "sched/resets/hw_private.h"
#include "sched/calls/calls.h"

#define NS_PER_MS 1000000u

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
	*timeout = (struct vmm_timeout){.node = context->node,
					.process = context->device->process->id,
					.context = context->handle,
					.hw = context};
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
