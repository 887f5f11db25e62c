/* SPDX-License-Identifier: MIT */
/*
 * Swizzling ranges: CPU address windows through which the miniport shows a swizzled surface as
 * linear bytes (SWZ-01). An adapter has few of them. A range therefore stays with its instance
 * after the unlock (SWZ-06) until another instance needs it or the instance leaves its memory
 * segment (SWZ-13).
 *
 * If no range is available, the content is transferred to system memory and unswizzled on the way
 * (SWZ-09). `instance->linear` says that the content in system memory, or on its way there, is
 * linear. Before the GPU uses it again, it is transferred to a memory segment and swizzled on the
 * way (SWZ-20). Content seen only through a range needs no such transfer (SWZ-21).
 */
#include "memory/memory_private.h"
#include "memory/window.h"

#include <string.h>

enum { DONOT_WAIT = 0x004, LOCK_ENTIRE = 0x010, DONOT_EVICT = 0x020 };

/* ---- the table of swizzling ranges ---- */

static bool grow_table(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t limit = memory->caps->swizzling_range_count;
	uint64_t count = vmm_min_u64(memory->range_count ? 2ull * memory->range_count : 16, limit);
	struct vmm_swizzling_range *ranges = vmm_calloc(count, sizeof(*ranges));

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!ranges)
		return false;
	if (memory->range_count)
		memcpy(ranges, memory->ranges, memory->range_count * sizeof(*ranges));
	vmm_free(memory->ranges);
	memory->ranges = ranges;
	memory->range_count = (uint32_t)count;
	return true;
}

/*
 * Finds the lowest free range id. Returns STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE if all
 * ranges are in use (SWZ-02).
 */
static vmm_status find_free(struct vmm_memory *memory, uint32_t *id)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (*id = 0; *id < memory->range_count; ++*id)
		if (!memory->ranges[*id].owner)
			return VMM_OK;
	if (*id == memory->caps->swizzling_range_count)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
	return grow_table(memory) ? VMM_OK : VMM_NO_MEMORY;
}

/*
 * An address that the CPU has locked is passed to the owner: it stays valid even after the adapter
 * stops (SWZ-24).
 */
static void detach_alternate(struct vmm_swizzling_range *range)
{
	struct vmm_instance *owner = range->owner;

	if (vmm_likely(!range->alternate))
		return;
	if (vmm_alternate_has_lock(owner) && owner->lock_data == range->private_data &&
	    !owner->alternate)
		owner->alternate = range->alternate;
	else
		vmm_alternate_free(&range->alternate);
	range->alternate = NULL;
}

static void range_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			uint32_t reason, uint32_t id, uint64_t argument)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->statistics.ranges_acquired += reason == VIDMM_RANGE_ACQUIRED;
	memory->statistics.ranges_reclaimed += reason == VIDMM_RANGE_RECLAIMED;
	memory->statistics.range_fallbacks += reason == VIDMM_RANGE_FALLBACK;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RANGE, instance->allocation->owner,
		  instance->handle, reason, id, argument, 0, 0);
}

/* Releases a range. `requester`: the instance that needs it; NULL: none does. */
static void release_for(struct vmm_memory *memory, uint32_t id,
			const struct vmm_instance *requester) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_swizzling_range *range = &memory->ranges[id];
	const DXGKARG_RELEASESWIZZLINGRANGE args = {
		.hAllocation = range->owner->allocation->kmd_allocation,
		.PrivateDriverData = range->private_data,
		.RangeId = id};

	vmm_assert_held(&memory->adapter->paging_lock);
	/* The answer changes nothing; port has reported what was wrong with it. */
	(void)!vmm_port_release_swizzling_range(memory->adapter->port, &args);
	detach_alternate(range);
	vmm_window_release(memory, range);
	range_event(memory, range->owner, requester ? VIDMM_RANGE_RECLAIMED : VIDMM_RANGE_RELEASED,
		    id, requester ? requester->handle : 0);
	range->owner->range_count--;
	range->owner = NULL;
}

static void release(struct vmm_memory *memory, uint32_t id) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	release_for(memory, id, NULL);
}

void vmm_swizzle_release_all(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t id = 0; instance->range_count; id++)
		if (memory->ranges[id].owner == instance)
			release(memory, id);
}

void vmm_swizzle_release_in_place(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_instance_is_swizzled(instance) || vmm_locks(instance))
		return;
	for (uint32_t id = 0; id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance && !memory->ranges[id].changed)
			release(memory, id);
}

/*
 * Releases the least recently used range of another instance that the CPU has not locked (SWZ-08,
 * The requester's own ranges stay: if it cannot get all the ranges it needs, all of it is
 * evicted (SWZ-12).
 */
static bool reclaim_one(struct vmm_memory *memory, const struct vmm_instance *requester)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t oldest = memory->range_count;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t id = 0; id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];

		if (!range->owner || range->owner == requester || vmm_locks(range->owner))
			continue;
		if (oldest == memory->range_count ||
		    range->last_use < memory->ranges[oldest].last_use)
			oldest = id;
	}
	if (oldest == memory->range_count)
		return false;
	release_for(memory, oldest, requester);
	return true;
}

/*
 * Asks the miniport for a range. Calls are serialized by the paging lock (SWZ-28). For an alternate
 * address the miniport may answer with another address and size; it must if the segment is not
 * CPU-visible (SWZ-24).
 */
static vmm_status acquire(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t private_data, bool may_change, uint32_t id)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_port_segment *segment =
		vmm_memory_segment(memory, instance->segment)->port;
	DXGKARG_ACQUIRESWIZZLINGRANGE args = {
		.hAllocation = instance->allocation->kmd_allocation,
		.PrivateDriverData = private_data, /* LOCK-38 */
		.RangeId = id,
		.SegmentId = instance->segment,
		.RangeSize = instance->allocation->size_bytes,
	};
	uint64_t asked = instance->offset;

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * Without a CPU address the base is 0, so that the miniport gets the offset in the segment.
	 */
	if (segment->flags.CpuVisible)
		asked += segment->cpu_base.value;
	args.CPUTranslatedAddress.QuadPart = (LONGLONG)asked;
	vmm_status status =
		vmm_port_acquire_swizzling_range(memory->adapter->port, &args, may_change);
	if (!vmm_ok(status)) {
		range_event(memory, instance, VIDMM_RANGE_REFUSED, id, (uint32_t)status);
		return status;
	}
	range_event(memory, instance, VIDMM_RANGE_ACQUIRED, id, 0);
	memory->ranges[id] = (struct vmm_swizzling_range){
		.owner = instance,
		.private_data = private_data,
		.physical = (uint64_t)args.CPUTranslatedAddress.QuadPart,
		.size_bytes = args.RangeSize,
		.changed = args.RangeSize != instance->allocation->size_bytes ||
			   (uint64_t)args.CPUTranslatedAddress.QuadPart != asked,
	};
	instance->range_count++;
	if (!may_change || vmm_alternate_range_is_valid(memory, instance, &args))
		return VMM_OK;
	memory->ranges[id].changed = false; /* no valid alternate address */
	release(memory, id);
	return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

struct vmm_swizzling_range *vmm_swizzle_find(struct vmm_memory *memory,
					     const struct vmm_instance *instance,
					     uint32_t private_data)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance &&
		    memory->ranges[id].private_data == private_data)
			return &memory->ranges[id];
	return NULL;
}

/*
 * Finds or acquires the range for a value of PrivateDriverData; each value is acquired once
 * (SWZ-06, SWZ-07).
 */
static vmm_status take_range(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint32_t private_data, bool may_change)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, private_data);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(range && range->changed && !may_change)) {
		/* An alternate range does not serve an ordinary lock (SWZ-03). */
		release(memory, (uint32_t)(range - memory->ranges));
		range = NULL;
	}
	while (!range) {
		uint32_t id;
		vmm_status status = find_free(memory, &id);

		if (vmm_ok(status))
			status = acquire(memory, instance, private_data, may_change, id);
		if (vmm_ok(status))
			range = &memory->ranges[id];
		else if (status != STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE ||
			 !reclaim_one(memory, instance))
			return status;
	}
	range->last_use = ++memory->use_counter;
	return VMM_OK;
}

/*
 * Takes a range and maps its alternate address. Releases a newly acquired range if mapping fails.
 * Returns VMM_PENDING if the GPU must finish first.
 */
static vmm_status take_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint32_t private_data) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t had = instance->range_count;
	vmm_status status = take_range(memory, instance, private_data, true);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, private_data);

	status = vmm_alternate_map_range(memory, range);
	if (!vmm_ok(status) && instance->range_count > had)
		release(memory, (uint32_t)(range - memory->ranges));
	return status;
}

void vmm_swizzle_finish(struct vmm_memory *memory)
{
	for (uint32_t id = 0; id < memory->range_count; id++)
		vmm_assert(!memory->ranges[id].owner);
	vmm_free(memory->ranges);
}

void vmm_swizzle_check(const struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(memory->range_count <= memory->caps->swizzling_range_count);
	for (uint32_t id = 0; id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];
		uint32_t same = 0;

		if (!range->owner)
			continue;
		vmm_assert(range->owner->range_count && range->owner->segment);
		/*
		 * A segment that is not CPU-visible is seen only through an address that the
		 * miniport chose.
		 */
		vmm_assert(memory->segment[range->owner->segment - 1].cpu_memory || range->changed);
		vmm_assert(range->size_bytes >= range->owner->allocation->size_bytes);
		vmm_assert(range->last_use <= memory->use_counter);
		for (uint32_t other = 0; other < memory->range_count; other++)
			same += memory->ranges[other].owner == range->owner &&
				memory->ranges[other].private_data == range->private_data;
		vmm_assert(same == 1);
	}
}

/* ---- a lock with AcquireAperture ---- */

uint32_t vmm_swizzle_memory_set(const struct vmm_allocation *allocation)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t set = 0;

	vmm_assert_held(&allocation->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (!memory->segment[i].aperture)
			set |= (allocation->read_set | allocation->write_set) & 1u << i;
	return set;
}

static NTSTATUS refuse_aperture(struct vmm_aperture_lock *lock, const char *rule, NTSTATUS status,
				const char *why)
{
	lock->rule = rule;
	lock->why = why;
	return status;
}

static bool wants_alternate(const struct vmm_aperture_lock *lock)
{
	return vmm_unlikely(lock->request->flags & VMM_LOCK_USE_ALTERNATE_VA);
}

/* Waits for the GPU unless DonotWait is set (LOCK-08). Paging is waited for in either case. */
static NTSTATUS wait_for_gpu(const struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	if (!lock->may_wait && lock->timeline != memory->adapter->paging_timeline)
		return STATUS_GRAPHICS_ALLOCATION_BUSY;
	lock->wait = true;
	return STATUS_SUCCESS;
}

/* Without a range, evicts the instance, or copies out the listed pages (SWZ-09, LOCK-21). */
static NTSTATUS move_out_without_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = lock->instance;
	uint32_t flags = lock->request->flags;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (flags & DONOT_EVICT)
		/* LOCK-40 */
		return refuse_aperture(lock, "SWZ-10",
				       STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
				       "no swizzling range is available, and DonotEvict is set");
	if (!(flags & LOCK_ENTIRE) && !lock->request->page_count)
		return refuse_aperture(
			lock, "LOCK-19", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			"no swizzling range is available, and neither LockEntire nor a page "
			"list says what to copy");
	/* PAG-18, PRS-06 */
	if (instance->allocation->pinned || vmm_allocation_is_displayed(instance->allocation))
		return refuse_aperture(
			lock, "SWZ-11", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"no swizzling range is available, and the allocation is pinned");
	if (instance->place == VMM_PLACEMENT_APERTURE && vmm_instance_is_swizzled(instance))
		return refuse_aperture(
			lock, "SWZ-09", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			"no swizzling range is available, and no memory segment from which "
			"it could be unswizzled");
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence))
		return wait_for_gpu(memory, lock);
	/* If eviction uses an aperture (PAG-17), the whole instance is evicted. */
	if (lock->request->page_count && instance->place == VMM_PLACEMENT_MEMORY &&
	    !instance->allocation->eviction_set && vmm_link_copies(instance->allocation) == 1)
		return vmm_partial_take(memory, instance, lock->request);
	if (vmm_eviction_loses_content(memory, instance))
		return refuse_aperture(
			lock, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			"no swizzling range is available, and pinned allocations in its "
			"eviction apertures leave too little space to evict it");
	instance->linear = vmm_instance_is_swizzled(instance);
	/* AcquireAperture is also valid for allocations that are not Swizzled. */
	vmm_status status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_OK)
		return STATUS_SUCCESS;
	instance->linear = false;
	if (status != VMM_PENDING)
		return status;
	vmm_eviction_blocker(memory, instance, &lock->timeline, &lock->sequence); /* PAG-17 */
	return wait_for_gpu(memory, lock);
}

static NTSTATUS lock_without_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = move_out_without_range(memory, lock);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (NT_SUCCESS(status) && !lock->wait)
		range_event(memory, lock->instance, VIDMM_RANGE_FALLBACK, 0, 0);
	return status;
}

static vmm_status page_into_best_segment(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t all = vmm_swizzle_memory_set(allocation), visible = 0;
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!all)
		/* It has no memory segment. */
		return vmm_residency_bring_in(memory, instance,
					      allocation->read_set | allocation->write_set);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].cpu_memory)
			visible |= all & 1u << i;
	if (visible)
		status = vmm_residency_bring_in(memory, instance, visible);
	/*
	 * From a segment that is not CPU-visible the content can at least be unswizzled on
	 * eviction.
	 */
	if (status == VMM_NO_VIDEO_MEMORY && all != visible)
		status = vmm_residency_bring_in(memory, instance, all & ~visible);
	return status;
}

/* Only content in a memory segment can be seen through a range (SWZ-04). */
static NTSTATUS page_in(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = lock->instance;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * An aperture instance may be in use; any other may still be used by the paging that
	 * evicted it (PAG-21).
	 */
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence))
		return wait_for_gpu(memory, lock);
	if (instance->place == VMM_PLACEMENT_APERTURE) {
		status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_LOCK);
		if (status != VMM_OK)
			return status;
	}
	/* A new instance has backing pages from its creation (REN-04). */
	if (instance->place == VMM_PLACEMENT_FRESH)
		vmm_backing_destroy(memory, &instance->backing);
	lock->progress_seen = atomic_load(&memory->adapter->progress);
	status = page_into_best_segment(memory, instance);
	if (status == VMM_PENDING) {
		lock->wait = lock->wait_for_progress = lock->may_wait;
		return lock->may_wait ? STATUS_SUCCESS : STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	if (status != VMM_NO_VIDEO_MEMORY)
		return status;
	return vmm_refuse_reason(
		memory->adapter->observe, STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
		instance->allocation->owner, instance->handle,
		"SWZ-04: lock of 0x%08x with AcquireAperture: no memory segment of its sets "
		"(read 0x%x, write 0x%x) has free space for its %llu bytes",
		instance->handle, instance->allocation->read_set, instance->allocation->write_set,
		(unsigned long long)instance->allocation->size_bytes);
}

/*
 * After a failed lock, restores the previous placement if possible. The content is safe in either
 * case.
 */
static void restore_placement(struct vmm_memory *memory, struct vmm_instance *instance,
			      enum vmm_placement place, uint32_t segment)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	bool resident = instance->place == VMM_PLACEMENT_MEMORY ||
			instance->place == VMM_PLACEMENT_APERTURE;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (place == VMM_PLACEMENT_FRESH || place == VMM_PLACEMENT_LOST) {
		if (resident)
			vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
		instance->place = (uint8_t)place;
		return;
	}
	if (resident) {
		if (!vmm_instance_unused(instance) || vmm_eviction_loses_content(memory, instance))
			return;
		if (vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_LOCK) != VMM_OK)
			return;
	}
	if (place == VMM_PLACEMENT_APERTURE)
		(void)!vmm_residency_bring_in(memory, instance, 1u << (segment - 1));
}

static bool is_range_refusal(vmm_status status)
{
	return status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE ||
	       status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

/*
 * Maps the alternate address. For an out-of-process client window.c copies the shown content into a
 * client object, so the GPU must not write to it meanwhile.
 */
static NTSTATUS show_alternate(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = take_alternate(memory, lock->instance, lock->request->private_data);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status != VMM_PENDING)
		return status;
	vmm_instance_busy(lock->instance, VMM_USE_WRITE, &lock->timeline, &lock->sequence);
	return wait_for_gpu(memory, lock);
}

/*
 * Shows an instance in a segment through a range. It is a memory segment, or an aperture for which
 * the miniport may return an alternate address. (SWZ-21)
 */
static NTSTATUS show_through_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = lock->instance;
	uint32_t private_data = lock->request->private_data;
	vmm_status status = STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (wants_alternate(lock))
		status = show_alternate(memory, lock);
	/* A range shows the copy of the lead adapter only. */
	else if (vmm_memory_segment(memory, instance->segment)->cpu_memory &&
		 vmm_link_copies(instance->allocation) == 1)
		status = take_range(memory, instance, private_data, false);
	return is_range_refusal(status) ? lock_without_range(memory, lock) : status;
}

/* Content in an aperture may be shown at its placement through an alternate address (SWZ-24). */
static NTSTATUS show_in_aperture(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = lock->instance;
	NTSTATUS status = show_alternate(memory, lock);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!is_range_refusal(status))
		return status;
	if (instance->allocation->pinned || !vmm_swizzle_memory_set(instance->allocation))
		return lock_without_range(memory, lock);
	status = page_in(memory, lock);
	return NT_SUCCESS(status) && !lock->wait ? show_through_range(memory, lock) : status;
}

/*
 * Is the CPU's image linear already (SWZ-05)? Outside a segment only Swizzled allocations keep the
 * swizzled form (SWZ-22).
 */
static bool is_linear_image(const struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_instance *instance = lock->instance;

	if (instance->retained)
		return true;
	if (vmm_unlikely(instance->partial != NULL)) /* left by a lock that failed or waits */
		return vmm_partial_covers(instance, lock->request);
	if (instance->place != VMM_PLACEMENT_SYSTEM)
		return false;
	if (vmm_alternate_is_resized(instance))
		return wants_alternate(lock) &&
		       instance->alternate->private_data == lock->request->private_data;
	return instance->linear || !vmm_instance_is_swizzled(instance);
}

/* If this lock has no page list, pages that an earlier lock moved out return first. */
static NTSTATUS write_back_partial(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_partial_write_back(memory, lock->instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status != VMM_PENDING)
		return status;
	vmm_instance_busy(lock->instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence);
	return wait_for_gpu(memory, lock);
}

NTSTATUS vmm_swizzle_lock(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	enum vmm_placement place = (enum vmm_placement)instance->place;
	uint32_t segment = instance->segment;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (is_linear_image(lock))
		return STATUS_SUCCESS;
	lock->may_wait |= !(lock->request->flags & DONOT_WAIT);
	if (vmm_unlikely(instance->partial != NULL)) {
		if (lock->request->page_count)
			return lock_without_range(memory, lock);
		status = write_back_partial(memory, lock);
	}
	if (!NT_SUCCESS(status) || lock->wait)
		return status;
	if (place == VMM_PLACEMENT_APERTURE && wants_alternate(lock)) {
		status = show_in_aperture(memory, lock);
	} else if (place == VMM_PLACEMENT_APERTURE && instance->allocation->pinned) {
		return lock_without_range(memory, lock); /* it cannot move to a memory segment */
	} else {
		if (place != VMM_PLACEMENT_MEMORY)
			status = page_in(memory, lock);
		if (NT_SUCCESS(status) && !lock->wait)
			status = show_through_range(memory, lock);
	}
	if (!NT_SUCCESS(status) && place != VMM_PLACEMENT_MEMORY && instance->place != place)
		restore_placement(memory, instance, place, segment);
	return status;
}

NTSTATUS vmm_swizzle_restore(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	lock->may_wait |= !(lock->request->flags & DONOT_WAIT);
	if (vmm_unlikely(lock->instance->partial != NULL))
		return write_back_partial(memory, lock);
	if (lock->instance->place != VMM_PLACEMENT_SYSTEM ||
	    !vmm_alternate_is_resized(lock->instance))
		return STATUS_SUCCESS;
	return page_in(memory, lock);
}

vmm_status vmm_swizzle_create(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->place == VMM_PLACEMENT_FRESH)
		/* A pinned allocation is placed already. */
		status = page_into_best_segment(memory, instance);
	if (status != VMM_OK)
		return status;
	status = take_range(memory, instance, 0, true);
	if (status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED ||
	    !memory->caps->swizzling_range_count)
		return vmm_refuse_rule(
			memory->adapter->observe, VMM_INVALID_PARAMETER, "ALF-22",
			instance->allocation->owner, 0,
			"create refused: no swizzling range for a primary with UseAlternateVA of "
			"%llu bytes in segment %u (the adapter has %u ranges)",
			(unsigned long long)instance->allocation->size_bytes, instance->segment,
			memory->caps->swizzling_range_count);
	if (status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE)
		return VMM_NO_VIDEO_MEMORY;
	return status;
}
