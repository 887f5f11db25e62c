/* SPDX-License-Identifier: MIT */
/*
 * Validity of contexts, the order of priorities, and the wake-ups of the threads of an adapter.
 * A tier of sched (README.md): its files, and those of higher tiers, include this header.
 */
#ifndef VMM_SCHED_STATE_H
#define VMM_SCHED_STATE_H

#include "sched/state/types.h"

/* ---- validity (valid.c): asserted where a function is given a context; constant time ---- */
/*
 * The context's node and adapter of the link exist, its priorities are in range (SCH-01 to SCH-03),
 * and its sizes agree with by_address and no_patching. Reads constant and atomic members.
 */
bool vmm_context_is_valid(const struct vmm_context *context);
/* Also: at most all buffers are taken, and fewer if one is free. */
bool vmm_context_is_consistent_locked(const struct vmm_context *context)
	VMM_REQUIRES(vmm_state_lock_class);

/* ---- wake.c; any lock held ---- */
void vmm_worker_wake(struct vmm_sched *sched);
void vmm_watch_wake(struct vmm_sched *sched) VMM_COLD;
/* The first packet of the node has changed: restarts its timeout. State lock. */
static inline void vmm_watch_restart_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	node->since_ns = vmm_os_now_ns(sched->adapter->os);
	node->queried_ns = 0;
	node->expired = false;
}
/*
 * Changes ready_count or prepare_count. The state lock, which the caller holds, makes the thread
 * the only writer, so no locked instruction is needed. Threads read the counts without the lock
 * (docs/locking.md, hand-over).
 */
#define VMM_COUNT_PACKETS_LOCKED(count, change)                                                \
	atomic_store_explicit(&(count),                                                        \
			      atomic_load_explicit(&(count), memory_order_relaxed) + (change), \
			      memory_order_release)

/*
 * Work is about to be submitted: wakes the watchdog if the GPU was idle. The caller holds no lock
 * but the paging lock.
 */
static inline void vmm_watch_submitted(struct vmm_sched *sched)
{
	if (vmm_unlikely(atomic_load(&sched->watch_asleep)))
		vmm_watch_wake(sched);
}

/* ---- level.c ---- */
uint32_t vmm_priority_level(const struct vmm_context *context) VMM_REQUIRES(vmm_state_lock_class);
/* Returns true if a context of this level may wait without limit while others have work. */
bool vmm_level_may_starve(uint32_t level);
/* Returns true if a context of this level yields to no other, however long the other waits. */
bool vmm_level_never_yields(uint32_t level);

#endif
