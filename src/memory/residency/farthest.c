/* SPDX-License-Identifier: MIT */
/*
 * The eviction victim of a policy that knows a distance to the next use: the candidate with the
 * greatest one.
 *
 * The distances change with time and no order of them is kept, so a search compares candidates. It
 * ends early at those with no next use, and after VMM_PICK_MAX candidates: half of them the least,
 * half the most recently used ones. The first half contains allocations that are used no longer, or
 * rarely. In a loop that does not fit, the second half contains the allocations needed last.
 *
 * Distances that change only with a submission or a use are the same for all searches of one
 * preparation. So a search keeps the farthest candidates that may be evicted, and the next searches
 * take them in that order. A candidate that becomes idle meanwhile is compared again only when none
 * of them is left. The first search of a preparation keeps one candidate: most preparations need
 * few victims.
 */
#include "memory/residency/pick.h"

/* The farthest candidates so far, farthest first; of equal ones the first that was found. */
struct farthest {
	struct vmm_pick *pick;
	uint32_t count, most;
	struct vmm_instance *instance[VMM_FARTHEST_MAX];
	uint64_t distance[VMM_FARTHEST_MAX];
};

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
static bool compare(struct farthest *f, struct vmm_instance *i) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = f->pick->search->memory;
	bool full = f->count == f->most;
	uint32_t at;

	vmm_assert_held(&memory->adapter->paging_lock);
	uint64_t distance = distance_of(memory, i);
	if ((full && distance <= f->distance[f->most - 1]) || !vmm_pick_allows(f->pick, i))
		return false;
	f->count += !full;
	for (at = f->count - 1; at && f->distance[at - 1] < distance; at--) {
		f->distance[at] = f->distance[at - 1];
		f->instance[at] = f->instance[at - 1];
	}
	f->distance[at] = distance;
	f->instance[at] = i;
	return f->count == f->most && f->distance[f->most - 1] == VMM_POLICY_DEAD;
}

static void compare_all(struct farthest *f) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *list = f->pick->list, *old = list->next, *recent = list->prev;

	vmm_assert_held(&f->pick->search->memory->adapter->paging_lock);
	for (uint32_t i = 0; i < VMM_PICK_MAX / 2 && old != list; i++, old = old->next)
		if (compare(f, vmm_pick_instance(old)))
			return;
	for (uint32_t i = 0; i < VMM_PICK_MAX / 2 && old != list; i++) {
		struct vmm_instance *instance = vmm_pick_instance(recent);
		bool last = recent == old;

		recent = recent->prev;
		if (compare(f, instance))
			return;
		if (last)
			old = list;
	}
	/* None of them may be evicted: the first of the others that may is. */
	for (; old != list && !f->count; old = old == recent ? list : old->next)
		compare(f, vmm_pick_instance(old));
}

/* ---- what is kept for the next searches of the preparation ---- */

/* Do both allow the same candidates, at the same distances? */
static bool is_same_search(const struct vmm_farthest_of *a, const struct vmm_farthest_of *b)
{
	return a->submission == b->submission && a->preparation == b->preparation &&
	       a->low == b->low && a->high == b->high && a->process == b->process &&
	       a->others == b->others && a->spare == b->spare &&
	       a->locked_allowed == b->locked_allowed && a->loss_allowed == b->loss_allowed;
}

static struct vmm_instance *recall(struct vmm_pick *pick) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_farthest *kept = pick->kept;

	vmm_assert_held(&pick->search->memory->adapter->paging_lock);
	for (uint32_t k = 0; k < kept->count; k++)
		if (kept->instance[k] && vmm_pick_allows(pick, kept->instance[k]))
			return kept->instance[k];
	return NULL;
}

static void keep(const struct farthest *f, const struct vmm_farthest_of *of)
{
	struct vmm_farthest *kept = f->pick->kept;

	for (uint32_t k = 0; k < kept->count; k++)
		if (kept->instance[k])
			kept->instance[k]->is_kept = false;
	kept->of = *of;
	kept->count = f->count;
	for (uint32_t k = 0; k < f->count; k++) {
		kept->instance[k] = f->instance[k];
		f->instance[k]->is_kept = true;
	}
}

struct vmm_instance *vmm_pick_farthest(struct vmm_pick *pick)
{
	const struct vmm_search *search = pick->search;
	const struct vmm_farthest_of of = {.submission = vmm_lru_submission(search->memory),
					   .preparation = search->preparation,
					   .low = search->request.low,
					   .high = search->request.high,
					   .process = pick->owner.process,
					   .others = pick->owner.others,
					   .spare = pick->spare,
					   .locked_allowed = search->locked_allowed,
					   .loss_allowed = search->loss_allowed};
	/* Many searches share VMM_NO_PREPARATION and VMM_LOCK_PREPARATION. */
	bool keeps = search->memory->order->steady && search->preparation < VMM_LOCK_PREPARATION;
	bool again = keeps && is_same_search(&pick->kept->of, &of);
	struct vmm_instance *victim = again ? recall(pick) : NULL;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (victim)
		return victim;
	struct farthest f; /* the arrays are filled up to f.count */
	f.pick = pick;
	f.count = 0;
	f.most = again ? VMM_FARTHEST_MAX : 1;
	compare_all(&f);
	if (keeps && f.count)
		keep(&f, &of);
	return f.count ? f.instance[0] : pick->needed;
}
