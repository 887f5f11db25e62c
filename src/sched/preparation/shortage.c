/* SPDX-License-Identifier: MIT */
/* Whether a lack of system memory may end without the caller. */
#include "sched/preparation/preparation.h"
#include "sched/resets/hw_private.h"

static bool packets_run(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	return sched->hardware_total || atomic_load(&sched->ready_count) ||
	       atomic_load(&sched->chores);
}

bool vmm_shortage_ends_with_packets(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&adapter->paging_lock);
	vmm_memory_flush_locked(adapter);
	vmm_state_lock(adapter);
	bool running = packets_run(sched);
	vmm_state_unlock(adapter);
	return running || vmm_memory_can_reap_locked(adapter);
}

/*
 * Has the context commands that will complete without the caller? Those of a context that is off
 * the GPU do not: the caller may be the one who resumes it.
 */
static bool runs(const struct vmm_hw_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->state_lock);
	if (context->state != VMM_HW_RUNNING || context->distrusted)
		return false;
	vmm_list_for_each (link, &context->queues)
		if (vmm_container_of(link, struct vmm_hw_queue, link)->running_count)
			return true;
	return false;
}

/* The end of any of this work wakes the worker, which tries again. */
bool vmm_shortage_ends_with_work(struct vmm_sched *sched)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_memory_flush_locked(sched->adapter);
	vmm_state_lock(sched->adapter);
	bool running = packets_run(sched);
	vmm_list_for_each (link, &sched->hw->contexts)
		running |= runs(vmm_container_of(link, struct vmm_hw_context, link));
	vmm_state_unlock(sched->adapter);
	return running;
}
