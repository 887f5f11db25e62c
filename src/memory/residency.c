/* SPDX-License-Identifier: MIT */
/*
 * Residency: which segment an instance goes to, and who leaves for it.
 *
 * A victim is always idle (PAG-02): no packet whose preparation is done (its addresses are patched) uses it, on any
 * timeline. That paging packets run in order lets a victim's space be given away at once: the new owner's first paging command runs
 * after the victim's last, and the new owner's users wait for the former.
 */
#include "memory/memory_private.h"

bool vmm_instance_unused(const struct vmm_instance *instance)
{
	return !vmm_instance_busy(instance, VMM_USE_ACTIVE, NULL, NULL);
}

void vmm_residency_touch(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_list *list =
		&vmm_memory_segment(memory, instance->segment)->lru[instance->class_index];

	instance->last_use = ++memory->use_counter;
	vmm_list_remove(&instance->lru);
	vmm_list_push_back(list, &instance->lru);
}

void vmm_residency_reclass(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment;
	struct vmm_list *at;
	uint32_t class_index = vmm_allocation_class(instance->allocation);

	if (instance->class_index == class_index)
		return;
	instance->class_index = (uint8_t)class_index;
	if (instance->place != VMM_PLACE_MEMORY && instance->place != VMM_PLACE_APERTURE)
		return;
	/* Keeps the order by last use inside the new class. */
	segment = vmm_memory_segment(memory, instance->segment);
	vmm_list_remove(&instance->lru);
	for (at = segment->lru[class_index].prev; at != &segment->lru[class_index]; at = at->prev)
		if (vmm_container_of(at, struct vmm_instance, lru)->last_use < instance->last_use)
			break;
	vmm_list_insert_after(at, &instance->lru);
}

static void enter_segment(struct vmm_memory *memory, struct vmm_instance *instance,
			  struct vmm_segment *segment, vmm_range_node node, uint64_t offset)
{
	instance->segment = (uint8_t)segment->port->id;
	instance->range = node;
	instance->offset = offset;
	instance->class_index = (uint8_t)vmm_allocation_class(instance->allocation);
	segment->resident_bytes += instance->allocation->size_bytes;
	segment->residents++;
	segment->peak_bytes = vmm_max_u64(segment->peak_bytes, segment->resident_bytes);
	memory->resident_total += instance->allocation->size_bytes;
	memory->peak_total = vmm_max_u64(memory->peak_total, memory->resident_total);
	if (segment->cpu_memory)
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + offset,
				     instance->allocation->size_bytes);
	vmm_residency_touch(memory, instance);
}

static void leave_segment(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	vmm_range_free(segment->heap, instance->range);
	vmm_list_remove(&instance->lru);
	segment->resident_bytes -= instance->allocation->size_bytes;
	segment->residents--;
	memory->resident_total -= instance->allocation->size_bytes;
	instance->segment = 0;
	instance->offset = 0;
	instance->prepared = 0;
	instance->range = VMM_RANGE_NONE;
}

static void residency_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			    uint32_t reason, uint32_t old_segment)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, a->owner, instance->handle,
		  reason, a->size_bytes, old_segment, instance->segment, instance->offset);
}

vmm_status vmm_residency_give_backing(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (instance->backing.arena)
		return VMM_OK;
	return vmm_backing_create(memory, instance->allocation->size_bytes, true,
				  &instance->backing);
}

/*
 * The last paging packet that touches the instance. Where it moves the content, the CPU waits for it like for a GPU
 * write; mapping and unmapping leave the bytes where the CPU sees them.
 */
static void mark_paged(struct vmm_memory *memory, struct vmm_instance *instance, bool moves_content)
{
	uint32_t t = memory->adapter->paging_timeline;
	uint64_t sequence = vmm_paging_sequence(memory);

	vmm_mark_used(&instance->queued[t], sequence);
	if (moves_content)
		vmm_mark_used(&instance->written[t], sequence);
}

static vmm_status evict_from_memory(struct vmm_memory *memory, struct vmm_instance *instance)
{
	/* PAG-12: the system copy was given up at page-in, so eviction always copies back. */
	vmm_status status = vmm_backing_create(memory, instance->allocation->size_bytes, false,
					       &instance->backing);

	if (!vmm_ok(status))
		return status;
	status = vmm_paging_transfer(memory, instance, false);
	if (!vmm_ok(status))
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason)
{
	uint32_t old_segment = instance->segment;
	vmm_status status;

	vmm_assert(instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE);
	vmm_assert(vmm_instance_unused(instance));
	if (instance->place == VMM_PLACE_MEMORY) {
		if (instance->lock_count)
			return vmm_view_move_locked_instance(memory, instance, reason);
		status = evict_from_memory(memory, instance);
		if (vmm_ok(status))
			vmm_view_hide(instance);
	} else {
		status = vmm_paging_unmap(
			memory, instance); /* PAG-17: an aperture unmaps, nothing is copied */
	}
	if (!vmm_ok(status))
		return status;
	mark_paged(memory, instance, instance->place == VMM_PLACE_MEMORY);
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return VMM_OK;
}

vmm_status vmm_view_move_locked_instance(struct vmm_memory *memory, struct vmm_instance *instance,
					 uint32_t reason)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_os_view_freeze(&instance->view);

	/*
	 * LOCK-04, PAG-16, LKR-04: stores of the CPU block while the content moves; without that they could be lost, so it
	 * stays.
	 */
	if (!vmm_ok(status))
		return status;
	status = evict_from_memory(memory, instance);
	if (!vmm_ok(status)) {
		vmm_os_view_thaw(&instance->view);
		return status;
	}
	mark_paged(memory, instance, true);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					     VIDMM_WAIT_LOCK);
	leave_segment(memory, instance);
	instance->place = VMM_PLACE_SYSTEM;
	instance->view_current = false;
	vmm_status shown = vmm_view_show(memory, instance);
	if (!vmm_ok(shown))
		vmm_os_view_thaw(&instance->view);
	memory->figures.evictions++;
	residency_event(memory, instance, reason, old_segment);
	return vmm_ok(status) ? shown : status;
}

void vmm_residency_drop(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t reason)
{
	uint32_t old_segment = instance->segment;

	if (instance->place == VMM_PLACE_MEMORY) {
		if (reason == VIDMM_RESIDENCY_DISCARDED)
			(void)!vmm_paging_discard(
				memory,
				instance); /* PAG-06; a dead adapter has no content left anyway */
		vmm_view_hide(instance);
		leave_segment(memory, instance);
	} else if (instance->place == VMM_PLACE_APERTURE) {
		(void)!vmm_paging_unmap(memory, instance);
		leave_segment(memory, instance);
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		vmm_view_hide(instance);
	} else {
		uint64_t last = atomic_load_explicit(
			&instance->queued[memory->adapter->paging_timeline], memory_order_relaxed);
		vmm_backing_destroy_after(memory, &instance->backing, last);
		vmm_view_hide(instance);
	}
	instance->place = VMM_PLACE_LOST;
	residency_event(memory, instance, reason, old_segment);
}

/* A retired instance that nothing names any more: the next lock that takes it does so with Discard (REN-15). */
static bool content_is_dead(const struct vmm_instance *instance)
{
	return instance->state == VMM_INSTANCE_RETIRED && !instance->lock_count &&
	       !instance->allocation->offer &&
	       !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

/*
 * An offered victim is not copied anywhere (OFR-09). The offer is one of the newest instance (REN-20): what a command
 * buffer may still name of an older one is kept. So is what queued work still needs (OFR-01); were that not to leave at
 * all, the head of the queue could wait for work behind it (SPL-13).
 */
static vmm_status push_out(struct vmm_memory *memory, struct vmm_instance *instance)
{
	/* REN-09: under pressure the pool gives its memory up, without a copy. */
	if (content_is_dead(instance)) {
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
		memory->figures.evictions++;
		return VMM_OK;
	}
	if (!instance->allocation->offer || instance->state == VMM_INSTANCE_PREVIOUS ||
	    vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL))
		return vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_PRESSURE);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	instance->discarded = true;
	memory->figures.discarded_bytes += instance->allocation->size_bytes;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DISCARD, instance->allocation->owner,
		  instance->handle, 0, instance->allocation->size_bytes, 0, 0, 0);
	return VMM_OK;
}

struct vmm_search {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	struct vmm_range_request request;
	uint64_t preparation;
	bool locked_allowed; /* nothing else is left: what the CPU has locked may move under it (PAG-16) */
	bool blocked;        /* something that could leave is in use by the GPU */
	bool spared; /* the first look passed over what is offered and still needed by queued work */
};

static struct vmm_instance *look_for_victim(struct vmm_search *search, bool spare_queued)
{
	struct vmm_policy_need need = {.size_bytes = search->request.size_bytes,
				       .now = search->memory->use_counter,
				       .locked_allowed = search->locked_allowed};

	for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT; c++) {
		struct vmm_list *link;

		vmm_list_for_each (link, &search->segment->lru[c]) {
			struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, lru);
			bool active = !vmm_instance_unused(i);
			bool spared = spare_queued && i->allocation->offer &&
				      vmm_instance_busy(i, VMM_USE_ANY, NULL, NULL);
			struct vmm_policy_victim victim = {
				.size_bytes = i->allocation->size_bytes,
				.idle_since = i->last_use,
				.priority = i->allocation->priority,
				.busy = active || spared,
				.locked = i->lock_count != 0,
				.wanted = i->wanted == search->preparation,
			};

			if (vmm_policy_take(&victim, &need))
				return i;
			search->blocked |= active && !victim.wanted;
			search->spared |= spared;
		}
	}
	return NULL;
}

/* What queued work still needs goes last, and what the CPU has locked only if nothing need be waited for. */
static struct vmm_instance *next_victim(struct vmm_search *search)
{
	search->spared = false;
	struct vmm_instance *victim = look_for_victim(search, true);

	if (!victim && search->spared)
		victim = look_for_victim(search, false);
	if (victim || search->blocked || search->locked_allowed)
		return victim;
	search->locked_allowed = true;
	return look_for_victim(search, false);
}

static vmm_status find_space(struct vmm_search *search, vmm_range_node *node, uint64_t *offset)
{
	for (;;) {
		vmm_status status =
			vmm_range_allocate(search->segment->heap, &search->request, node, offset);

		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		struct vmm_instance *victim = next_victim(search);
		if (!victim)
			return VMM_NO_VIDEO_MEMORY;
		status = push_out(search->memory, victim);
		if (status ==
		    VMM_NOT_SUPPORTED) /* a locked one that cannot move without losing stores */
			return VMM_NO_VIDEO_MEMORY;
		if (!vmm_ok(status))
			return status;
	}
}

vmm_status vmm_residency_make_room(struct vmm_memory *memory, struct vmm_segment *segment,
				   const struct vmm_range_request *request)
{
	struct vmm_search search = {.memory = memory,
				    .segment = segment,
				    .request = *request,
				    .preparation = UINT64_MAX};
	vmm_range_node node;
	uint64_t offset;

	if (request->size_bytes > segment->capacity_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_status status = find_space(&search, &node, &offset);
	if (vmm_ok(status))
		vmm_range_free(segment->heap, node);
	return status == VMM_NO_VIDEO_MEMORY && search.blocked ? VMM_PENDING : status;
}

static vmm_status map_backing(struct vmm_memory *memory, struct vmm_instance *instance)
{
	bool had_one = instance->backing.arena != 0;
	vmm_status status = vmm_residency_give_backing(memory, instance);

	if (!vmm_ok(status))
		return status;
	status = vmm_paging_map(memory, instance);
	if (!vmm_ok(status) && !had_one)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* Content for the new place; on failure the instance is what it was. */
static vmm_status bring_content(struct vmm_memory *memory, struct vmm_instance *instance,
				enum vmm_place from)
{
	vmm_status status;

	if (instance->place == VMM_PLACE_APERTURE)
		return map_backing(memory, instance); /* SEG-07: mapped, not copied */
	if (from == VMM_PLACE_FRESH || from == VMM_PLACE_LOST)
		return vmm_paging_fill(memory, instance);
	status = vmm_paging_transfer(memory, instance, true);
	if (vmm_ok(status)) /* PAG-12 */
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	return status;
}

static vmm_status place_in(struct vmm_search *search, struct vmm_instance *instance)
{
	struct vmm_memory *memory = search->memory;
	enum vmm_place from = instance->place;
	vmm_range_node node;
	uint64_t offset;
	vmm_status status;

	status = find_space(search, &node, &offset);
	if (!vmm_ok(status))
		return status;
	enter_segment(memory, instance, search->segment, node, offset);
	instance->place = search->segment->aperture ? VMM_PLACE_APERTURE : VMM_PLACE_MEMORY;
	status = bring_content(memory, instance, from);
	if (!vmm_ok(status)) {
		leave_segment(memory, instance);
		instance->place = (uint8_t)from;
		return status;
	}
	if (instance->place == VMM_PLACE_MEMORY)
		vmm_view_hide(instance);
	mark_paged(memory, instance, instance->place == VMM_PLACE_MEMORY);
	residency_event(memory, instance, VIDMM_RESIDENCY_REFERENCED, 0);
	return VMM_OK;
}

/* Segment ids in the order in which they are tried: preferences, then the rest of the set (SEG-16, SEG-18). */
static uint32_t candidates(const struct vmm_memory *memory, const struct vmm_allocation *allocation,
			   uint32_t set, uint32_t order[VMM_PORT_SEGMENTS_MAX])
{
	uint32_t count = 0;

	for (uint32_t p = 0; p < 5; p++) {
		uint32_t id = allocation->preferred >> (6 * p) & 0x1F;

		if (id && id <= memory->segment_count && (set & 1u << (id - 1))) {
			order[count++] = id;
			set &= ~(1u << (id - 1));
		}
	}
	for (uint32_t id = 1; id <= memory->segment_count; id++)
		if (set & 1u << (id - 1))
			order[count++] = id;
	return count;
}

static uint32_t range_flags(const struct vmm_allocation *allocation, uint32_t segment_id)
{
	for (uint32_t p = 0; p < 5;
	     p++) /* SEG-17: an explicit direction wins over FromEndOfSegment (ALF-17) */
		if ((allocation->preferred >> (6 * p) & 0x1F) == segment_id &&
		    (allocation->preferred >> (6 * p) & 0x20))
			return VMM_RANGE_FROM_END;
	return allocation->flags & 0x40 ? VMM_RANGE_FROM_END : 0;
}

static vmm_status place(struct vmm_memory *memory, struct vmm_instance *instance, uint32_t set,
			uint64_t preparation)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = candidates(memory, allocation, set, order);
	bool blocked = false;

	for (uint32_t c = 0; c < count; c++) {
		struct vmm_search search = {
			.memory = memory,
			.segment = vmm_memory_segment(memory, order[c]),
			.preparation = preparation,
			.request = {.size_bytes = allocation->size_bytes,
				    .alignment = allocation->alignment,
				    .flags = range_flags(allocation, order[c]),
				    .owner = instance},
		};

		if (instance->lock_count && !search.segment->aperture)
			continue; /* LKR-08: while locked it is not promoted into a memory segment */
		if (allocation->size_bytes > search.segment->capacity_bytes)
			continue;
		vmm_status status = place_in(&search, instance);
		if (status != VMM_NO_VIDEO_MEMORY)
			return status;
		/*
		 * What the GPU still uses here will go idle. Waiting for it keeps the working set in the preferred segment;
		 * moving on at once would drain it into the aperture at the first burst.
		 */
		if (search.blocked)
			return VMM_PENDING;
		blocked |= search.blocked;
	}
	return blocked ? VMM_PENDING : VMM_NO_VIDEO_MEMORY;
}

static vmm_status stay(struct vmm_memory *memory, struct vmm_instance *instance,
		       uint64_t preparation)
{
	instance->prepared = preparation;
	vmm_residency_touch(memory, instance);
	return VMM_OK;
}

vmm_status vmm_memory_make_resident_locked(struct vmm_adapter *adapter,
					   struct vmm_instance *instance, bool write,
					   uint64_t preparation)
{
	struct vmm_memory *memory = adapter->memory;
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t set = write ? allocation->write_set : allocation->read_set; /* SEG-19 */
	bool resident =
		instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE;

	bool serves = resident && (set & 1u << (instance->segment - 1));

	if (vmm_likely(serves && !(instance->lock_count && instance->place == VMM_PLACE_MEMORY)))
		return stay(memory, instance, preparation);
	if (resident) {
		/* In a segment that cannot serve this use, or locked by the CPU in a memory segment (LKR-01, LOCK-35). */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		vmm_status status =
			vmm_residency_evict(memory, instance,
					    instance->lock_count ? VIDMM_RESIDENCY_RENDER_LOCKED
								 : VIDMM_RESIDENCY_REFERENCED);
		/*
		 * Where the system cannot hold stores back, moving could lose one. The GPU can use it where it is, and the CPU
		 * goes on seeing it there.
		 */
		if (status == VMM_NOT_SUPPORTED && serves)
			return stay(memory, instance, preparation);
		if (!vmm_ok(status))
			return status;
	}
	vmm_status status = place(memory, instance, set, preparation);
	if (status == VMM_OK)
		instance->prepared = preparation;
	return status;
}

void vmm_memory_location(const struct vmm_instance *instance, uint32_t *segment, uint64_t *address)
{
	if (instance->place != VMM_PLACE_MEMORY && instance->place != VMM_PLACE_APERTURE) {
		*segment = 0;
		*address = 0;
		return;
	}
	const struct vmm_memory *memory = instance->allocation->adapter->memory;
	*segment = instance->segment;
	*address = memory->segment[instance->segment - 1].port->gpu_base + instance->offset;
}

/* LOCK-36, LKR-03: asked before anything is queued. In an aperture already, it stays where it is (LOCK-37, LKR-05). */
bool vmm_memory_can_render_locked(const struct vmm_instance *instance)
{
	const struct vmm_memory *memory = instance->allocation->adapter->memory;
	uint32_t set = instance->allocation->read_set & instance->allocation->write_set;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture && (set & 1u << i))
			return true;
	return false;
}

void vmm_memory_evict_all(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_paging_lock(adapter);
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT; c++) {
			struct vmm_list *list = &memory->segment[s].lru[c];

			while (!vmm_list_empty(list)) {
				struct vmm_instance *i =
					vmm_container_of(list->next, struct vmm_instance, lru);

				if (!vmm_ok(vmm_residency_evict(memory, i, VIDMM_RESIDENCY_STOP)))
					vmm_residency_drop(memory, i, VIDMM_RESIDENCY_STOP);
			}
		}
	}
	uint64_t last = vmm_memory_flush_locked(adapter);
	(void)!memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_STOP);
	vmm_backing_collect(memory);
	vmm_paging_unlock(adapter);
}
