/* SPDX-License-Identifier: MIT */
/*
 * Failure points: the places at which the library asks the system for something that the system may
 * refuse. A test can refuse it there, by count or by seed, on the calling thread. Every allocation,
 * mapping, descriptor and thread creation of the core passes one.
 */
#ifndef VMM_BASE_FAILURE_H
#define VMM_BASE_FAILURE_H

#include "base/base.h"

/* The numbers are those of enum vidmm_failure. */
enum vmm_failure {
	VMM_FAIL_ALLOCATION, /* of heap memory; also an object that a pool of ours hands out */
	VMM_FAIL_MAPPING,    /* of addresses, and of memory objects into them */
	VMM_FAIL_UNMAPPING,  /* the kernel may need memory to remove a mapping */
	VMM_FAIL_DESCRIPTOR,
	VMM_FAIL_THREAD,
	VMM_FAILURES
};

/* Of this thread. A point costs one load and a branch that is not taken, unless a test armed it. */
struct vmm_failures {
	uint32_t armed; /* bit n: kind n */
	uint32_t countdown[VMM_FAILURES];
	uint32_t one_in; /* by seed, for the kinds without a countdown */
	uint64_t random;
};
extern _Thread_local struct vmm_failures vmm_failures __attribute__((tls_model("initial-exec")));

bool vmm_fails_armed(enum vmm_failure kind) VMM_COLD;

/*
 * The point: returns true if what it stands for must be refused. Sets errno as the system would.
 */
static inline bool vmm_fails(enum vmm_failure kind)
{
	return vmm_unlikely(vmm_failures.armed & 1u << kind) && vmm_fails_armed(kind);
}

/*
 * The n-th next point of the kind on this thread fails once; 0: none does. Returns what is left of
 * the last countdown: 0 if its point failed.
 */
uint32_t vmm_fail_after(enum vmm_failure kind, uint32_t n);
/*
 * Each point of the kinds (bit n: kind n) fails once in ONE_IN times on average, drawn from the
 * seed. kinds or one_in 0: none does. Ends all countdowns.
 */
void vmm_fail_by_seed(uint32_t kinds, uint64_t seed, uint32_t one_in);

#endif
