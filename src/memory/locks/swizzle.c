/* SPDX-License-Identifier: MIT */
/*
 * Locks with AcquireAperture: they show the CPU a linear image of the content, through a swizzling
 * range (swizzle_range.c) if there is one.
 *
 * If no range is available, the content is transferred to system memory and unswizzled on the way
 * (SWZ-09). `instance->linear` says that the content in system memory, or on its way there, is
 * linear. Before the GPU uses it again, it is transferred to a memory segment and swizzled on the
 * way (SWZ-20). Content seen only through a range needs no such transfer (SWZ-21).
 */
#include "memory/image/image.h"
#include "memory/locks/locks.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

enum { DONOT_WAIT = 0x004, LOCK_ENTIRE = 0x010, DONOT_EVICT = 0x020 };

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
		vmm_swizzle_note_fallback(memory, lock->instance);
	return status;
}

static vmm_status page_into_best_segment(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint32_t all = vmm_allocation_memory_set(allocation), visible = 0;
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
	vmm_status status =
		vmm_swizzle_take_alternate(memory, lock->instance, lock->request->private_data);

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
		status = vmm_swizzle_take(memory, instance, private_data, false);
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
	if (instance->allocation->pinned || !vmm_allocation_memory_set(instance->allocation))
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
	status = vmm_swizzle_take(memory, instance, 0, true);
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
