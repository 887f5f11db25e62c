/* SPDX-License-Identifier: MIT */
/*
 * The table of swizzling ranges: CPU address windows through which the miniport shows a swizzled
 * surface as linear bytes (SWZ-01). An adapter has few of them. A range therefore stays with its
 * instance after the unlock (SWZ-06) until another instance needs it or the instance leaves its
 * memory segment (SWZ-13).
 */
#include "memory/image/image.h"
#include "memory/image/window.h"
#include "memory/state/state.h"

#include <string.h>

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
	memory->statistics.tallies.ranges_released +=
		reason == VIDMM_RANGE_RECLAIMED || reason == VIDMM_RANGE_RELEASED;
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
vmm_status vmm_swizzle_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t private_data, bool may_change)
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
vmm_status vmm_swizzle_take_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint32_t private_data)
{
	uint32_t had = instance->range_count;
	vmm_status status = vmm_swizzle_take(memory, instance, private_data, true);

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

void vmm_swizzle_note_fallback(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	range_event(memory, instance, VIDMM_RANGE_FALLBACK, 0, 0);
}
