/* SPDX-License-Identifier: MIT */
/*
 * Free space in a segment, and the choice of eviction victims.
 *
 * Victims are chosen by eviction class (policy), then from the process with the largest share
 * (SEG-27), then in the order of the adapter's policy (pick.c). A victim is always idle: no packet
 * whose preparation is complete (its addresses are patched) uses it, on any timeline (PAG-02). The
 * caller waits for instances that are not idle.
 */
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "policy/policy.h"
#include "range/range.h"

/*
 * A retired instance that is not locked, not offered and not used by queued work. Only a Discard
 * lock takes it again, so its content is not needed (REN-15).
 */
static bool content_is_obsolete(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return instance->state == VMM_INSTANCE_RETIRED && !vmm_locks(instance) &&
	       !instance->allocation->offer &&
	       !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

/*
 * An instance that the CPU has locked in memory stays there if the lock fixes its placement
 * (LOCK-48). The first query leaves the fast lock of an unlocked instance enabled. The second one
 * disables it, so that the unlock signals waiters.
 */
static bool lock_prevents_eviction(const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return vmm_locks_snapshot(instance) && vmm_lock_fixes_placement(instance);
}

/*
 * An offered victim is discarded, not copied (OFR-09). The offer applies to the newest instance. An
 * older one that a command buffer may still reference keeps its content (REN-20), and so does one
 * that queued work still needs (OFR-01). Such instances can still be evicted. Otherwise the head of
 * the queue could wait for work behind it (SPL-13).
 */
static bool may_discard(const struct vmm_instance *instance)
{
	return instance->allocation->offer && instance->state != VMM_INSTANCE_PREVIOUS &&
	       !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

static vmm_status evict_victim(struct vmm_search *search, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = search->memory;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	/* Under memory pressure the renaming pool releases its memory without a copy (REN-09). */
	if (content_is_obsolete(instance)) {
		vmm_eviction_count(memory, instance, instance->segment, VIDMM_RESIDENCY_PRESSURE);
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
		return VMM_OK;
	}
	/* A clean retained copy needs no transfer and loses nothing. */
	if (!may_discard(instance) || (instance->retained && !instance->gpu_wrote))
		return vmm_residency_evict_for(memory, instance, VIDMM_RESIDENCY_PRESSURE,
					       search->preparation);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	instance->discarded = true;
	memory->statistics.bytes_discarded += instance->allocation->size_bytes;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DISCARD, instance->allocation->owner,
		  instance->handle, 0, instance->allocation->size_bytes, 0, 0, 0);
	return VMM_OK;
}

static void victim_event(const struct vmm_search *search, uint32_t process, uint32_t victim,
			 enum vmm_paging_cause cause, uint32_t residents)
{
	const struct vmm_instance *wanted = search->wanted;

	vmm_event(search->memory->adapter->observe, VIDMM_EVENT_VICTIM, process, victim,
		  cause == VMM_CAUSE_CAPACITY ? VIDMM_VICTIM_CAPACITY : VIDMM_VICTIM_FRAGMENTATION,
		  wanted ? wanted->handle : 0, wanted ? wanted->allocation->owner : 0,
		  search->request.size_bytes, residents);
}

/*
 * Evicts with the cause noted: fragmentation if the free bytes of the segment suffice for the
 * request. The eviction path may search an aperture for space, so the cause is restored.
 */
static vmm_status evict_for_space(struct vmm_search *search, struct vmm_instance *victim)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = search->memory;
	enum vmm_paging_cause before = memory->pressure;
	enum vmm_paging_cause cause =
		vmm_range_free_bytes(search->segment->heap) >= search->request.size_bytes
			? VMM_CAUSE_FRAGMENTATION
			: VMM_CAUSE_CAPACITY;
	uint32_t process = victim->allocation->owner;
	uint32_t handle = victim->handle;
	uint32_t residents = vmm_memory_segment(memory, victim->segment)->residents;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	memory->pressure = cause;
	vmm_status status = evict_victim(search, victim);
	memory->pressure = before;
	if (status == VMM_OK)
		victim_event(search, process, handle, cause, residents);
	return status;
}

bool vmm_arrival_is_kept(const struct vmm_memory *memory, const struct vmm_instance *instance,
			 uint64_t preparation)
{
	const struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->arrivals) {
		const struct vmm_arrival *arrival =
			vmm_container_of(link, struct vmm_arrival, link);

		if (arrival->instance != instance)
			continue;
		if (arrival->kept_from_all || (preparation == VMM_LOCK_PREPARATION &&
					       instance->place == VMM_PLACEMENT_MEMORY))
			return true;
	}
	return false;
}

/* Offered, but queued work still uses it (OFR-01). */
static bool offered_but_queued(const struct vmm_instance *instance)
{
	return instance->allocation->offer && vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

/*
 * Returns true if the instance can be evicted now. Temporary obstacles are recorded in the search.
 */
static bool may_evict(struct vmm_search *search, const struct vmm_instance *i, bool spare)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_policy_need need = {.size_bytes = search->request.size_bytes,
					     .now = search->memory->use_counter,
					     .locked_allowed = search->locked_allowed};
	bool active = !vmm_instance_unused(i) ||
		      vmm_arrival_is_kept(search->memory, i, search->preparation);

	vmm_assert_held(&search->memory->adapter->paging_lock);
	/* Instances on a residency list are spared if any other victim exists (RES-08). */
	bool spared = spare &&
		      (offered_but_queued(i) || (i->allocation->listed && !i->allocation->offer));
	bool fragile = vmm_eviction_loses_content(search->memory, i) && !content_is_obsolete(i) &&
		       !may_discard(i);
	bool displayed = vmm_allocation_is_displayed(i->allocation);
	bool fixed = lock_prevents_eviction(i);
	const struct vmm_policy_victim victim = {
		.size_bytes = i->allocation->size_bytes,
		.idle_since = i->last_use,
		.priority = i->allocation->priority,
		.busy = active || spared,
		.pinned = (fragile && !search->loss_allowed) || displayed || fixed,
		.locked = vmm_locks_snapshot(i) != 0,
		.required = i->required_by == search->preparation,
	};

	if (vmm_policy_take(&victim, &need))
		return true;
	search->blocked |= active && !victim.required;
	search->spared |= spared;
	search->fragile |= fragile;
	search->unlock_helps |= fixed && !displayed && !victim.required &&
				vmm_unlock_is_awaitable(search->memory, i);
	return false;
}

/* Instances outside the requested window do not block it. */
static bool is_in_window(const struct vmm_search *search, const struct vmm_instance *i)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = vmm_footprint_bytes(search->segment, i->allocation);
	struct vmm_extent extent;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (!(search->request.low | search->request.high))
		return true;
	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
		extent = vmm_extent_at(i, at, size);
		if (extent.offset + extent.size_bytes > search->request.low &&
		    (!search->request.high || extent.offset < search->request.high))
			return true;
	}
	return false;
}

bool vmm_search_allows(struct vmm_search *search, const struct vmm_instance *instance, bool spare)
{
	vmm_assert_held(&search->memory->adapter->paging_lock);
	return is_in_window(search, instance) && may_evict(search, instance, spare);
}

static struct vmm_instance *pick_by_class(struct vmm_search *search, bool spare)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t largest = vmm_fair_largest(search->segment); /* SEG-27 */
	struct vmm_instance *victim = NULL;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT && !victim; c++) {
		if (vmm_unlikely(largest != 0))
			victim = vmm_pick_in_class(search, c,
						   (struct vmm_pick_owner){largest, false}, spare);
		if (!victim)
			victim = vmm_pick_in_class(search, c,
						   (struct vmm_pick_owner){largest, true}, spare);
	}
	return victim;
}

/* Returns a victim that keeps its content. Instances that queued work still needs come last. */
static struct vmm_instance *pick_without_loss(struct vmm_search *search)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&search->memory->adapter->paging_lock);
	vmm_offers_apply_due(search->memory);
	search->spared = false;
	struct vmm_instance *victim = pick_by_class(search, true);

	return !victim && search->spared ? pick_by_class(search, false) : victim;
}

/*
 * Only if no wait would help: instances that the CPU has locked, then those that would lose their
 * content.
 */
static struct vmm_instance *pick_last_resort(struct vmm_search *search)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *victim = NULL;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (!search->blocked && !search->locked_allowed) {
		search->locked_allowed = true;
		victim = pick_by_class(search, false);
	}
	if (!victim && !search->blocked && search->fragile && !search->loss_allowed) {
		search->loss_allowed = true;
		victim = pick_by_class(search, false);
	}
	return victim;
}

static struct vmm_instance *pick_any_victim(struct vmm_search *search)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *victim = pick_without_loss(search);

	vmm_assert_held(&search->memory->adapter->paging_lock);
	return victim ? victim : pick_last_resort(search);
}

void vmm_memory_set_split_rest(struct vmm_adapter *adapter, uint64_t rest)
{
	vmm_assert_held(&adapter->paging_lock);
	adapter->memory->split_rest = rest;
}

/*
 * If the limit of all apertures together is reached, a mapping in any aperture is a victim
 * (SEG-05).
 */
static struct vmm_instance *pick_mapped_victim(struct vmm_search *search)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_search any = *search;
	struct vmm_instance *victim = NULL;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	any.request.low = any.request.high = 0;
	victim = pick_any_victim(&any);
	for (uint32_t s = 0; s < search->memory->segment_count && !victim; s++) {
		any.segment = &search->memory->segment[s];
		if (any.segment->aperture && any.segment != search->segment)
			victim = pick_any_victim(&any);
	}
	search->blocked |= any.blocked;
	return victim;
}

/*
 * Where the free bytes suffice for a request that must be contiguous, moves content together
 * instead of evicting some. Returns VMM_NO_VIDEO_MEMORY if that is not possible.
 */
static vmm_status compact_before_eviction(struct vmm_search *search)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	if (search->immovable || search->unit_bytes || search->segment->aperture ||
	    search->segment->residents > VMM_COMPACTED_MAX)
		return VMM_NO_VIDEO_MEMORY;
	if (vmm_range_free_bytes(search->segment->heap) < search->request.size_bytes)
		return VMM_NO_VIDEO_MEMORY;
	status = vmm_compact(search->memory, search->segment, &search->request, search->preparation,
			     false);
	search->immovable = status == VMM_NO_VIDEO_MEMORY;
	return status;
}

/*
 * Returns VMM_OK with a victim, or VMM_OK with *victim NULL if the request may fit now: page tables
 * were evicted (VA-22), or free space was compacted.
 * Free space is compacted only before content would be lost (PAG-20): a segment from which all idle
 * content was evicted packs better than a compacted one.
 */
static vmm_status pick_victim(struct vmm_search *search, struct vmm_instance **victim)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&search->memory->adapter->paging_lock);
	vmm_lru_order(search->memory);
	*victim = NULL;
	if (vmm_unlikely(vmm_segment_is_over_limit(search->memory, search->segment,
						   search->request.size_bytes))) {
		*victim = pick_mapped_victim(search);
		return *victim ? VMM_OK : status;
	}
	if (vmm_unlikely(search->memory->adapter->eviction.scatters)) {
		status = compact_before_eviction(search);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
	}
	*victim = pick_without_loss(search);
	if (!*victim && vmm_unlikely(search->segment->movable_bytes) && vmm_tables_evict(search))
		return VMM_OK;
	if (!*victim && !search->blocked && search->fragile && !search->compacted) {
		search->compacted = true;
		status = vmm_compact(search->memory, search->segment, &search->request,
				     search->preparation, true);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
	}
	if (!*victim)
		*victim = pick_last_resort(search);
	return *victim ? VMM_OK : status;
}

/* One range if there is one; else extents, where the request allows them. */
static vmm_status allocate(const struct vmm_search *search, struct vmm_free_space *space)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_segment_allocate(search->memory, search->segment, &search->request,
						 &space->node, &space->offset);

	vmm_assert_held(&search->memory->adapter->paging_lock);
	space->extents = NULL;
	if (vmm_likely(status != VMM_NO_VIDEO_MEMORY || !search->unit_bytes))
		return status;
	status = vmm_segment_allocate_extents(search->segment, &search->request, search->unit_bytes,
					      &space->extents);
	if (!vmm_ok(status))
		return status;
	space->node = space->extents->extent[0].node;
	space->offset = space->extents->extent[0].offset;
	return VMM_OK;
}

vmm_status vmm_free_space_find(struct vmm_search *search, struct vmm_free_space *space)
{
	vmm_assert_held(&search->memory->adapter->paging_lock);
	for (;;) {
		vmm_status status = allocate(search, space);
		struct vmm_instance *victim;

		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		status = pick_victim(search, &victim);
		if (status == VMM_OK && !victim)
			continue;
		if (victim)
			status = evict_for_space(search, victim);
		/* A locked victim cannot move without losing CPU writes. */
		if (victim && status == VMM_NOT_SUPPORTED) {
			search->unlock_helps |= vmm_locks(victim) &&
						vmm_unlock_is_awaitable(search->memory, victim);
			return VMM_NO_VIDEO_MEMORY;
		}
		if (status == VMM_PENDING) {
			/* The GPU uses the eviction path (PAG-17), or paging a range. */
			search->blocked = true;
			return VMM_NO_VIDEO_MEMORY;
		}
		if (!vmm_ok(status))
			return status;
	}
}

vmm_status vmm_residency_take_space(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *request, uint64_t preparation,
				    struct vmm_free_space *space)
{
	struct vmm_search search = {.memory = memory,
				    .segment = segment,
				    .request = *request,
				    .preparation = preparation};

	vmm_assert_held(&memory->adapter->paging_lock);
	if (request->size_bytes > segment->capacity_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_status status = vmm_free_space_find(&search, space);
	if (status == VMM_OK) {
		status = vmm_client_object_clear(memory, segment, space->offset,
						 request->size_bytes);
		if (status != VMM_OK)
			vmm_segment_free(memory, segment, space->node);
	}
	if (status != VMM_NO_VIDEO_MEMORY)
		return status;
	vmm_unlock_note_search(memory, search.unlock_helps);
	return search.blocked ? VMM_PENDING : status;
}

vmm_status vmm_residency_make_space(struct vmm_memory *memory, struct vmm_segment *segment,
				    const struct vmm_range_request *request)
{
	struct vmm_free_space space;
	vmm_status status =
		vmm_residency_take_space(memory, segment, request, VMM_NO_PREPARATION, &space);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status == VMM_OK)
		vmm_segment_free(memory, segment, space.node);
	return status;
}
