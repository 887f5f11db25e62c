/* SPDX-License-Identifier: MIT */
/*
 * Swizzling ranges: windows of the CPU's address space through which the miniport shows a swizzled surface as linear bytes
 * (SWZ-01). There are few of them in an adapter, so a range stays with its instance after the unlock (SWZ-06) until
 * somebody else needs it or the instance leaves its memory segment (SWZ-13).
 *
 * Where none can be had, the content goes to system memory and is unswizzled on the way (SWZ-09); `linear` of the instance
 * says that what is, or is on its way, there has that form. Before the GPU uses it again it goes back into a memory
 * segment and is swizzled on the way (SWZ-20). What was only seen through a range needs nothing of the kind (SWZ-21).
 */
#include "memory/memory_private.h"
#include "memory/window.h"

#include <string.h>

enum { DONOT_WAIT = 0x004, LOCK_ENTIRE = 0x010, DONOT_EVICT = 0x020 };

/* ---- the table of ranges ---- */

static bool grow(struct vmm_memory *memory)
{
	uint32_t limit = memory->caps->swizzling_range_count;
	uint64_t count = vmm_min_u64(memory->range_count ? 2ull * memory->range_count : 16, limit);
	struct vmm_swizzling_range *ranges = vmm_calloc(count, sizeof(*ranges));

	if (!ranges)
		return false;
	if (memory->range_count)
		memcpy(ranges, memory->ranges, memory->range_count * sizeof(*ranges));
	vmm_free(memory->ranges);
	memory->ranges = ranges;
	memory->range_count = (uint32_t)count;
	return true;
}

/* The lowest that is free. STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE: none (SWZ-02). */
static vmm_status find_free(struct vmm_memory *memory, uint32_t *id)
{
	for (*id = 0; *id < memory->range_count; ++*id)
		if (!memory->ranges[*id].owner)
			return VMM_OK;
	if (*id == memory->caps->swizzling_range_count)
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
	return grow(memory) ? VMM_OK : VMM_NO_MEMORY;
}

/* SWZ-24: an address that the CPU has locked outlives even an adapter that stops. */
static void forget_alternate(struct vmm_swizzling_range *range)
{
	struct vmm_instance *owner = range->owner;

	if (vmm_likely(!range->alternate))
		return;
	if (vmm_alternate_is_locked(owner) && owner->lock_data == range->private_data &&
	    !owner->alternate)
		owner->alternate = range->alternate;
	else
		vmm_alternate_free(&range->alternate);
	range->alternate = NULL;
}

static void range_event(struct vmm_memory *memory, const struct vmm_instance *instance,
			uint32_t reason, uint32_t id, uint64_t argument)
{
	memory->figures.ranges_acquired += reason == VIDMM_RANGE_ACQUIRED;
	memory->figures.ranges_reclaimed += reason == VIDMM_RANGE_RECLAIMED;
	memory->figures.range_fallbacks += reason == VIDMM_RANGE_FALLBACK;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RANGE, instance->allocation->owner,
		  instance->handle, reason, id, argument, 0, 0);
}

/* for_whom NULL: for nobody else's sake. */
static void release_for(struct vmm_memory *memory, uint32_t id, const struct vmm_instance *for_whom)
{
	struct vmm_swizzling_range *range = &memory->ranges[id];
	const DXGKARG_RELEASESWIZZLINGRANGE args = {
		.hAllocation = range->owner->allocation->kmd_allocation,
		.PrivateDriverData = range->private_data,
		.RangeId = id};

	/* What it answers changes nothing: port has said what was wrong with it. */
	(void)!vmm_port_release_swizzling_range(memory->adapter->port, &args);
	forget_alternate(range);
	vmm_window_leave(memory, range);
	range_event(memory, range->owner, for_whom ? VIDMM_RANGE_RECLAIMED : VIDMM_RANGE_RELEASED,
		    id, for_whom ? for_whom->handle : 0);
	range->owner->range_count--;
	range->owner = NULL;
}

static void release(struct vmm_memory *memory, uint32_t id)
{
	release_for(memory, id, NULL);
}

void vmm_swizzle_release_all(struct vmm_memory *memory, struct vmm_instance *instance)
{
	for (uint32_t id = 0; instance->range_count; id++)
		if (memory->ranges[id].owner == instance)
			release(memory, id);
}

void vmm_swizzle_release_in_place(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (!vmm_instance_is_swizzled(instance) || vmm_locks(instance))
		return;
	for (uint32_t id = 0; id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance && !memory->ranges[id].changed)
			release(memory, id);
}

/*
 * SWZ-08, Q-13: the range that was used least recently by another instance which the CPU has not locked. Those of the
 * instance itself stay: all of it is evicted where not all its ranges can be had (SWZ-12).
 */
static bool reclaim_one(struct vmm_memory *memory, const struct vmm_instance *for_whom)
{
	uint32_t oldest = memory->range_count;

	for (uint32_t id = 0; id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];

		if (!range->owner || range->owner == for_whom || vmm_locks(range->owner))
			continue;
		if (oldest == memory->range_count ||
		    range->last_use < memory->ranges[oldest].last_use)
			oldest = id;
	}
	if (oldest == memory->range_count)
		return false;
	release_for(memory, oldest, for_whom);
	return true;
}

/*
 * One after the other, under the paging lock (SWZ-28). SWZ-24: for an alternate address the miniport may answer with other figures, and must where
 * the CPU sees nothing.
 */
static vmm_status acquire(struct vmm_memory *memory, struct vmm_instance *instance,
			  uint32_t private_data, bool may_change, uint32_t id)
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

	/* A segment without a CPU address has the base 0, so that the miniport learns where in it the allocation is. */
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
	memory->ranges[id].changed = false; /* it leads nowhere */
	release(memory, id);
	return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

struct vmm_swizzling_range *vmm_swizzle_find(struct vmm_memory *memory,
					     const struct vmm_instance *instance,
					     uint32_t private_data)
{
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance &&
		    memory->ranges[id].private_data == private_data)
			return &memory->ranges[id];
	return NULL;
}

/* SWZ-06, SWZ-07: one for each value of PrivateDriverData, asked for once. */
static vmm_status take_range(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint32_t private_data, bool may_change)
{
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, private_data);

	if (vmm_unlikely(range && range->changed && !may_change)) { /* SWZ-03 */
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

/* With an address for it. A range that was taken for nothing is given back; VMM_PENDING: it is not for nothing. */
static vmm_status take_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				 uint32_t private_data)
{
	uint32_t had = instance->range_count;
	vmm_status status = take_range(memory, instance, private_data, true);

	if (!vmm_ok(status))
		return status;
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, private_data);

	status = vmm_alternate_show_range(memory, range);
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
	vmm_assert(memory->range_count <= memory->caps->swizzling_range_count);
	for (uint32_t id = 0; id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];
		uint32_t same = 0;

		if (!range->owner)
			continue;
		vmm_assert(range->owner->range_count && range->owner->segment);
		/* What the CPU does not see is seen through what the miniport chose. */
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

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (!memory->segment[i].aperture)
			set |= (allocation->read_set | allocation->write_set) & 1u << i;
	return set;
}

static NTSTATUS refuse(struct vmm_aperture_lock *lock, const char *rule, NTSTATUS status,
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

/* LOCK-08; but paging is waited for whatever the flags say. */
static NTSTATUS wait_for_gpu(const struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	if (!lock->may_wait && lock->timeline != memory->adapter->paging_timeline)
		return STATUS_GRAPHICS_ALLOCATION_BUSY;
	lock->wait = true;
	return STATUS_SUCCESS;
}

/* SWZ-09: all of it leaves, or a copy of the pages that were listed (LOCK-21). */
static NTSTATUS leave_for_lack_of_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	uint32_t flags = lock->request->flags;

	if (flags & DONOT_EVICT) /* LOCK-40 */
		return refuse(lock, "SWZ-10", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			      "no swizzling range can be had, and DonotEvict is set");
	if (!(flags & LOCK_ENTIRE) && !lock->request->page_count)
		return refuse(lock, "LOCK-19", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			      "no swizzling range can be had, and neither LockEntire nor a page "
			      "list says what to copy");
	if (instance->allocation->pinned ||
	    vmm_allocation_is_shown(instance->allocation)) /* PAG-18, PRS-06 */
		return refuse(lock, "SWZ-11", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			      "no swizzling range can be had, and it is pinned");
	if (instance->place == VMM_PLACE_APERTURE && vmm_instance_is_swizzled(instance))
		return refuse(lock, "SWZ-09", STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
			      "no swizzling range can be had, and no memory segment in which it "
			      "could be unswizzled");
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence))
		return wait_for_gpu(memory, lock);
	/* Where the way out leads through an aperture (PAG-17), it is taken as a whole. */
	if (lock->request->page_count && instance->place == VMM_PLACE_MEMORY &&
	    !instance->allocation->eviction_set && vmm_link_copies(instance->allocation) == 1)
		return vmm_partial_take(memory, instance, lock->request);
	if (vmm_eviction_loses_content(memory, instance))
		return refuse(lock, "PAG-20", STATUS_GRAPHICS_CANT_EVICT_PINNED_ALLOCATION,
			      "no swizzling range can be had, and what is pinned in its eviction "
			      "apertures leaves no way out");
	instance->linear = vmm_instance_is_swizzled(instance); /* others without the flag */
	vmm_status status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_LOCK);
	if (status == VMM_OK)
		return STATUS_SUCCESS;
	instance->linear = false;
	if (status != VMM_PENDING)
		return status;
	vmm_eviction_blocker(memory, instance, &lock->timeline, &lock->sequence); /* PAG-17 */
	return wait_for_gpu(memory, lock);
}

static NTSTATUS go_without_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	NTSTATUS status = leave_for_lack_of_range(memory, lock);

	if (NT_SUCCESS(status) && !lock->wait)
		range_event(memory, lock->instance, VIDMM_RANGE_FALLBACK, 0, 0);
	return status;
}

static vmm_status bring_into(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t all = vmm_swizzle_memory_set(allocation), visible = 0;
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	if (!all) /* */
		return vmm_residency_bring_in(memory, instance,
					      allocation->read_set | allocation->write_set);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].cpu_memory)
			visible |= all & 1u << i;
	if (visible)
		status = vmm_residency_bring_in(memory, instance, visible);
	/* Out of a segment that the CPU cannot see it comes unswizzled, at least. */
	if (status == VMM_NO_VIDEO_MEMORY && all != visible)
		status = vmm_residency_bring_in(memory, instance, all & ~visible);
	return status;
}

/* SWZ-04: only what is in a memory segment can be seen through a range. */
static NTSTATUS page_in(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	vmm_status status;

	/* In an aperture it may be in use; elsewhere, by the paging that took it out (PAG-21). */
	if (vmm_instance_busy(instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence))
		return wait_for_gpu(memory, lock);
	if (instance->place == VMM_PLACE_APERTURE) {
		status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_LOCK);
		if (status != VMM_OK)
			return status;
	}
	if (instance->place == VMM_PLACE_FRESH) /* a new instance comes with its pages (REN-04) */
		vmm_backing_destroy(memory, &instance->backing);
	lock->progress_seen = atomic_load(&memory->adapter->progress);
	status = bring_into(memory, instance);
	if (status == VMM_PENDING) {
		lock->wait = lock->wait_for_progress = lock->may_wait;
		return lock->may_wait ? STATUS_SUCCESS : STATUS_GRAPHICS_ALLOCATION_BUSY;
	}
	if (status != VMM_NO_VIDEO_MEMORY)
		return status;
	vmm_reason(
		memory->adapter->observe, STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE,
		instance->allocation->owner, instance->handle,
		"SWZ-04: lock of 0x%08x with AcquireAperture: no memory segment of its sets (read 0x%x, write 0x%x) "
		"has room for its %llu bytes",
		instance->handle, instance->allocation->read_set, instance->allocation->write_set,
		(unsigned long long)instance->allocation->size_bytes);
	return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE;
}

/* A lock that fails leaves it where it was, as far as that is possible; its content is safe either way. */
static void put_back(struct vmm_memory *memory, struct vmm_instance *instance, enum vmm_place place,
		     uint32_t segment)
{
	bool resident =
		instance->place == VMM_PLACE_MEMORY || instance->place == VMM_PLACE_APERTURE;

	if (place == VMM_PLACE_FRESH || place == VMM_PLACE_LOST) {
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
	if (place == VMM_PLACE_APERTURE)
		(void)!vmm_residency_bring_in(memory, instance, 1u << (segment - 1));
}

static bool is_no_range(vmm_status status)
{
	return status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE ||
	       status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
}

/* Window.c: what it shows is made the client's own, with what is there, while nobody writes to that. */
static NTSTATUS show_alternate(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	vmm_status status = take_alternate(memory, lock->instance, lock->request->private_data);

	if (status != VMM_PENDING)
		return status;
	vmm_instance_busy(lock->instance, VMM_USE_WRITE, &lock->timeline, &lock->sequence);
	return wait_for_gpu(memory, lock);
}

/* It is in a segment: of memory, unless the miniport shows an aperture at an address of its own. */
static NTSTATUS see_through_range(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	uint32_t private_data = lock->request->private_data;
	vmm_status status = STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;

	if (wants_alternate(lock))
		status = show_alternate(memory, lock);
	else if (vmm_memory_segment(memory, instance->segment)->cpu_memory &&
		 vmm_link_copies(instance->allocation) == 1) /* a range shows the lead's copy */
		status = take_range(memory, instance, private_data, false);
	return is_no_range(status) ? go_without_range(memory, lock) : status;
}

/* SWZ-24: what is in an aperture may be seen where it is. */
static NTSTATUS see_in_aperture(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	NTSTATUS status = show_alternate(memory, lock);

	if (!is_no_range(status))
		return status;
	if (instance->allocation->pinned || !vmm_swizzle_memory_set(instance->allocation))
		return go_without_range(memory, lock);
	status = page_in(memory, lock);
	return NT_SUCCESS(status) && !lock->wait ? see_through_range(memory, lock) : status;
}

/* SWZ-05. Outside its segment only what is flagged Swizzled keeps that form (SWZ-22). */
static bool is_linear_image(const struct vmm_aperture_lock *lock)
{
	const struct vmm_instance *instance = lock->instance;

	if (instance->kept)
		return true;
	if (vmm_unlikely(instance->partial != NULL)) /* of a lock that then failed or waits */
		return vmm_partial_covers(instance, lock->request);
	if (instance->place != VMM_PLACE_SYSTEM)
		return false;
	if (vmm_alternate_is_foreign(instance))
		return wants_alternate(lock) &&
		       instance->alternate->private_data == lock->request->private_data;
	return instance->linear || !vmm_instance_is_swizzled(instance);
}

/* Pages that an earlier lock had go back first, if this one names none. */
static NTSTATUS settle_partial(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	vmm_status status = vmm_partial_settle(memory, lock->instance);

	if (status != VMM_PENDING)
		return status;
	vmm_instance_busy(lock->instance, VMM_USE_ACTIVE, &lock->timeline, &lock->sequence);
	return wait_for_gpu(memory, lock);
}

NTSTATUS vmm_swizzle_lock(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	struct vmm_instance *instance = lock->instance;
	enum vmm_place place = (enum vmm_place)instance->place;
	uint32_t segment = instance->segment;
	NTSTATUS status = STATUS_SUCCESS;

	if (is_linear_image(lock))
		return STATUS_SUCCESS;
	lock->may_wait |= !(lock->request->flags & DONOT_WAIT);
	if (vmm_unlikely(instance->partial != NULL)) {
		if (lock->request->page_count)
			return go_without_range(memory, lock);
		status = settle_partial(memory, lock);
	}
	if (!NT_SUCCESS(status) || lock->wait)
		return status;
	if (place == VMM_PLACE_APERTURE && wants_alternate(lock)) {
		status = see_in_aperture(memory, lock);
	} else if (place == VMM_PLACE_APERTURE && instance->allocation->pinned) {
		return go_without_range(memory, lock); /* it cannot move to where a range is */
	} else {
		if (place != VMM_PLACE_MEMORY)
			status = page_in(memory, lock);
		if (NT_SUCCESS(status) && !lock->wait)
			status = see_through_range(memory, lock);
	}
	if (!NT_SUCCESS(status) && place != VMM_PLACE_MEMORY && instance->place != place)
		put_back(memory, instance, place, segment);
	return status;
}

NTSTATUS vmm_swizzle_restore(struct vmm_memory *memory, struct vmm_aperture_lock *lock)
{
	lock->may_wait |= !(lock->request->flags & DONOT_WAIT);
	if (vmm_unlikely(lock->instance->partial != NULL))
		return settle_partial(memory, lock);
	if (lock->instance->place != VMM_PLACE_SYSTEM || !vmm_alternate_is_foreign(lock->instance))
		return STATUS_SUCCESS;
	return page_in(memory, lock);
}

vmm_status vmm_swizzle_create(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = VMM_OK;

	if (instance->place == VMM_PLACE_FRESH) /* what is pinned has its place */
		status = bring_into(memory, instance);
	if (status != VMM_OK)
		return status;
	status = take_range(memory, instance, 0, true);
	if (status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED ||
	    !memory->caps->swizzling_range_count) {
		vmm_finding(
			memory->adapter->observe, "ALF-22", instance->allocation->owner, 0,
			"create refused: no swizzling range for a primary with UseAlternateVA of %llu bytes in segment %u, "
			"of %u ranges in all",
			(unsigned long long)instance->allocation->size_bytes, instance->segment,
			memory->caps->swizzling_range_count);
		return VMM_INVALID_PARAMETER;
	}
	if (status == STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNAVAILABLE)
		return VMM_NO_VIDEO_MEMORY;
	return status;
}
