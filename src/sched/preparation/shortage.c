/* SPDX-License-Identifier: MIT */
/* Whether a lack of system memory may end without the caller. */
#include "sched/preparation/preparation.h"
#include "sched/resets/hw_private.h"

/* Has the context commands on the GPU? Those of a suspended one do not complete by themselves. */
static bool is_on_gpu(const struct vmm_hw_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->state_lock);
	if (context->state == VMM_HW_SUSPENDED)
		return false;
	vmm_list_for_each (link, &context->queues)
		if (vmm_container_of(link, struct vmm_hw_queue, link)->running_count)
			return true;
	return false;
}

static bool commands_run(const struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_likely(!sched->hw))
		return false;
	vmm_list_for_each (link, &sched->hw->contexts)
		if (is_on_gpu(vmm_container_of(link, struct vmm_hw_context, link)))
			return true;
	return false;
}

bool vmm_shortage_may_end(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&adapter->paging_lock);
	vmm_memory_flush_locked(adapter);
	vmm_state_lock(adapter);
	bool running = sched->hardware_total || atomic_load(&sched->ready_count) ||
		       atomic_load(&sched->chores) || commands_run(sched);
	vmm_state_unlock(adapter);
	return running || vmm_memory_can_reap_locked(adapter);
}
