/* SPDX-License-Identifier: MIT */
/*
 * Tier 9, calls: what the files of offers and statistics share. creation.h is for the files that
 * create, open and destroy allocations.
 */
#ifndef VMM_MEMORY_CALLS_H
#define VMM_MEMORY_CALLS_H

#include "memory/state/types.h"

/* ---- offer.c, reclaim.c ---- */
/*
 * The entries of one call. Each is an allocation or a resource, which stands for all its
 * allocations.
 */
struct vmm_offer_walk {
	struct vmm_device *device;
	const struct vmm_handle_set *set;
	const char *rule;     /* that a bad entry breaks */
	bool no_presentation; /* a primary must be named by its allocation handle (OFR-11) */
};
typedef NTSTATUS vmm_offer_fn(struct vmm_device *device, struct vmm_ref *ref, void *context);
/* Checks that exactly one of the two arrays is given. (OFR-02) */
NTSTATUS vmm_offer_check_set(struct vmm_device *device, const struct vmm_handle_set *set);
/*
 * Calls fn for each allocation of entry `index`, up to the first failure. The caller holds the
 * process lock, too.
 */
NTSTATUS vmm_offer_each(const struct vmm_offer_walk *walk, uint32_t index, vmm_offer_fn *fn,
			void *context) VMM_REQUIRES(vmm_process_lock_class);
/*
 * Frees the system memory of one allocation that is offered with AllowDecommit and in no segment,
 * the one of the lowest class. Returns false if there is none. (OFR-14)
 */
bool vmm_offer_decommit(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class);

/* ---- bundle.c ---- */
/*
 * Returns the share of the bundle's resource, or NULL after it has ended. The caller holds the
 * world's shared lock.
 */
struct vmm_share *vmm_bundle_share_locked(const struct vmm_bundle *bundle)
	VMM_REQUIRES(vmm_shared_lock_class);

/* ---- statistics.c ---- */
void vmm_peak_readers_finish(struct vmm_memory *memory);

#endif
