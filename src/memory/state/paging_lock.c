/* SPDX-License-Identifier: MIT */
/*
 * The paging lock: how it is taken and the three ways to release it (docs/locking.md). Releasing it
 * runs no work of the tiers above. A call that leaves work behind, such as a CPU unlock with
 * dirty pages, does that work before it releases the lock.
 */
#include "memory/state/types.h"

/*
 * A DDI that runs under the lock during a reset would be refused, as for a removed adapter. So the
 * reset is waited for first. A reset itself waits for the threads inside the miniport, which
 * therefore do not wait for the reset.
 */
VMM_NO_THREAD_SAFETY_ANALYSIS void vmm_paging_lock(struct vmm_adapter *adapter)
{
	if (vmm_unlikely(atomic_load(&adapter->recovering)) &&
	    !vmm_port_blocks_reset(adapter->port))
		vmm_await_recovery(adapter);
	vmm_os_mutex_lock(&adapter->paging_lock);
}

VMM_NO_THREAD_SAFETY_ANALYSIS bool vmm_paging_trylock(struct vmm_adapter *adapter)
{
	return vmm_os_mutex_trylock(&adapter->paging_lock);
}

VMM_NO_THREAD_SAFETY_ANALYSIS void vmm_paging_unlock(struct vmm_adapter *adapter)
{
	/*
	 * Instances already carry the sequence number of pending commands, and a thread may wait
	 * only for queued packets.
	 */
	vmm_assert(!adapter->memory || !adapter->memory->pending || adapter->memory->resetting ||
		   atomic_load(&adapter->removed));
	vmm_os_mutex_unlock(&adapter->paging_lock);
}

void vmm_paging_commit(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	if (vmm_unlikely(adapter->memory->pending))
		vmm_memory_flush_locked(adapter);
	vmm_paging_unlock(adapter);
	adapter->memory->engine->kick(adapter);
}

void vmm_paging_unlock_idle(struct vmm_adapter *adapter)
{
	vmm_paging_unlock(adapter);
	adapter->memory->engine->hand_over(adapter);
}
