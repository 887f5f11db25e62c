/* SPDX-License-Identifier: MIT */
/*
 * Residency lists (RES-01, RES-08): from WDDM 2.0 on a device says what it wants in memory, and nothing else decides,
 * call by call (PRI-05). Before a packet of the device runs, all of its list is resident together (PRI-12). While it runs
 * nothing, its memory may be taken, as a whole if need be, and comes back before the next packet.
 *
 * The memory that others leave is found by residency.c; here is who is wanted, and what the lists add up to.
 */
#include "memory/memory_private.h"

#define DEMANDS_MAX 16u

/* How many bytes of the list may be in which segments; what has one set is one entry. */
struct vmm_residency_demand {
	uint32_t count;
	struct demand_entry {
		uint32_t set;
		bool in_vpr;
		uint64_t bytes;
	} entry[DEMANDS_MAX];
};

/* Rounds of sched have numbers of their own. */
#define ROUND_BIT ((uint64_t)1 << 62)

uint64_t vmm_resident_round(struct vmm_memory *memory)
{
	return ROUND_BIT | ++memory->residency_rounds;
}

uint32_t vmm_resident_set(const struct vmm_allocation *allocation)
{
	uint32_t both = allocation->read_set & allocation->write_set;

	return both ? both : allocation->write_set;
}

static uint32_t aperture_set(const struct vmm_memory *memory)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture)
			set |= 1u << i;
	return set;
}

bool vmm_resident_reaches_aperture(const struct vmm_allocation *allocation)
{
	return vmm_resident_set(allocation) & aperture_set(allocation->adapter->memory);
}

bool vmm_resident_in_system(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	return instance->place == VMM_PLACE_SYSTEM && instance->backing.address &&
	       !vmm_allocation_is_physical(allocation) && vmm_resident_reaches_aperture(allocation);
}

static bool is_placed(const struct vmm_instance *instance)
{
	return instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE ||
	       vmm_resident_in_system(instance);
}

/* PRI-15: it is where it may not be any more. */
static bool is_misplaced(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	if (instance->place == VMM_PLACE_SYSTEM || allocation->pinned)
		return false;
	return !(vmm_resident_set(allocation) & 1u << (instance->segment - 1)) ||
	       (instance->place == VMM_PLACE_APERTURE && !vmm_allocation_is_physical(allocation));
}

/* What the CPU has locked meanwhile moves another time: it could not be placed in a memory segment again (LKR-08). */
static vmm_status leave_wrong_place(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_likely(!is_misplaced(instance)) || vmm_locks(instance))
		return VMM_OK;
	if (!vmm_instance_unused(instance))
		return VMM_PENDING;
	return vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_TRIM);
}

vmm_status vmm_resident_place(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint64_t preparation)
{
	const struct vmm_allocation *allocation = instance->allocation;
	vmm_status status = VMM_OK;

	if (vmm_unlikely(allocation->content_lost)) /* PAG-20 */
		return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
	if (is_placed(instance))
		status = leave_wrong_place(memory, instance);
	if (vmm_unlikely(status != VMM_OK))
		return status;
	if (!is_placed(instance)) {
		if (instance->held) /* LOCK-48, LKR-09 */
			return VMM_PENDING;
		status = vmm_unlikely(allocation->pinned) /* locked while the power came back */
				 ? vmm_residency_pin(memory, instance)
				 : vmm_residency_place(memory, instance,
						       vmm_resident_set(allocation), preparation);
	} else if (vmm_unlikely(instance->handover)) {
		status = vmm_hand_over(memory, instance);
	}
	if (status != VMM_OK)
		return status;
	instance->prepared = preparation;
	vmm_va_refresh(memory, instance); /* in system memory, too */
	if (instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE)
		vmm_residency_touch(memory, instance);
	return VMM_OK;
}

void vmm_resident_hold_out(struct vmm_instance *instance)
{
	if (instance->allocation->adapter->wddm2 && vmm_locks(instance))
		instance->held = !vmm_resident_reaches_aperture(instance->allocation);
}

void vmm_resident_into_aperture(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint32_t set = vmm_resident_set(instance->allocation) & aperture_set(memory);

	if (set && vmm_allocation_is_physical(instance->allocation))
		(void)!vmm_residency_place(memory, instance, set, vmm_resident_round(memory));
}

bool vmm_resident_bring_in(struct vmm_device *device, struct vmm_ref *const *refs, uint32_t count)
{
	struct vmm_adapter *adapter = device->adapter;
	uint64_t round = vmm_resident_round(adapter->memory), sequence = 0;
	vmm_status status = VMM_OK;

	vmm_resident_want(device, round);
	for (uint32_t i = 0; i < count && status == VMM_OK; i++) {
		status = vmm_resident_place(adapter->memory, refs[i]->instance, round);
		sequence = vmm_max_u64(sequence, vmm_resident_paged(refs[i]->instance));
	}
	vmm_memory_flush_locked(adapter);
	return status == VMM_OK && vmm_timeline_done(adapter, adapter->paging_timeline, sequence);
}

uint64_t vmm_resident_paged(const struct vmm_instance *instance)
{
	uint32_t t = instance->allocation->adapter->paging_timeline;
	uint64_t queued = atomic_load_explicit(&instance->queued[t], memory_order_relaxed);
	uint64_t updated = atomic_load_explicit(&instance->updated, memory_order_relaxed);

	return vmm_max_u64(queued, updated);
}

/* ---- the list ---- */

static void add_to(struct vmm_residency_demand *demand, uint32_t set, bool in_vpr, uint64_t bytes)
{
	uint32_t i = 0;

	while (i < demand->count &&
	       (demand->entry[i].set != set || demand->entry[i].in_vpr != in_vpr))
		i++;
	/* More kinds than anybody has: the last one stands for the rest, and is the wider for it. */
	if (i == DEMANDS_MAX) {
		i--;
		demand->entry[i].set |= set;
		demand->entry[i].in_vpr &= in_vpr;
	} else if (i == demand->count) {
		demand->entry[demand->count++] = (struct demand_entry){set, in_vpr, 0};
	}
	demand->entry[i].bytes += bytes;
}

static void demand(struct vmm_residency_demand *demand, const struct vmm_allocation *allocation,
		   bool add)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t set = vmm_resident_set(allocation);
	uint64_t bytes = vmm_footprint_largest(memory, allocation);

	/* What can be in system memory without a place in the aperture takes nothing of the segments. */
	if (!vmm_allocation_is_physical(allocation) && (set & aperture_set(memory)))
		return;
	add_to(demand, set, allocation->in_vpr, add ? bytes : 0 - bytes);
}

/* Of a segment: all of it, its protected range, what is left for others where that is kept (ALF-26). */
enum demand_kind { DEMAND_ALL, DEMAND_PROTECTED, DEMAND_ORDINARY, DEMAND_KINDS };

static uint64_t room_of(const struct vmm_segment *segment, enum demand_kind kind)
{
	uint64_t all = segment->capacity_bytes - segment->invalid_bytes;

	if (kind == DEMAND_PROTECTED)
		return vmm_protected_room(segment);
	if (kind == DEMAND_ORDINARY && vmm_protected_is_kept(segment))
		return all - vmm_protected_room(segment);
	return all;
}

/* Of all that can only go where this set says, against what there is. */
static uint64_t excess_of(const struct vmm_memory *memory,
			  const struct vmm_residency_demand *demand, uint32_t set,
			  enum demand_kind kind)
{
	uint64_t wanted = 0, there = 0;

	for (uint32_t i = 0; i < demand->count; i++)
		if (!(demand->entry[i].set & ~set) &&
		    (kind == DEMAND_ALL || demand->entry[i].in_vpr == (kind == DEMAND_PROTECTED)))
			wanted += demand->entry[i].bytes;
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (set & 1u << i)
			there += room_of(&memory->segment[i], kind);
	return wanted > there ? wanted - there : 0;
}

uint64_t vmm_resident_excess(struct vmm_device *device, struct vmm_ref *const *added,
			     uint32_t count)
{
	struct vmm_residency_demand sum = {0};
	uint64_t excess = 0;

	if (device->demand)
		sum = *device->demand;
	for (uint32_t i = 0; i < count; i++)
		demand(&sum, added[i]->allocation, true);
	for (uint32_t i = 0; i < sum.count; i++)
		for (uint32_t kind = 0; kind < DEMAND_KINDS; kind++)
			excess = vmm_max_u64(excess,
					     excess_of(device->adapter->memory, &sum,
						       sum.entry[i].set, (enum demand_kind)kind));
	return excess;
}

void vmm_resident_account(struct vmm_ref *ref, bool add)
{
	demand(ref->device->demand, ref->allocation, add);
	vmm_budget_charge(ref, add);
}

vmm_status vmm_resident_list(struct vmm_ref *ref)
{
	struct vmm_device *device = ref->device;

	if (ref->residency_count++)
		return VMM_OK;
	if (!device->demand)
		device->demand = vmm_calloc(1, sizeof(*device->demand));
	if (!device->demand) {
		ref->residency_count = 0;
		return VMM_NO_MEMORY;
	}
	vmm_resident_account(ref, true);
	ref->instance->not_written = false; /* PRI-10: that was said of its last stay on the list */
	ref->listed_at = atomic_load(&device->adapter->submissions);
	ref->allocation->listed++;
	vmm_list_push_back(&device->residency, &ref->residency_link);
	return VMM_OK;
}

void vmm_resident_unlist(struct vmm_ref *ref)
{
	if (--ref->residency_count)
		return;
	vmm_resident_account(ref, false);
	ref->allocation->listed--;
	vmm_list_remove(&ref->residency_link);
	vmm_list_init(&ref->residency_link);
}

void vmm_resident_forget(struct vmm_ref *ref)
{
	if (!ref->device->adapter->wddm2)
		return;
	if (ref->residency_count) {
		ref->residency_count = 1;
		vmm_resident_unlist(ref);
	}
	if (!vmm_list_empty(&ref->departure_link)) {
		vmm_list_remove(&ref->departure_link);
		vmm_list_init(&ref->departure_link);
		atomic_fetch_sub(&ref->device->adapter->paging_work, 1);
	}
	vmm_paging_queues_forget(ref);
}

void vmm_resident_device_end(struct vmm_device *device)
{
	vmm_assert(vmm_list_empty(&device->residency));
	vmm_free(device->demand);
	device->demand = NULL;
}

void vmm_resident_want(struct vmm_device *device, uint64_t preparation)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (!vmm_is_offered_locked(ref->allocation))
			ref->instance->wanted = preparation;
	}
}

/* What it had there stays until somebody needs the room; no more is kept for it, or counted (RES-10). */
void vmm_resident_lose(struct vmm_device *device)
{
	while (!vmm_list_empty(&device->residency)) {
		struct vmm_ref *ref =
			vmm_container_of(device->residency.next, struct vmm_ref, residency_link);

		ref->residency_count = 1;
		vmm_resident_unlist(ref);
	}
}

/* ---- before a packet runs ---- */

static void want_named(const struct vmm_residency_set *set)
{
	for (uint32_t i = 0; i < set->named_count; i++)
		if (set->named[i])
			set->named[i]->wanted = set->preparation;
}

bool vmm_resident_stays_out(struct vmm_instance *instance)
{
	/* What is offered is nobody's until it is reclaimed, which brings it in again (OFR-12). */
	return instance->held || instance->allocation->content_lost ||
	       vmm_is_offered_locked(instance->allocation);
}

/* What came onto the list after the submission is not needed for it. */
static bool is_needed(const struct vmm_residency_set *set, const struct vmm_ref *ref)
{
	return ref->listed_at < set->submission && !vmm_resident_stays_out(ref->instance);
}

/* PRI-11: evicted and then locked by the CPU (LOCK-48), while a submission that names it still waited. */
static vmm_status place_named(const struct vmm_residency_set *set, struct vmm_instance *instance)
{
	struct vmm_adapter *adapter = set->device->adapter;

	if (vmm_likely(!instance->held))
		return vmm_resident_place(adapter->memory, instance, set->preparation);
	vmm_finding(adapter->observe, "PRI-11", set->device->process->id, instance->handle,
		    "a queued submission names 0x%08x, which was evicted and is locked by the CPU: "
		    "it cannot run, the device is in error",
		    instance->handle);
	return STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE;
}

static vmm_status gather_in_order(const struct vmm_residency_set *set)
{
	struct vmm_memory *memory = set->device->adapter->memory;
	struct vmm_list *link;
	vmm_status status = VMM_OK;

	vmm_list_for_each (link, &set->device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (is_needed(set, ref))
			ref->instance->wanted = set->preparation;
	}
	want_named(set);
	vmm_list_for_each (link, &set->device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (is_needed(set, ref))
			status = vmm_resident_place(memory, ref->instance, set->preparation);
		if (status != VMM_OK)
			return status;
	}
	for (uint32_t i = 0; i < set->named_count && status == VMM_OK; i++)
		if (set->named[i] && set->named[i]->prepared != set->preparation)
			status = place_named(set, set->named[i]);
	return status;
}

static struct vmm_instance *larger(struct vmm_instance *a, struct vmm_instance *b,
				   uint64_t preparation)
{
	if (b->prepared == preparation)
		return a;
	return a && a->allocation->size_bytes >= b->allocation->size_bytes ? a : b;
}

static struct vmm_instance *largest_missing(const struct vmm_residency_set *set)
{
	struct vmm_instance *largest = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &set->device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (is_needed(set, ref))
			largest = larger(largest, ref->instance, set->preparation);
	}
	for (uint32_t i = 0; i < set->named_count; i++)
		if (set->named[i])
			largest = larger(largest, set->named[i], set->preparation);
	return largest;
}

/* The list may lie in memory in a way that leaves no room in one piece for the rest of it. */
static vmm_status gather_anew(const struct vmm_residency_set *set)
{
	struct vmm_instance *instance;

	while ((instance = largest_missing(set)) != NULL) {
		instance->wanted = set->preparation;
		vmm_status status = place_named(set, instance);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

vmm_status vmm_residency_gather(const struct vmm_residency_set *set, bool anew)
{
	return anew ? gather_anew(set) : gather_in_order(set);
}

uint64_t vmm_residency_use(const struct vmm_residency_set *set, uint32_t timeline,
			   uint64_t sequence)
{
	struct vmm_list *link;
	uint64_t paged = 0;

	vmm_list_for_each (link, &set->device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (!is_needed(set, ref) || ref->instance->prepared != set->preparation)
			continue;
		vmm_instance_activate(ref->instance, timeline, sequence);
		if (set->writes) {
			ref->instance->gpu_wrote = true; /* PAG-31 */
			ref->instance->not_written = false;
		}
		paged = vmm_max_u64(paged, vmm_resident_paged(ref->instance));
	}
	return paged;
}

/* ---- leaving ---- */

void vmm_resident_depart(struct vmm_ref *ref)
{
	struct vmm_device *device = ref->device;
	struct vmm_adapter *adapter = device->adapter;

	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		ref->departs_after[t] =
			atomic_load_explicit(&device->queued[t], memory_order_relaxed);
	if (!vmm_list_empty(&ref->departure_link))
		return;
	vmm_list_push_back(&adapter->memory->departures, &ref->departure_link);
	atomic_fetch_add(&adapter->paging_work, 1);
}

static bool may_depart(const struct vmm_ref *ref)
{
	const struct vmm_adapter *adapter = ref->device->adapter;

	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		if (!vmm_device_done(ref->device, t, ref->departs_after[t]))
			return false;
	return !vmm_instance_busy(ref->instance, VMM_USE_ANY, NULL, NULL);
}

/* Nothing moves; its miniport may have to do something about the content nevertheless (PAG-29). */
static bool depart_from_system(struct vmm_memory *memory, struct vmm_ref *ref)
{
	if (vmm_likely(!vmm_notify_is_wanted(ref->allocation)) ||
	    !vmm_resident_in_system(ref->instance))
		return true;
	if (vmm_locks(ref->instance) || !may_depart(ref))
		return false;
	vmm_status status = vmm_notify_leaving_system(memory, ref->instance);
	return status != VMM_PENDING && status != VMM_DEVICE_REMOVED;
}

/* Is there nothing more to be done about it? */
static bool depart(struct vmm_memory *memory, struct vmm_ref *ref)
{
	struct vmm_instance *instance = ref->instance;

	if (ref->allocation->listed || ref->allocation->pinned)
		return true;
	if (instance->place != VMM_PLACE_MEMORY && instance->place != VMM_PLACE_APERTURE)
		return depart_from_system(memory, ref);
	/* What the CPU has would only be seen to move: it leaves when it is unlocked, or when somebody needs the room. */
	if (vmm_locks(instance) || !may_depart(ref))
		return false;
	vmm_status status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_TRIM);
	/* Refused because the adapter is about to be reset: that takes it out, or it is tried again. */
	return status != VMM_PENDING && status != VMM_DEVICE_REMOVED;
}

void vmm_resident_departures(struct vmm_memory *memory)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &memory->departures) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, departure_link);

		if (!depart(memory, ref))
			continue;
		vmm_list_remove(&ref->departure_link);
		vmm_list_init(&ref->departure_link);
		atomic_fetch_sub(&memory->adapter->paging_work, 1);
	}
}
