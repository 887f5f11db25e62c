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
 * Commands of a context that is off the GPU do not complete without the caller, who may be the one
 * to resume it.
 */
static bool commands_run(const struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (vmm_hw_is_running_locked(context) && !context->distrusted)
			return true;
	}
	return false;
}

/* The end of any of this work wakes the worker, which tries again. */
bool vmm_shortage_ends_with_work(struct vmm_sched *sched)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_memory_flush_locked(sched->adapter);
	vmm_state_lock(sched->adapter);
	bool running = packets_run(sched) || commands_run(sched);
	vmm_state_unlock(sched->adapter);
	return running;
}
