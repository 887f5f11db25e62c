/* SPDX-License-Identifier: MIT */
/* The search for a victim in one class: what the orders of pick.c and farthest.c share. */
#ifndef VMM_MEMORY_RESIDENCY_PICK_H
#define VMM_MEMORY_RESIDENCY_PICK_H

#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "policy/order.h"

/* Maximum number of candidates that a search compares, or asks for values. */
#define VMM_PICK_MAX 1024u

struct vmm_pick {
	struct vmm_search *search;
	struct vmm_list *list;
	const struct vmm_policy_queue *queue; /* of VMM_POLICY_LEAST_VALUE */
	struct vmm_farthest *kept;            /* of VMM_POLICY_FARTHEST */
	struct vmm_pick_owner owner;
	bool spare;
	/* What the rest of a split buffer needs last, of the candidates so far. */
	struct vmm_instance *needed;
};

static inline struct vmm_instance *vmm_pick_instance(const struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_instance, lru);
}

/*
 * Returns whether the instance can be the victim. What the rest of a split buffer needs comes after
 * all others, the part needed last first, so it is only remembered.
 */
bool vmm_pick_allows(struct vmm_pick *pick, struct vmm_instance *i)
	VMM_REQUIRES(vmm_paging_lock_class);

/* ---- farthest.c ---- */
struct vmm_instance *vmm_pick_farthest(struct vmm_pick *pick) VMM_REQUIRES(vmm_paging_lock_class);

#endif
