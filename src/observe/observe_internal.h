/* SPDX-License-Identifier: MIT */
/* Shared by the files of observe: the instance, and the spin lock of its critical sections. */
#ifndef VMM_OBSERVE_INTERNAL_H
#define VMM_OBSERVE_INTERNAL_H

#include <stdatomic.h>

#include "observe/observe.h"

#define SHARDS_MAX   VMM_OBSERVE_SETS
#define SHARD_SHARED 0u /* the shard that all late threads write, with atomic additions */

struct subscriber {
	_Atomic uint64_t mask;  /* 0: free, or being removed */
	_Atomic uint32_t calls; /* calls running now; with threads only */
	uint32_t generation;    /* guarded by subscribing */
	/* constant while mask is not 0 */
	vmm_observe_fn *fn;
	void *context;
};

struct vmm_observe {
	struct vmm_observe_front front;   /* constant after creation, except `wanted` */
	struct vmm_observe_config config; /* constant after creation */
	void *set_memory;

	/* guarded by stamping, with threads */
	uint64_t sequence, hash;
	_Atomic uint32_t stamping;

	/* guarded by subscribing, with threads */
	_Atomic uint32_t subscribing;
	uint64_t subscribers_used;
	struct subscriber subscribers[VMM_OBSERVE_SUBSCRIBERS_MAX];
};

/*
 * Spin locks. The sections are a few instructions long, so spinning is right unless the holder does
 * not run at all; hence the yield of the config.
 */
void vmm_observe_spin_lock(struct vmm_observe *observe, _Atomic uint32_t *lock);
void vmm_observe_spin_unlock(_Atomic uint32_t *lock);
/* Spins until the word is 0. */
void vmm_observe_spin_while(struct vmm_observe *observe, _Atomic uint32_t *word);

#endif
