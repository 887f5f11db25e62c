/* SPDX-License-Identifier: MIT */
/*
 * Surprise removal (PNP-08): the device is gone, whatever was going on. Doors are closed; the miniport is told, while others may
 * still be inside it, and is not asked to do anything with hardware any more; everybody who waits for the GPU comes back, and
 * what was queued counts as complete without having run. What clients then end still reaches the miniport, for its software's sake,
 * unless it cannot cope with removals: then it hears of nothing any more.
 */
#include "sched/sched_private.h"

vmm_status vmm_sched_remove(struct vmm_adapter *adapter, DXGK_SURPRISE_REMOVAL_TYPE type)
{
	atomic_store(&adapter->closed, true);
	vmm_world_next_epoch(adapter->world);
	vmm_status status = vmm_port_notify_removal(adapter->port, type);

	if (!vmm_ok(status))
		atomic_store(&adapter->world->abandoned, true); /* as after a fatal violation */
	/* Who waits for the GPU with the paging lock held comes out; then it is ours. */
	atomic_store(&adapter->removed, true);
	vmm_progress_signal(adapter);
	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_queue_abandon_locked(adapter);
	vmm_os_mutex_unlock(&adapter->paging_lock);
	vmm_worker_wake(adapter->sched);
	return status;
}
