/* SPDX-License-Identifier: MIT */
/*
 * The adapter's worker thread (PASSIVE_LEVEL). It prepares packets that must wait for the GPU. It
 * also closes in the miniport the objects that clients destroyed, once the GPU has finished with
 * them. It sleeps on the futex sched->work.
 */
#include "sched/adapter/adapter.h"

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
		vmm_reap(adapter);
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
