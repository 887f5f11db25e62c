/* SPDX-License-Identifier: MIT */
/*
 * The eviction victim inside one class, in the order of the adapter's policy (policy/order.h). The
 * lists are in the order of use, least recent first; for the clock algorithm in that of arrival.
 *
 * A policy that knows a distance to the next use takes the candidate with the greatest one. The
 * distances change with time and no order of them is kept, so the search compares candidates. It
 * ends early at one with no next use, and after SCAN_MAX candidates: half of them the least, half
 * the most recently used ones. The first half has what is not used any more and what is used least
 * often. In a loop that does not fit, the second half has what is needed last.
 *
 * With a policy of the embedder whose values fall only with a use, a queue holds the order. Before
 * a candidate is the victim its value is asked for again, of at most SCAN_MAX candidates in a
 * search, each once. If it has grown, the candidate has a later turn. So the search ends whatever
 * the policy answers.
 *
 * A policy that compares distances scatters its victims over the segment, and one of the embedder
 * may. Where a request must be contiguous, content is moved together once enough bytes are free
 * (victim.c, Q-304).
 */
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "policy/order.h"

#define SCAN_MAX 1024u

/* The search for a victim in one class. */
struct pick {
	struct vmm_search *search;
	struct vmm_list *list;
	const struct vmm_policy_queue *queue; /* of VMM_POLICY_LEAST_VALUE */
	struct vmm_pick_owner owner;
	bool spare;
	/* What the rest of a split buffer needs last, of the candidates so far. */
	struct vmm_instance *needed;
	struct vmm_instance *farthest; /* the victim so far, and its distance */
	uint64_t distance;
};

static struct vmm_instance *instance_of(const struct vmm_list *link)
{
	return vmm_container_of(link, struct vmm_instance, lru);
}

/*
 * Returns whether the instance can be the victim. What the rest of a split buffer needs comes after
 * all others, the part needed last first, so it is only remembered.
 */
static bool is_eligible(struct pick *pick, struct vmm_instance *i)
	VMM_REQUIRES(vmm_paging_lock_class)
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

static struct vmm_instance *pick_least_recent(struct pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	vmm_list_for_each (link, pick->list)
		if (is_eligible(pick, instance_of(link)))
			return instance_of(link);
	return pick->needed;
}

static struct vmm_instance *pick_most_recent(struct pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (struct vmm_list *link = pick->list->prev; link != pick->list; link = link->prev)
		if (is_eligible(pick, instance_of(link)))
			return instance_of(link);
	return pick->needed;
}

/*
 * The clock algorithm (second chance). The list is in the order of arrival. An instance that was
 * used since its arrival arrives anew instead of being evicted. That happens once in a search, so
 * the search ends.
 */
static struct vmm_instance *pick_by_clock(struct pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = pick->search->memory;
	struct vmm_list *link, *next;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (link = pick->list->next; link != pick->list; link = next) {
		struct vmm_instance *i = instance_of(link);

		next = link->next;
		if (!is_eligible(pick, i))
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

static uint64_t rank_of(struct vmm_memory *memory, struct vmm_instance *i)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter_eviction *eviction = &memory->adapter->eviction;
	uint64_t now = vmm_lru_submission(memory);
	const struct vidmm_eviction_candidate candidate = {
		.process = i->allocation->owner,
		.allocation = i->handle,
		.size_bytes = i->allocation->size_bytes,
		.idle = now - vmm_min_u64(now, i->uses.last),
		.intervals = i->uses.interval,
		.interval_count = i->uses.count,
	};

	vmm_assert_held(&memory->adapter->paging_lock);
	return eviction->rank(eviction->context, &candidate);
}

static uint64_t distance_of(struct vmm_memory *memory, struct vmm_instance *i)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(i->valued != NULL)) /* the least worth is the farthest */
		return ~vmm_valued_ask(memory, i, false);
	return vmm_unlikely(memory->adapter->eviction.rank != NULL)
		       ? rank_of(memory, i)
		       : vmm_policy_distance(&i->uses, vmm_lru_submission(memory));
}

/* Returns true if no other candidate can be farther. */
static bool compare(struct pick *pick, struct vmm_instance *i) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = pick->search->memory;
	uint64_t distance;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	distance = distance_of(memory, i);
	if ((pick->farthest && distance <= pick->distance) || !is_eligible(pick, i))
		return false;
	pick->farthest = i;
	pick->distance = distance;
	return distance == VMM_POLICY_DEAD;
}

static struct vmm_instance *pick_farthest(struct pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *old = pick->list->next, *recent = pick->list->prev;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (uint32_t i = 0; i < SCAN_MAX / 2 && old != pick->list; i++, old = old->next)
		if (compare(pick, instance_of(old)))
			return pick->farthest;
	for (uint32_t i = 0; i < SCAN_MAX / 2 && old != pick->list; i++) {
		struct vmm_instance *instance = instance_of(recent);
		bool last = recent == old;

		recent = recent->prev;
		if (compare(pick, instance))
			return pick->farthest;
		if (last)
			old = pick->list;
	}
	/* None of them may be evicted: the first of the others that may is. */
	for (; old != pick->list && !pick->farthest; old = old == recent ? pick->list : old->next)
		compare(pick, instance_of(old));
	return pick->farthest ? pick->farthest : pick->needed;
}

static struct vmm_instance *pick_least_value(struct pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = pick->search->memory;
	uint64_t number = ++memory->picks;
	uint32_t asked = 0;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (struct vmm_policy_node *node = vmm_policy_first(pick->queue), *next; node;
	     node = next) {
		struct vmm_valued *valued = vmm_container_of(node, struct vmm_valued, node);

		next = vmm_policy_next(node);
		if (!is_eligible(pick, valued->instance))
			continue;
		if (valued->asked == number || asked == SCAN_MAX)
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
	struct pick pick = {.search = search,
			    .list = &search->segment->lru[class_index],
			    .queue = &search->segment->queue[class_index],
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
		return pick_farthest(&pick);
	case VMM_POLICY_LEAST_VALUE:
		return pick_least_value(&pick);
	}
	return NULL;
}
