/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of wait for the GPU: for one packet; for all packets; and with the submit lock held,
 * during which the waiting thread submits what others would leave to the worker. A wait that fails
 * abandons the adapter.
 */
#include "sched/node_queue/node_queue.h"

static void finish_waiting(struct vmm_adapter *adapter, vmm_status status)
{
	if (!vmm_ok(status))
		vmm_sched_abandon(adapter);
}

void vmm_sched_wait(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
		    uint32_t reason)
{
	if (!vmm_timeline_done(adapter, timeline, sequence))
		finish_waiting(adapter,
			       vmm_wait_timeline(adapter, timeline, sequence, reason, NULL));
}

void vmm_sched_wait_idle(struct vmm_adapter *adapter, uint32_t reason)
{
	const uint32_t count = vmm_timeline_count(adapter);

	for (uint32_t t = 0; t < count; t++) {
		uint64_t sequence = atomic_load(&adapter->timeline[t].queued);

		if (!vmm_timeline_quiet(adapter, t, sequence, false))
			finish_waiting(adapter,
				       vmm_wait_timeline_passed(adapter, t, sequence, reason));
	}
}

/*
 * Called on the worker, which therefore submits the packets that other threads would leave to it.
 */
void vmm_sched_feed_locked(struct vmm_adapter *adapter)
{
	const struct vmm_sched *sched = adapter->sched;

	vmm_assert_held(&adapter->submit_lock);
	if (vmm_likely(!atomic_load(&sched->ready_count) && !atomic_load(&sched->chores)))
		return;
	vmm_paging_lock(adapter);
	vmm_queue_drain_locked(adapter->sched);
	vmm_paging_commit(adapter);
}

void vmm_sched_feed_until_idle(struct vmm_adapter *adapter, uint32_t reason)
{
	vmm_assert_held(&adapter->submit_lock);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++) {
		uint64_t sequence = atomic_load(&adapter->timeline[t].queued);

		for (;;) {
			uint32_t seen = atomic_load(&adapter->progress);

			vmm_sched_feed_locked(adapter);
			if (vmm_timeline_quiet(adapter, t, sequence, false))
				break;
			finish_waiting(adapter, vmm_wait_progress(adapter, seen, reason));
		}
	}
}
