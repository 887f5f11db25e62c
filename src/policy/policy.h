/* SPDX-License-Identifier: MIT */
/*
 * policy: pure, replaceable decisions: which allocation may be evicted, in which eviction class an
 * allocation is, how long a renaming list may grow. No state but the arguments, no lock, no I/O.
 */
#ifndef VMM_POLICY_POLICY_H
#define VMM_POLICY_POLICY_H

#include "base/base.h"

/*
 * Eviction classes, taken in this order: offered memory first (OFR-04: low, normal, high; AUTO is
 * ranked by the allocation's priority), then the five priority bands (PRI-01). Inside a class the
 * caller takes the least recently used instance of the process with the largest share (SEG-27).
 */
enum vmm_policy_class {
	VMM_POLICY_OFFERED_LOW = 0,
	VMM_POLICY_OFFERED_NORMAL,
	VMM_POLICY_OFFERED_HIGH,
	VMM_POLICY_PRIORITY_MINIMUM,
	VMM_POLICY_PRIORITY_LOW,
	VMM_POLICY_PRIORITY_NORMAL,
	VMM_POLICY_PRIORITY_HIGH,
	VMM_POLICY_PRIORITY_MAXIMUM,
	VMM_POLICY_CLASS_COUNT
};

/*
 * offer: 0 not offered, else D3DDDI_OFFER_PRIORITY 1 low, 2 normal, 3 high, 4 auto.
 * priority: any value; the five named ones begin their bands (0x28000000 .. 0xC8000000).
 */
enum vmm_policy_class vmm_policy_class(uint32_t offer, uint32_t priority);

struct vmm_policy_victim {
	uint64_t size_bytes;
	uint64_t idle_since; /* use counter at its last reference; smaller is longer ago */
	uint32_t priority;
	bool busy, pinned, locked;
	bool required; /* referenced by the buffer that is being made resident */
};

struct vmm_policy_need {
	uint64_t size_bytes;
	uint64_t now;        /* use counter */
	bool locked_allowed; /* last resort: allocations locked by the CPU may move (PAG-16) */
};

/*
 * Returns whether the candidate may be evicted. The caller passes candidates in order of class and
 * LRU.
 */
bool vmm_policy_take(const struct vmm_policy_victim *victim, const struct vmm_policy_need *need);

/*
 * Returns whether a discard lock may make another instance. instances: number that exist, including
 * the current one. limit: MaximumRenamingListLength (0: none). pressure: segment or system memory
 * is short, so the list must not grow if the lock can wait for an instance.
 */
bool vmm_policy_rename_grow(uint32_t instances, uint32_t limit, uint64_t instance_bytes,
			    bool pressure);

#endif
