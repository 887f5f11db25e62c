/* SPDX-License-Identifier: MIT */
/*
 * Surprise removal (PNP-08): the device is gone, in whatever state the GPU was. New calls are
 * refused. The miniport is notified, possibly while other threads are still inside it. The call
 * gate then admits only calls that end objects, so that the miniport can free its software state.
 * Every thread that waits for the GPU returns, and queued packets count as complete without having
 * run. A miniport that cannot be notified, or that fails the notification, gets no further calls
 * except StopDevice, RemoveDevice and Unload.
 */
#include "sched/resets/resets.h"

bool vmm_sched_is_gone(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->removed) || vmm_port_removed(adapter->port);
}

static void abandon_list(struct vmm_sched *sched, struct vmm_list *list)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	while (!vmm_list_empty(list)) {
		struct vmm_packet *packet = vmm_container_of(list->next, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		vmm_packet_retired_locked(sched, packet);
	}
}

static void abandon_ready(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	abandon_list(sched, &node->paging);
	while (!vmm_list_empty(&node->contexts)) {
		struct vmm_packet *packet = vmm_order_first(
			vmm_container_of(node->contexts.next, struct vmm_context, turn.link));

		packet->cancelled = true;
		vmm_order_take_locked(sched, packet);
		vmm_packet_retired_locked(sched, packet);
	}
	node->cancelled = 0;
}

static void abandon_prepare(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	while (!vmm_list_empty(&sched->prepare)) {
		struct vmm_dma *dma =
			vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link);

		vmm_list_remove(&dma->packet.link);
		while (!vmm_list_empty(&dma->copies))
			vmm_packet_retired_locked(sched, &vmm_copy_of(dma->copies.next)->packet);
		vmm_packet_retired_locked(sched, &dma->packet);
	}
}

/* Completes every packet. */
static void abandon_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_assert_held(&adapter->paging_lock);
	vmm_assert(atomic_load(&adapter->removed));
	vmm_hw_forget_locked(sched);
	vmm_state_lock(adapter);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		abandon_list(sched, &sched->node[n].hardware);
		vmm_engine_forget_locked(sched, &sched->node[n]);
		vmm_preempt_forget_locked(sched, &sched->node[n]);
		abandon_ready(sched, &sched->node[n]);
		sched->node[n].hardware_count = 0;
	}
	abandon_prepare(sched);
	sched->hardware_total = 0;
	atomic_store(&sched->ready_count, 0);
	atomic_store(&sched->prepare_count, 0);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		atomic_store(&adapter->timeline[t].completed,
			     atomic_load(&adapter->timeline[t].queued));
	vmm_state_unlock(adapter);
	vmm_steps_poll(sched);
	vmm_adapter_disturb(adapter);
	vmm_progress_signal(adapter);
}

/*
 * Nothing completes any more: the adapter was removed, or the simulator has reported a deadlock.
 * Paging lock held.
 */
void vmm_sched_abandon_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	atomic_store(&adapter->removed, true);
	atomic_store(&adapter->closed, true);
	vmm_world_next_epoch(adapter->world);
	vmm_world_changed(adapter->world);
	abandon_locked(adapter);
}

void vmm_sched_abandon(struct vmm_adapter *adapter)
{
	/* Under the paging lock no thread is preparing the packets that are abandoned. */
	vmm_paging_lock(adapter);
	vmm_sched_abandon_locked(adapter);
	vmm_paging_unlock(adapter);
}

vmm_status vmm_sched_remove(struct vmm_adapter *adapter, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	atomic_store(&adapter->closed, true);
	vmm_world_next_epoch(adapter->world);
	vmm_world_changed(adapter->world);
	vmm_status status = vmm_port_notify_removal(adapter->port, type);

	if (!vmm_ok(status))
		atomic_store(&adapter->world->abandoned, true); /* as after a fatal violation */
	/*
	 * Threads that wait for the GPU with the paging lock held return; then this thread can take
	 * it.
	 */
	atomic_store(&adapter->removed, true);
	vmm_progress_signal(adapter);
	vmm_paging_lock(adapter);
	abandon_locked(adapter);
	vmm_paging_unlock(adapter);
	vmm_worker_wake(adapter->sched);
	return status;
}
