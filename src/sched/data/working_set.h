/* SPDX-License-Identifier: MIT */
/*
 * What a packet needs resident: the allocations that its allocation list references, or those on
 * the residency list of its device. One table for each memory model (memory/model.h), chosen when
 * the scheduler starts.
 */
#ifndef VMM_SCHED_WORKING_SET_H
#define VMM_SCHED_WORKING_SET_H

#include "memory/memory.h"

struct vmm_dma;
struct vmm_sched;
struct vmm_submission;

struct vmm_working_set {
	/*
	 * The allocation list references it, entry by entry: a portion of the buffer may need less
	 * than the whole (SPL), and entries may offer what they reference (OFR-10).
	 */
	bool referenced;
	const char *too_large; /* why a device is in error: it cannot be made resident together */
	/* Checks one reference of a submission, when its list is captured. Paging lock. */
	NTSTATUS(*check)
	(const struct vmm_submission *s, uint32_t index, const struct vmm_ref *ref);
	/*
	 * Maps the buffer and makes all that the portion uses resident, without shortening the
	 * portion (SPL-01). Paging lock.
	 */
	vmm_status (*gather)(struct vmm_sched *sched, struct vmm_dma *dma);
	/*
	 * Marks what the packet uses besides its references, until it completes. Returns the paging
	 * packet that must complete before it, at least `needed`. Paging lock. NULL: nothing else.
	 */
	uint64_t (*mark)(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t needed);
};

#endif
