/* SPDX-License-Identifier: MIT */
/*
 * Residency lists (RES-01, RES-08). From WDDM 2.0 on the client declares per device what must be in
 * memory; submissions do not decide it (PRI-05). Before a packet of the device runs, everything on
 * its list is resident at the same time (PRI-12). While the device runs no packet, its memory may
 * be evicted, all of it if necessary. It returns before the next packet.
 *
 * residency.c and victim.c find the space. This file decides what is needed and checks whether the
 * lists fit into the segments.
 */
#include "memory/image/image.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/transfer/va_entries.h"

#define DEMANDS_MAX 16u

/*
 * Bytes on the list by the segment set that may hold them. There is one entry for each pair of
 * segment set and in_vpr.
 */
struct vmm_residency_demand {
	uint32_t count;
	struct demand_entry {
		uint32_t set;
		bool in_vpr;
		uint64_t bytes;
	} entry[DEMANDS_MAX];
};

/* Distinguishes these round numbers from the preparation numbers of sched. */
#define ROUND_BIT ((uint64_t)1 << 62)

uint64_t vmm_residency_list_round(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return ROUND_BIT | ++memory->residency_rounds;
}

static bool is_placed(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return instance->place == VMM_PLACEMENT_MEMORY ||
	       instance->place == VMM_PLACEMENT_APERTURE ||
	       vmm_instance_is_resident_in_system(instance);
}

/*
 * Is it in several extents, although its physical address is used since an update? (PRI-15, PAG-24)
 */
static bool is_scattered(const struct vmm_instance *instance)
{
	return vmm_unlikely(instance->extents != NULL) &&
	       vmm_allocation_is_physical(instance->allocation);
}

/* Is it where its properties no longer allow it (PRI-15)? */
static bool is_misplaced(const struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (instance->place == VMM_PLACEMENT_SYSTEM || allocation->pinned)
		return false;
	return is_scattered(instance) ||
	       !(vmm_allocation_resident_set(allocation) & 1u << (instance->segment - 1)) ||
	       (instance->place == VMM_PLACEMENT_APERTURE &&
		!vmm_allocation_is_physical(allocation));
}

/*
 * Evicts a misplaced instance. One that the CPU has locked meanwhile moves later: while locked it
 * could not be placed in a memory segment again (LKR-08). The GPU cannot use it in extents until
 * then, so the caller waits for the unlock.
 */
static vmm_status evict_misplaced(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!is_misplaced(instance)))
		return VMM_OK;
	if (vmm_locks(instance))
		return is_scattered(instance) ? VMM_PENDING : VMM_OK;
	if (!vmm_instance_unused(instance))
		return VMM_PENDING;
	return vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_TRIM);
}

bool vmm_residency_list_is_settled(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return (instance->place == VMM_PLACEMENT_MEMORY ||
		instance->place == VMM_PLACEMENT_APERTURE) &&
	       !is_misplaced(instance) && !instance->handover && !instance->held &&
	       !allocation->content_lost && !allocation->offer && !allocation->offer_queued &&
	       (vmm_list_empty(&allocation->mappings) || allocation->mapped_at);
}

vmm_status vmm_residency_list_place(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation)
{
	const struct vmm_allocation *allocation = instance->allocation;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(allocation->content_lost)) /* PAG-20 */
		return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
	if (is_placed(instance))
		status = evict_misplaced(memory, instance);
	if (vmm_unlikely(status != VMM_OK))
		return status;
	if (!is_placed(instance)) {
		if (instance->held) /* LOCK-48, LKR-09 */
			return VMM_PENDING;
		/* A pinned allocation was locked while the power returned. */
		status = vmm_unlikely(allocation->pinned)
				 ? vmm_residency_pin(memory, instance)
				 : vmm_residency_place(memory, instance,
						       vmm_allocation_resident_set(allocation),
						       preparation);
	} else if (vmm_unlikely(instance->handover)) {
		status = vmm_hand_over_to_gpu(memory, instance);
	}
	if (status != VMM_OK)
		return status;
	instance->prepared = preparation;
	vmm_va_write_entries(memory, instance); /* page tables also map content in system memory */
	if (instance->place == VMM_PLACEMENT_MEMORY || instance->place == VMM_PLACEMENT_APERTURE)
		vmm_residency_touch(memory, instance);
	return VMM_OK;
}

/*
 * Content that a CPU lock or an eviction left in system memory counts as resident there (PAG-24).
 * Returns true if it belongs in a memory segment: that is the first choice of its set, and neither
 * the GPU nor the CPU uses it now.
 */
static bool belongs_in_memory(const struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];

	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_instance_is_resident_in_system(instance) && !vmm_locks(instance) &&
	       vmm_instance_unused(instance) &&
	       vmm_placement_candidates(memory, allocation, vmm_allocation_resident_set(allocation),
					order) &&
	       !(1u << (order[0] - 1) & vmm_segment_apertures(memory));
}

vmm_status vmm_residency_list_make(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint64_t round)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!instance->allocation->content_lost && belongs_in_memory(memory, instance))
		status = vmm_residency_place(memory, instance,
					     vmm_allocation_resident_set(instance->allocation) &
						     ~vmm_segment_apertures(memory),
					     round);
	if (status == VMM_PENDING || status == VMM_DEVICE_REMOVED)
		return status;
	/* Without space there, it stays in system memory. */
	return vmm_residency_list_place(memory, instance, round);
}

void vmm_residency_list_hold_out(struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (instance->allocation->adapter->model->gpu_uses_locked && vmm_locks(instance))
		instance->held = !vmm_allocation_resident_set_has_aperture(instance->allocation);
}

void vmm_residency_list_into_aperture(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint32_t set =
		vmm_allocation_resident_set(instance->allocation) & vmm_segment_apertures(memory);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (set && vmm_allocation_is_physical(instance->allocation))
		(void)!vmm_residency_place(memory, instance, set, vmm_residency_list_round(memory));
}

bool vmm_residency_list_bring_in(struct vmm_device *device, struct vmm_ref *const *refs,
				 uint32_t count)
{
	struct vmm_adapter *adapter = device->adapter;
	uint64_t round = vmm_residency_list_round(adapter->memory), sequence = 0;
	vmm_status status = VMM_OK;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_residency_list_want(device, round);
	for (uint32_t i = 0; i < count && status == VMM_OK; i++) {
		status = vmm_residency_list_place(adapter->memory, refs[i]->instance, round);
		sequence = vmm_max_u64(sequence, vmm_paging_last_of(refs[i]->instance));
	}
	vmm_memory_flush_locked(adapter);
	return status == VMM_OK && vmm_timeline_done(adapter, adapter->paging_timeline, sequence);
}

/* ---- the list ---- */

static void add_demand(struct vmm_residency_demand *demand, uint32_t set, bool in_vpr,
		       uint64_t bytes)
{
	uint32_t i = 0;

	while (i < demand->count &&
	       (demand->entry[i].set != set || demand->entry[i].in_vpr != in_vpr))
		i++;
	/*
	 * More distinct sets than entries: the last entry collects the rest. Its set is widened to
	 * the union.
	 */
	if (i == DEMANDS_MAX) {
		i--;
		demand->entry[i].set |= set;
		demand->entry[i].in_vpr &= in_vpr;
	} else if (i == demand->count) {
		demand->entry[demand->count++] = (struct demand_entry){set, in_vpr, 0};
	}
	demand->entry[i].bytes += bytes;
}

static void account_demand(struct vmm_residency_demand *demand,
			   const struct vmm_allocation *allocation, bool add)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t set = vmm_allocation_resident_set(allocation);
	uint64_t bytes = vmm_footprint_largest(memory, allocation);

	vmm_assert_held(&allocation->adapter->paging_lock);
	/*
	 * Content that the GPU can use in system memory, outside the aperture, needs no segment
	 * space.
	 */
	if (!vmm_allocation_is_physical(allocation) && (set & vmm_segment_apertures(memory)))
		return;
	add_demand(demand, set, allocation->in_vpr, add ? bytes : 0 - bytes);
}

/*
 * Parts of a segment: all of it, its protected range, or the rest if that range is reserved for
 * protected content (ALF-26).
 */
enum demand_kind { DEMAND_ALL, DEMAND_PROTECTED, DEMAND_ORDINARY, DEMAND_KINDS };

/*
 * The page tables of other processes can be evicted (VA-22), so only those of the process count:
 * `tables` bytes.
 */
static uint64_t capacity_of(const struct vmm_segment *segment, enum demand_kind kind,
			    uint64_t tables)
{
	uint64_t all = segment->capacity_bytes - segment->invalid_bytes + segment->movable_bytes;

	all -= vmm_min_u64(all, tables);

	if (kind == DEMAND_PROTECTED)
		return vmm_protected_bytes(segment);
	if (kind == DEMAND_ORDINARY && vmm_protected_is_reserved(segment))
		return all - vmm_protected_bytes(segment);
	return all;
}

/* Returns by how many bytes the demand confined to `set` exceeds the capacity of those segments. */
static uint64_t excess_of(const struct vmm_device *device,
			  const struct vmm_residency_demand *demand, uint32_t set,
			  enum demand_kind kind) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_memory *memory = device->adapter->memory;
	uint64_t wanted = 0, available = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < demand->count; i++)
		if (!(demand->entry[i].set & ~set) &&
		    (kind == DEMAND_ALL || demand->entry[i].in_vpr == (kind == DEMAND_PROTECTED)))
			wanted += demand->entry[i].bytes;
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (set & 1u << i)
			available += capacity_of(&memory->segment[i], kind,
						 device->va ? device->va->table_bytes[i] : 0);
	return wanted > available ? wanted - available : 0;
}

uint64_t vmm_residency_list_excess(struct vmm_device *device, struct vmm_ref *const *added,
				   uint32_t count)
{
	struct vmm_residency_demand sum = {0};
	uint64_t excess = 0;

	vmm_assert_held(&device->adapter->paging_lock);
	if (device->demand)
		sum = *device->demand;
	for (uint32_t i = 0; i < count; i++)
		account_demand(&sum, added[i]->allocation, true);
	for (uint32_t i = 0; i < sum.count; i++)
		for (uint32_t kind = 0; kind < DEMAND_KINDS; kind++)
			excess = vmm_max_u64(excess, excess_of(device, &sum, sum.entry[i].set,
							       (enum demand_kind)kind));
	return excess;
}

void vmm_residency_list_account(struct vmm_ref *ref, bool add)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	account_demand(ref->device->demand, ref->allocation, add);
	vmm_budget_charge(ref, add);
}

/* Adds 1 to the count. The first call puts the allocation on the list. (PRI-05, RES-01) */
vmm_status vmm_residency_list_add(struct vmm_ref *ref)
{
	struct vmm_device *device = ref->device;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (ref->residency_count++)
		return VMM_OK;
	if (!device->demand)
		device->demand = vmm_calloc(1, sizeof(*device->demand));
	if (!device->demand) {
		ref->residency_count = 0;
		return VMM_NO_MEMORY;
	}
	vmm_residency_list_account(ref, true);
	ref->instance->not_written = false;
	/* A NotWrittenTo report was about its previous stay on the list (PRI-10). */
	ref->listed_at = atomic_load(&device->adapter->submissions);
	ref->allocation->listed++;
	vmm_list_push_back(&device->residency, &ref->residency_link);
	return VMM_OK;
}

/*
 * Packets that are queued already may access the allocation, although it leaves the list: they
 * find it resident as before. (RES-07, ALF-37)
 */
static void note_leaving(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_device *device = ref->device;
	uint64_t from = ref->listed_at;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_ref_note_queued(ref);
	/*
	 * If the device is lost, the caller may hold the state lock, under which packets are
	 * searched. No packet of the device is prepared any more, so the entry has no effect.
	 */
	if (!vmm_device_lost(device) && vmm_ref_queued_is_done(ref))
		return;
	if (vmm_list_empty(&ref->leaving_link))
		vmm_list_push_back(&device->leaving, &ref->leaving_link);
	else /* it left before, and packets from then are queued */
		from = vmm_min_u64(from, ref->left_from);
	ref->left_from = from;
	ref->left_at = atomic_load(&device->adapter->submissions);
}

void vmm_residency_list_left(struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_list_remove(&ref->leaving_link);
	vmm_list_init(&ref->leaving_link);
}

/* Subtracts 1 from the count. At 0 the allocation leaves the list. (PRI-05, RES-01) */
void vmm_residency_list_remove(struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (--ref->residency_count)
		return;
	note_leaving(ref);
	vmm_residency_list_account(ref, false);
	ref->allocation->listed--;
	vmm_list_remove(&ref->residency_link);
	vmm_list_init(&ref->residency_link);
	vmm_unlock_released(ref->device->adapter->memory);
}

/* Removes a destroyed allocation from the list, whatever its count. (RES-12) */
void vmm_residency_list_forget(struct vmm_ref *ref)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (ref->residency_count) {
		ref->residency_count = 1;
		vmm_residency_list_remove(ref);
	}
	if (!vmm_list_empty(&ref->departure_link)) {
		vmm_list_remove(&ref->departure_link);
		vmm_list_init(&ref->departure_link);
		atomic_fetch_sub(&ref->device->adapter->paging_work, 1);
	}
}

void vmm_residency_list_device_end(struct vmm_device *device)
{
	vmm_assert_held(&device->adapter->paging_lock);
	vmm_assert(vmm_list_empty(&device->residency));
	/* No packet is queued any more. The refs are freed later. */
	while (!vmm_list_empty(&device->leaving))
		vmm_residency_list_left(
			vmm_container_of(device->leaving.next, struct vmm_ref, leaving_link));
	vmm_free(device->demand);
	device->demand = NULL;
}

void vmm_residency_list_want(struct vmm_device *device, uint64_t preparation)
{
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (!vmm_is_offered_locked(ref->allocation))
			ref->instance->required_by = preparation;
	}
}

/*
 * The content stays resident until its space is needed. It is no longer protected or counted
 * (RES-10).
 */
void vmm_residency_list_lose(struct vmm_device *device)
{
	vmm_assert_held(&device->adapter->paging_lock);
	while (!vmm_list_empty(&device->residency)) {
		struct vmm_ref *ref =
			vmm_container_of(device->residency.next, struct vmm_ref, residency_link);

		ref->residency_count = 1;
		vmm_residency_list_remove(ref);
	}
}

/* ---- before a packet runs ---- */

bool vmm_residency_list_stays_out(struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	/*
	 * An offered allocation is not needed until it is reclaimed, and reclaiming brings it in
	 * (OFR-12).
	 */
	return instance->held || instance->allocation->content_lost ||
	       vmm_is_offered_locked(instance->allocation);
}

/* What the packet needs: a walk through the list, then through what has left it. */
struct walk {
	const struct vmm_residency_set *set;
	struct vmm_list *listed; /* the next entry of the list; its head: none */
	struct vmm_list *left;   /* the same of what has left it; NULL: not begun */
};

/* Removes what no queued packet needs any more. Before the first walk, because walks nest. */
VMM_COLD static void forget_left(struct vmm_device *device) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &device->leaving) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, leaving_link);

		if (vmm_ref_queued_is_done(ref))
			vmm_residency_list_left(ref);
	}
}

/*
 * What left the list before the submission is not needed, nor what was destroyed with
 * AssumeNotInUse. Nothing is removed: another walk may be under way.
 */
VMM_COLD static struct vmm_ref *walk_left(struct walk *walk) VMM_REQUIRES(vmm_paging_lock_class)
{
	const uint64_t submission = walk->set->submission;

	vmm_assert_held(&walk->set->device->adapter->paging_lock);
	if (!walk->left)
		walk->left = walk->set->device->leaving.next;
	while (walk->left != &walk->set->device->leaving) {
		struct vmm_ref *ref = vmm_container_of(walk->left, struct vmm_ref, leaving_link);

		walk->left = walk->left->next;
		if (ref->left_from < submission && submission <= ref->left_at &&
		    !vmm_residency_list_stays_out(ref->instance))
			return ref;
	}
	return NULL;
}

/* Returns what the packet needs next, NULL at the end. What was listed after it is not needed. */
static inline struct vmm_ref *walk_on(struct walk *walk) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_residency_set *set = walk->set;

	vmm_assert_held(&set->device->adapter->paging_lock);
	while (walk->listed != &set->device->residency) {
		struct vmm_ref *ref =
			vmm_container_of(walk->listed, struct vmm_ref, residency_link);

		walk->listed = walk->listed->next;
		if (ref->listed_at < set->submission &&
		    !vmm_residency_list_stays_out(ref->instance))
			return ref;
	}
	return vmm_likely(vmm_list_empty(&set->device->leaving)) ? NULL : walk_left(walk);
}

static struct vmm_ref *walk_begin(struct walk *walk, const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&set->device->adapter->paging_lock);
	*walk = (struct walk){.set = set, .listed = set->device->residency.next};
	return walk_on(walk);
}

/*
 * A submission that references the instance was still queued when it was evicted and then locked by
 * the CPU (LOCK-48), so the submission cannot run (PRI-11).
 */
static vmm_status place_listed(const struct vmm_residency_set *set, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = set->device->adapter;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (vmm_likely(!instance->held))
		return vmm_residency_list_place(adapter->memory, instance, set->preparation);
	return vmm_refuse_rule(
		adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, "PRI-11",
		set->device->process->id, instance->handle,
		"a queued submission references 0x%08x, which was evicted and is locked by "
		"the CPU: it cannot run, and the device enters the error state",
		instance->handle);
}

/* Marks what the packet needs, once, so that none of it is evicted for another part of it. */
static void mark_required(const struct vmm_residency_set *set, bool *marked)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct walk walk;

	vmm_assert_held(&set->device->adapter->paging_lock);
	if (*marked)
		return;
	*marked = true;
	for (struct vmm_ref *ref = walk_begin(&walk, set); ref; ref = walk_on(&walk))
		ref->instance->required_by = set->preparation;
	for (uint32_t i = 0; i < set->listed_count; i++)
		if (set->listed[i])
			set->listed[i]->required_by = set->preparation;
}

/*
 * Most packets find their whole list settled. Then nothing is evicted and one walk is enough. The
 * first instance that is not settled has the set marked before it is placed.
 */
static vmm_status gather_in_order(const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = set->device->adapter->memory;
	bool marked = false;
	vmm_status status = VMM_OK;
	struct vmm_ref *ref;
	struct walk walk;

	for (ref = walk_begin(&walk, set); ref; ref = walk_on(&walk)) {
		if (vmm_likely(vmm_residency_list_is_settled(ref->instance))) {
			ref->instance->prepared = set->preparation;
			vmm_residency_touch(memory, ref->instance);
			continue;
		}
		mark_required(set, &marked);
		status = vmm_residency_list_place(memory, ref->instance, set->preparation);
		if (status != VMM_OK)
			return status;
	}
	for (uint32_t i = 0; i < set->listed_count && status == VMM_OK; i++) {
		if (!set->listed[i] || set->listed[i]->prepared == set->preparation)
			continue;
		mark_required(set, &marked);
		status = place_listed(set, set->listed[i]);
	}
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
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *largest = NULL;
	struct vmm_ref *ref;
	struct walk walk;

	for (ref = walk_begin(&walk, set); ref; ref = walk_on(&walk))
		largest = larger(largest, ref->instance, set->preparation);
	for (uint32_t i = 0; i < set->listed_count; i++)
		if (set->listed[i])
			largest = larger(largest, set->listed[i], set->preparation);
	return largest;
}

VMM_COLD static bool a_place_is_in_use(const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = set->device->adapter;
	bool in_use = false;
	struct vmm_ref *ref;
	struct walk walk;

	for (ref = walk_begin(&walk, set); ref && !in_use; ref = walk_on(&walk))
		in_use = vmm_memory_place_is_in_use(adapter, ref->instance);
	for (uint32_t i = 0; i < set->listed_count && !in_use; i++)
		in_use = set->listed[i] && vmm_memory_place_is_in_use(adapter, set->listed[i]);
	return in_use;
}

/*
 * SPL-13: evicts the members of the set that are in the way of others, and may move. If the GPU
 * uses one, nothing is evicted yet: the end of that paging would be progress, and each progress is
 * another attempt, which pages in again what this one evicted.
 */
VMM_COLD static vmm_status give_up_places(const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = set->device->adapter;
	vmm_status status = a_place_is_in_use(set) ? VMM_PENDING : VMM_OK;
	struct vmm_ref *ref;
	struct walk walk;

	vmm_assert_held(&set->device->adapter->paging_lock);
	for (ref = walk_begin(&walk, set); ref && status == VMM_OK; ref = walk_on(&walk))
		status = vmm_memory_give_up_place(adapter, ref->instance, set->preparation);
	for (uint32_t i = 0; i < set->listed_count && status == VMM_OK; i++)
		if (set->listed[i])
			status =
				vmm_memory_give_up_place(adapter, set->listed[i], set->preparation);
	return status;
}

/*
 * Places the largest first, because the present placements of the list may fragment the segment so
 * that the rest does not fit.
 */
static vmm_status gather_largest_first(const struct vmm_residency_set *set)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance;

	while ((instance = largest_missing(set)) != NULL) {
		instance->required_by = set->preparation;
		vmm_status status = place_listed(set, instance);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

static vmm_status gather_in_round(const struct vmm_residency_set *set,
				  enum vmm_residency_round round)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = round == VMM_ROUND_ANEW ? give_up_places(set) : VMM_OK;

	vmm_assert_held(&set->device->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	return round == VMM_ROUND_IN_ORDER ? gather_in_order(set) : gather_largest_first(set);
}

vmm_status vmm_residency_gather(const struct vmm_residency_set *set, enum vmm_residency_round round)
{
	struct vmm_memory *memory = set->device->adapter->memory;

	vmm_assert_held(&set->device->adapter->paging_lock);
	if (vmm_unlikely(!vmm_list_empty(&set->device->leaving)))
		forget_left(set->device);
	vmm_unlock_wait_for(memory, set->awaits_unlocks ? set->device->process->id : 0);
	vmm_status status = vmm_va_gather(set->device, set->preparation);
	if (status == VMM_OK)
		status = gather_in_round(set, round);
	vmm_unlock_wait_for_none(memory);
	return status;
}

vmm_status vmm_residency_list_place_anew(struct vmm_device *device)
{
	struct vmm_residency_set set = {.device = device, .submission = UINT64_MAX};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&device->adapter->paging_lock);
	for (uint32_t round = VMM_ROUND_LARGEST_FIRST;
	     round < VMM_ROUND_COUNT && status == VMM_NO_VIDEO_MEMORY; round++) {
		set.preparation = vmm_residency_list_round(device->adapter->memory);
		status = gather_in_round(&set, (enum vmm_residency_round)round);
	}
	return status;
}

/* DMA buffers that are mapped into an aperture are not evicted for an instance. */
vmm_status vmm_residency_list_make_room(struct vmm_device *device, bool *awaits_buffers,
					vmm_status (*place)(void *context), void *context)
{
	struct vmm_adapter *adapter = device->adapter;
	vmm_status status = vmm_residency_list_place_anew(device);
	bool left = false;

	vmm_assert_held(&device->adapter->paging_lock);
	if (status == VMM_NO_VIDEO_MEMORY &&
	    adapter->memory->engine->unmap_buffers(adapter, &left)) {
		status = place(context);
		if (status == VMM_NO_VIDEO_MEMORY)
			status = vmm_residency_list_place_anew(device);
	}
	*awaits_buffers = status == VMM_NO_VIDEO_MEMORY && left;
	return *awaits_buffers ? VMM_PENDING : status;
}

uint64_t vmm_residency_use(const struct vmm_residency_set *set, uint32_t timeline,
			   uint64_t sequence)
{
	struct vmm_ref *ref;
	struct walk walk;
	uint64_t paged = vmm_va_written_by(set->device);

	for (ref = walk_begin(&walk, set); ref; ref = walk_on(&walk)) {
		if (ref->instance->prepared != set->preparation)
			continue;
		vmm_instance_activate(ref->instance, timeline, sequence);
		if (set->writes) {
			ref->instance->gpu_wrote = true; /* PAG-31 */
			ref->instance->not_written = false;
		}
		paged = vmm_max_u64(paged, vmm_paging_last_of(ref->instance));
	}
	return paged;
}

/* ---- deferred eviction of what left the list (RES-07) ---- */

void vmm_residency_list_depart(struct vmm_ref *ref)
{
	struct vmm_adapter *adapter = ref->device->adapter;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_ref_note_queued(ref);
	if (!vmm_list_empty(&ref->departure_link))
		return;
	vmm_list_push_back(&adapter->memory->departures, &ref->departure_link);
	atomic_fetch_add(&adapter->paging_work, 1);
}

/*
 * If a packet that uses the instance has completed before an earlier one, each earlier packet that
 * is prepared counts as a use, also one of another device: then the instance is active without
 * being queued.
 */
static bool gpu_is_done(const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	return vmm_ref_queued_is_done(ref) && vmm_instance_unused(ref->instance) &&
	       !vmm_instance_busy(ref->instance, VMM_USE_ANY, NULL, NULL);
}

/* No content moves, but the miniport may have to act on the content (PAG-29). */
static bool depart_from_system(struct vmm_memory *memory, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!vmm_notify_is_wanted(ref->allocation)) ||
	    !vmm_instance_is_resident_in_system(ref->instance))
		return true;
	if (vmm_locks(ref->instance) || !gpu_is_done(ref))
		return false;
	vmm_status status = vmm_notify_leaving_system(memory, ref->instance);
	return status != VMM_PENDING && status != VMM_DEVICE_REMOVED;
}

/* Returns true if the deferred eviction is done or no longer wanted. */
static bool try_depart(struct vmm_memory *memory, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = ref->instance;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (ref->allocation->listed || ref->allocation->pinned)
		return true;
	if (instance->place != VMM_PLACEMENT_MEMORY && instance->place != VMM_PLACEMENT_APERTURE)
		return depart_from_system(memory, ref);
	/* Locked by the CPU: it leaves after the unlock, or when the space is needed. */
	if (vmm_locks(instance) || !gpu_is_done(ref))
		return false;
	vmm_status status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_TRIM);
	/*
	 * VMM_DEVICE_REMOVED: an adapter reset is imminent. The reset removes it, or it is tried
	 * again.
	 */
	return status != VMM_PENDING && status != VMM_DEVICE_REMOVED;
}

void vmm_residency_list_departures(struct vmm_memory *memory)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &memory->departures) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, departure_link);

		if (!try_depart(memory, ref))
			continue;
		vmm_list_remove(&ref->departure_link);
		vmm_list_init(&ref->departure_link);
		atomic_fetch_sub(&memory->adapter->paging_work, 1);
	}
}
