/* SPDX-License-Identifier: MIT */
/*
 * The adapter's worker thread (PASSIVE_LEVEL). It prepares packets that must wait for the GPU. It
 * also closes in the miniport the objects that clients destroyed, once the GPU has finished with
 * them. It sleeps on the futex sched->work.
 */
#include "sched/sched_private.h"

void vmm_worker_wake(struct vmm_sched *sched)
{
	atomic_fetch_add(&sched->work, 1);
	vmm_os_wake(sched->adapter->os, &sched->work, 1);
}

static bool has_zombies(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->zombies) && !atomic_load(&adapter->removed);
}

void vmm_worker_reap_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->submit_lock);
	if (has_zombies(adapter) && vmm_likely(!atomic_load(&adapter->sched->halted)))
		vmm_memory_reap(adapter);
}

void vmm_worker_reap(struct vmm_adapter *adapter)
{
	if (vmm_likely(!has_zombies(adapter)))
		return;
	/*
	 * The submit lock is taken as in a deallocation. The end of a device or an adapter takes it
	 * too and then knows that no thread is still closing objects of it.
	 */
	vmm_submit_lock(adapter);
	vmm_worker_reap_locked(adapter);
	vmm_submit_unlock(adapter);
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
		if (vmm_unlikely(atomic_exchange(&sched->handed_over, false)))
			vmm_sched_kick(adapter);
		if (atomic_load(&sched->chores)) {
			vmm_paging_lock(adapter);
			vmm_queue_drain_locked(sched);
			vmm_paging_commit(adapter);
		}
		(void)vmm_steps_advance(sched);
		vmm_prepare_pump_waiting(adapter);
		vmm_prepare_paging_work(adapter);
		vmm_address_work(adapter);
		vmm_display_work(adapter);
		vmm_periodic_work(adapter);
		vmm_worker_reap(adapter);
		/* Last: packets that needed the memory of hardware contexts have been prepared. */
		vmm_hw_work(adapter);
		/*
		 * An idle worker is not a deadlock: no thread waits for it unless one also waits
		 * for the GPU.
		 */
		(void)!vmm_os_wait(adapter->os, &sched->work, seen, VMM_OS_FOREVER,
				   "work (idle worker)", 0);
	}
}
