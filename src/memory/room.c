/* SPDX-License-Identifier: MIT */
/*
 * Room in a segment: a place that is free, or who leaves for it and in which order.
 *
 * A victim is always idle (PAG-02): no packet whose preparation is done (its addresses are patched) uses it, on any
 * timeline. What is not idle yet is for the caller to wait for.
 */
#include "memory/memory_private.h"
#include "memory/private.h"

/* A retired instance that nothing names any more: the next lock that takes it does so with Discard (REN-15). */
static bool content_is_dead(const struct vmm_instance *instance)
{
	return instance->state == VMM_INSTANCE_RETIRED && !vmm_locks(instance) &&
	       !instance->allocation->offer &&
	       !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

/* LOCK-48: from 2.0 on what the CPU holds in memory, and could see nowhere else, stays there. */
static bool locked_stays(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	/* Who waits for the unlock must hear of it: hence the second look. */
	return memory->caps->wddm2 && vmm_locks_now(instance) && vmm_locks(instance) &&
	       !vmm_resident_reaches_aperture(instance->allocation);
}

/*
 * An offered victim is not copied anywhere (OFR-09). The offer is one of the newest instance (REN-20): what a command
 * buffer may still name of an older one is kept. So is what queued work still needs (OFR-01); were that not to leave at
 * all, the head of the queue could wait for work behind it (SPL-13).
 */
static bool may_discard(const struct vmm_instance *instance)
{
	return instance->allocation->offer && instance->state != VMM_INSTANCE_PREVIOUS &&
	       !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

static vmm_status push_out(struct vmm_search *search, struct vmm_instance *instance)
{
	struct vmm_memory *memory = search->memory;

	/* REN-09: under pressure the pool gives its memory up, without a copy. */
	if (content_is_dead(instance)) {
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
		memory->figures.evictions++;
		return VMM_OK;
	}
	/* Of one that is kept and clean nothing is copied and nothing lost. */
	if (!may_discard(instance) || (instance->kept && !instance->gpu_wrote))
		return vmm_residency_evict_for(memory, instance, VIDMM_RESIDENCY_PRESSURE,
					       search->preparation);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	instance->discarded = true;
	memory->figures.discarded_bytes += instance->allocation->size_bytes;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DISCARD, instance->allocation->owner,
		  instance->handle, 0, instance->allocation->size_bytes, 0, 0, 0);
	return VMM_OK;
}

/* Offered, and queued work wants it nevertheless (OFR-01). */
static bool still_needed(const struct vmm_instance *instance)
{
	return instance->allocation->offer && vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

/* May it leave? What speaks against it, and may pass, is noted in the search. */
static bool is_victim(struct vmm_search *search, const struct vmm_instance *i, bool spare)
{
	const struct vmm_policy_need need = {.size_bytes = search->request.size_bytes,
					     .now = search->memory->use_counter,
					     .locked_allowed = search->locked_allowed};
	bool active = !vmm_instance_unused(i);
	/* On a residency list: only if nobody else can leave (RES-08). */
	bool spared =
		spare && (still_needed(i) || (i->allocation->listed && !i->allocation->offer));
	bool fragile = vmm_eviction_loses_content(search->memory, i) && !content_is_dead(i) &&
		       !may_discard(i);
	const struct vmm_policy_victim victim = {
		.size_bytes = i->allocation->size_bytes,
		.idle_since = i->last_use,
		.priority = i->allocation->priority,
		.busy = active || spared,
		.pinned = (fragile && !search->loss_allowed) ||
			  vmm_allocation_is_shown(i->allocation) || locked_stays(search->memory, i),
		.locked = vmm_locks_now(i) != 0,
		.wanted = i->wanted == search->preparation,
	};

	if (vmm_policy_take(&victim, &need))
		return true;
	search->blocked |= active && !victim.wanted;
	search->spared |= spared;
	search->fragile |= fragile;
	return false;
}

/*
 * The least recently used of a class that may leave, of that process, or of all others; owner 0: whoever has it. What the rest of a
 * split buffer needs comes after all others, and of that what it needs last.
 */
static struct vmm_instance *look_in(struct vmm_search *search, uint32_t class_index, uint32_t owner,
				    bool others, bool spare)
{
	const uint64_t rest = search->memory->rest;
	struct vmm_instance *needed = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &search->segment->lru[class_index]) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, lru);

		if (owner && (i->allocation->owner == owner) == others)
			continue;
		/* Outside the window it is in nobody's way. */
		if (i->offset + vmm_range_size(search->segment->heap, i->range) <=
			    search->request.low ||
		    (search->request.high && i->offset >= search->request.high))
			continue;
		if (!is_victim(search, i, spare))
			continue;
		if (vmm_likely(!rest || i->rest != rest))
			return i;
		if (!needed || i->needed_at > needed->needed_at)
			needed = i;
	}
	return needed;
}

static struct vmm_instance *look_for_victim(struct vmm_search *search, bool spare)
{
	uint32_t largest = vmm_fair_largest(search->segment); /* SEG-27 */
	struct vmm_instance *victim = NULL;

	for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT && !victim; c++) {
		if (vmm_unlikely(largest != 0))
			victim = look_in(search, c, largest, false, spare);
		if (!victim)
			victim = look_in(search, c, largest, true, spare);
	}
	return victim;
}

/* Who can leave and keep what it has; what queued work still needs goes last. */
static struct vmm_instance *next_easy_victim(struct vmm_search *search)
{
	vmm_offers_settle(search->memory);
	search->spared = false;
	struct vmm_instance *victim = look_for_victim(search, true);

	return !victim && search->spared ? look_for_victim(search, false) : victim;
}

/* What the CPU has locked, and then what would lose its content, only if nothing need be waited for. */
static struct vmm_instance *next_hard_victim(struct vmm_search *search)
{
	struct vmm_instance *victim = NULL;

	if (!search->blocked && !search->locked_allowed) {
		search->locked_allowed = true;
		victim = look_for_victim(search, false);
	}
	if (!victim && !search->blocked && search->fragile && !search->loss_allowed) {
		search->loss_allowed = true;
		victim = look_for_victim(search, false);
	}
	return victim;
}

static struct vmm_instance *next_victim(struct vmm_search *search)
{
	struct vmm_instance *victim = next_easy_victim(search);

	return victim ? victim : next_hard_victim(search);
}

void vmm_memory_expect(struct vmm_adapter *adapter, uint64_t rest)
{
	adapter->memory->rest = rest;
}

/* SEG-05: whatever is mapped anywhere makes room when it is the limit of all apertures together that is reached. */
static struct vmm_instance *next_mapped_victim(struct vmm_search *search)
{
	struct vmm_search any = *search;
	struct vmm_instance *victim = NULL;

	any.request.low = any.request.high = 0;
	victim = next_victim(&any);
	for (uint32_t s = 0; s < search->memory->segment_count && !victim; s++) {
		any.segment = &search->memory->segment[s];
		if (any.segment->aperture && any.segment != search->segment)
			victim = next_victim(&any);
	}
	search->blocked |= any.blocked;
	return victim;
}

/*
 * VMM_OK: `victim` leaves, or without one there is room in one piece now. What is free is brought together before content is
 * lost for it (PAG-20), and only then: a segment out of which everything idle has been sent packs better than one in which it moved.
 */
static vmm_status find_victim(struct vmm_search *search, struct vmm_instance **victim)
{
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_recency_settle(search->memory);
	if (vmm_unlikely(vmm_segment_is_over_limit(search->memory, search->segment,
						   search->request.size_bytes))) {
		*victim = next_mapped_victim(search);
		return *victim ? VMM_OK : status;
	}
	*victim = next_easy_victim(search);
	if (!*victim && !search->blocked && search->fragile && !search->compacted) {
		search->compacted = true;
		status = vmm_compact(search->memory, search->segment, &search->request,
				     search->preparation);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
	}
	if (!*victim)
		*victim = next_hard_victim(search);
	return *victim ? VMM_OK : status;
}

vmm_status vmm_room_find(struct vmm_search *search, struct vmm_room *room)
{
	struct vmm_memory *memory = search->memory;

	for (;;) {
		vmm_status status = vmm_segment_allocate(memory, search->segment, &search->request,
							 &room->node, &room->offset);
		struct vmm_instance *victim;

		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		status = find_victim(search, &victim);
		if (!vmm_ok(status))
			return status;
		if (!victim)
			continue;
		status = push_out(search, victim);
		if (status ==
		    VMM_NOT_SUPPORTED) /* a locked one that cannot move without losing stores */
			return VMM_NO_VIDEO_MEMORY;
		if (status == VMM_PENDING) { /* PAG-17: its way out is in use */
			search->blocked = true;
			return VMM_NO_VIDEO_MEMORY;
		}
		if (!vmm_ok(status))
			return status;
	}
}

vmm_status vmm_residency_take_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request, uint64_t preparation,
				   struct vmm_room *room)
{
	struct vmm_search search = {.memory = memory,
				    .segment = segment,
				    .request = *request,
				    .preparation = preparation};

	if (request->size_bytes > segment->capacity_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_status status = vmm_room_find(&search, room);
	if (status == VMM_OK) {
		status = vmm_private_clear(memory, segment, room->offset, request->size_bytes);
		if (status != VMM_OK)
			vmm_segment_free(memory, segment, room->node);
	}
	return status == VMM_NO_VIDEO_MEMORY && search.blocked ? VMM_PENDING : status;
}

vmm_status vmm_residency_make_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request)
{
	struct vmm_room room;
	vmm_status status =
		vmm_residency_take_room(memory, segment, request, VMM_NO_PREPARATION, &room);

	if (status == VMM_OK)
		vmm_segment_free(memory, segment, room.node);
	return status;
}
