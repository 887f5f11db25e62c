/* SPDX-License-Identifier: MIT */
/*
 * The eviction victim inside one class, in the order of the adapter's policy (policy/order.h). The
 * lists are in the order of use, least recent first; for the clock algorithm in that of arrival.
 *
 * A policy that knows a distance to the next use takes the candidate with the greatest one
 * (farthest.c).
 *
 * With a policy of the embedder whose values fall only with a use, a queue holds the order. Before
 * a candidate is the victim its value is asked for again, of at most VMM_PICK_MAX candidates in a
 * search, each once. If it has grown, the candidate has a later turn. So the search ends whatever
 * the policy answers.
 *
 * A policy that compares distances scatters its victims over the segment, and one of the embedder
 * may. Where a request must be contiguous, content is moved together once enough bytes are free
 * (victim.c, Q-304).
 */
#include "memory/residency/pick.h"

bool vmm_pick_allows(struct vmm_pick *pick, struct vmm_instance *i)
{
	const uint64_t rest = pick->search->memory->split_rest;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	if (pick->owner.process &&
	    (i->allocation->owner == pick->owner.process) == pick->owner.others)
		return false;
	if (!vmm_search_allows(pick->search, i, pick->spare))
		return false;
	if (vmm_likely(!rest || i->split_rest != rest))
		return true;
	if (!pick->needed || i->needed_at > pick->needed->needed_at)
		pick->needed = i;
	return false;
}

static struct vmm_instance *pick_least_recent(struct vmm_pick *pick)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	vmm_list_for_each (link, pick->list)
		if (vmm_pick_allows(pick, vmm_pick_instance(link)))
			return vmm_pick_instance(link);
	return pick->needed;
}

static struct vmm_instance *pick_most_recent(struct vmm_pick *pick)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (struct vmm_list *link = pick->list->prev; link != pick->list; link = link->prev)
		if (vmm_pick_allows(pick, vmm_pick_instance(link)))
			return vmm_pick_instance(link);
	return pick->needed;
}

/*
 * The clock algorithm (second chance). The list is in the order of arrival. An instance that was
 * used since its arrival arrives anew instead of being evicted. That happens once in a search, so
 * the search ends.
 */
static struct vmm_instance *pick_by_clock(struct vmm_pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = pick->search->memory;
	struct vmm_list *link, *next;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (link = pick->list->next; link != pick->list; link = next) {
		struct vmm_instance *i = vmm_pick_instance(link);

		next = link->next;
		if (!vmm_pick_allows(pick, i))
			continue;
		if (i->last_use <= i->uses.arrival)
			return i;
		i->uses.arrival = ++memory->use_counter;
		vmm_list_remove(link);
		vmm_list_push_back(pick->list, link);
		/* If it was the last one, it is still, and its turn comes again. */
		next = next == pick->list ? link : next;
	}
	return pick->needed;
}

static struct vmm_instance *pick_least_value(struct vmm_pick *pick)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = pick->search->memory;
	uint64_t number = ++memory->picks;
	uint32_t asked = 0;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (struct vmm_policy_node *node = vmm_policy_first(pick->queue), *next; node;
	     node = next) {
		struct vmm_valued *valued = vmm_container_of(node, struct vmm_valued, node);

		next = vmm_policy_next(node);
		if (!vmm_pick_allows(pick, valued->instance))
			continue;
		if (valued->asked == number || asked == VMM_PICK_MAX)
			return valued->instance;
		valued->asked = number;
		asked++;
		if (!vmm_valued_spare(memory, valued->instance))
			return valued->instance;
		/* If it is still the first, its turn comes again. */
		if (!next || vmm_policy_before(node, next))
			next = node;
	}
	return pick->needed;
}

struct vmm_instance *vmm_pick_in_class(struct vmm_search *search, uint32_t class_index,
				       struct vmm_pick_owner owner, bool spare)
{
	struct vmm_pick pick = {.search = search,
				.list = &search->segment->lru[class_index],
				.queue = &search->segment->queue[class_index],
				.kept = &search->segment->farthest[class_index],
				.owner = owner,
				.spare = spare};

	vmm_assert_held(&search->memory->adapter->paging_lock);
	switch (search->memory->order->walk) {
	case VMM_POLICY_LEAST_RECENT:
		return pick_least_recent(&pick);
	case VMM_POLICY_MOST_RECENT:
		return pick_most_recent(&pick);
	case VMM_POLICY_SECOND_CHANCE:
		return pick_by_clock(&pick);
	case VMM_POLICY_FARTHEST:
		return vmm_pick_farthest(&pick);
	case VMM_POLICY_LEAST_VALUE:
		return pick_least_value(&pick);
	}
	return NULL;
}
