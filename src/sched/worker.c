/* SPDX-License-Identifier: MIT */
/*
 * The adapter's worker thread (PASSIVE): prepares packets whose preparation must wait, and closes in the miniport
 * what clients destroyed once the GPU is done with it. It sleeps on sched->work.
 */
#include "sched/sched_private.h"

void vmm_worker_wake(struct vmm_sched *sched)
{
	atomic_fetch_add(&sched->work, 1);
	vmm_os_wake(sched->adapter->os, &sched->work, 1);
}

void vmm_worker_reap(struct vmm_adapter *adapter)
{
	bool held = vmm_os_mutex_held(&adapter->submit_lock);

	if (!atomic_load(&adapter->zombies) || atomic_load(&adapter->removed))
		return;
	/*
	 * As in a deallocation: a device or an adapter that ends takes it too and can then be sure that nobody is still
	 * closing something of it.
	 */
	if (!held)
		vmm_os_mutex_lock(&adapter->submit_lock);
	if (vmm_likely(!atomic_load(&adapter->sched->halted)))
		vmm_memory_reap(adapter);
	if (!held)
		vmm_os_mutex_unlock(&adapter->submit_lock);
}

void vmm_worker_main(void *argument)
{
	struct vmm_adapter *adapter = argument;
	struct vmm_sched *sched = adapter->sched;

	for (;;) {
		uint32_t seen = atomic_load(&sched->work);

		if (atomic_load(&sched->quit))
			return;
		if (vmm_unlikely(atomic_load(&adapter->removed))) /* LOCK-33 */
			vmm_adapter_disturb(adapter);
		if (atomic_load(&sched->chores)) {
			vmm_paging_lock(adapter);
			vmm_queue_drain_locked(sched);
			vmm_paging_unlock(adapter);
		}
		(void)vmm_steps_advance(sched);
		vmm_prepare_pump_waiting(adapter);
		vmm_prepare_paging_work(adapter);
		vmm_address_work(adapter);
		vmm_display_work(adapter);
		vmm_periodic_work(adapter);
		vmm_worker_reap(adapter);
		vmm_hw_work(adapter); /* last: who wanted their memory has had his turn */
		/* An idle worker is not a deadlock; nothing waits for it unless somebody also waits for the GPU. */
		(void)!vmm_os_wait(adapter->os, &sched->work, seen, VMM_OS_FOREVER,
				   "work (idle worker)", 0);
	}
}
