/* SPDX-License-Identifier: MIT */
/*
 * Surprise removal (PNP-08): the device is gone, in whatever state the GPU was. New calls are
 * refused. The miniport is notified, possibly while other threads are still inside it, and is not
 * asked to touch hardware any more. Every thread that waits for the GPU returns, and queued packets
 * count as complete without having run. Destruction by clients still reaches the miniport, so that
 * it can free its software state. A miniport that does not support removal gets no further calls.
 */
#include "sched/sched_private.h"

vmm_status vmm_sched_remove(struct vmm_adapter *adapter, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	atomic_store(&adapter->closed, true);
	vmm_world_next_epoch(adapter->world);
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
	vmm_queue_abandon_locked(adapter);
	vmm_paging_unlock(adapter);
	vmm_worker_wake(adapter->sched);
	return status;
}
