/* SPDX-License-Identifier: MIT */
/*
 * Deferred work of the nodes (sched->chores), for the next holder of the paging lock: preemption
 * requests, the reset of an engine, cancellations after a lost device, packets that need a new id.
 * All but the first need PASSIVE_LEVEL.
 */
#include "sched/node_queue/node_queue.h"

/* Gives a new id to the packet of the node that waits for one. */
static void renew_stale(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_packet *stale = NULL;
	bool urgent = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	if (node->stale) {
		node->stale = false;
		atomic_fetch_sub(&sched->chores, 1);
		(void)vmm_order_next_locked(sched, node, &urgent, &stale);
	}
	vmm_state_unlock(sched->adapter);
	if (stale)
		(void)vmm_packet_renew(sched, stale);
}

void vmm_chores_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool passive = vmm_port_at_passive(adapter->port);

	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t n = 0; n < adapter->node_count && !atomic_load(&adapter->removed) &&
			     !atomic_load(&adapter->recovering);
	     n++) {
		vmm_preempt_request(sched, n);
		if (!passive)
			continue;
		vmm_engine_chore_locked(sched, n);
		vmm_hw_reset_chore_locked(sched, n);
		renew_stale(sched, &sched->node[n]);
	}
}
