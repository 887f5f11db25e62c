/* SPDX-License-Identifier: MIT */
/*
 * Use of instances by incomplete packets: which packets of a timeline need the memory of an
 * instance (VMM_USE_ACTIVE), reference it (VMM_USE_ANY) or may write it (VMM_USE_WRITE). The
 * timelines are those of object/progress.h.
 */
#ifndef VMM_MEMORY_USE_H
#define VMM_MEMORY_USE_H

#include "memory/allocation.h"

enum vmm_use { VMM_USE_ANY, VMM_USE_WRITE, VMM_USE_ACTIVE };
/*
 * Notes that a prepared packet needs the instance's memory. A packet that was queued behind a wait
 * is prepared after packets with higher numbers. Only the highest is stored; vmm_instance_busy
 * searches for the others.
 */
static inline void vmm_instance_activate(struct vmm_instance *instance, uint32_t timeline,
					 uint64_t sequence)
{
	if (vmm_likely(sequence >
		       atomic_load_explicit(&instance->active[timeline], memory_order_relaxed)))
		atomic_store_explicit(&instance->active[timeline], sequence, memory_order_relaxed);
}
/*
 * Returns whether a use of that kind is incomplete, and sets *timeline and *sequence (either may be
 * NULL) to the first timeline with one and its newest packet. The caller must not hold the state
 * lock.
 */
bool vmm_instance_busy(const struct vmm_instance *instance, enum vmm_use use, uint32_t *timeline,
		       uint64_t *sequence);
/*
 * Returns whether an incomplete packet of a node references the instance. *submitted: the miniport
 * has all of those packets.
 */
bool vmm_instance_is_referenced(const struct vmm_instance *instance, bool *submitted);
/*
 * Returns whether an incomplete packet of the timeline, up to that one, may write the instance.
 * Caller holds the state lock.
 */
bool vmm_instance_unwritten_locked(const struct vmm_instance *instance, uint32_t timeline,
				   uint64_t sequence) VMM_REQUIRES(vmm_state_lock_class);
/* Returns whether the instance has no incomplete use. Takes the state lock only if needed. */
static inline bool vmm_instance_is_idle(const struct vmm_instance *instance)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	const struct vmm_timeline *at = adapter->timeline;
	const _Atomic uint64_t *last = instance->queued;

	for (uint32_t left = vmm_timeline_count(adapter); left; left--, at++, last++)
		if (vmm_unlikely(atomic_load_explicit(last, memory_order_relaxed) >
				 atomic_load_explicit(&at->completed, memory_order_acquire)))
			return !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
	return true;
}

#endif
