/* SPDX-License-Identifier: MIT */
/*
 * Memory's part of an adapter reset (PAG-27, TDR-11).
 *
 * Content in memory segments is lost. Content in system memory, mapped into an aperture or not,
 * survives unless a paging command that the GPU has not executed was to write it. Pinned
 * allocations (Overlay, Capture) lose their placement and are no longer pinned. CPU pointers stay
 * valid: they are remapped to system memory, which reads as zero if the content was in a memory
 * segment.
 */
#include "memory/image/image.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "sync/sync.h"

typedef void instance_fn(struct vmm_memory *memory, struct vmm_instance *instance);

static void for_each_resident(struct vmm_memory *memory, bool aperture, instance_fn *fn)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_lru_order(memory);
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		if (memory->segment[s].aperture != aperture)
			continue;
		for (uint32_t c = VMM_CLASS_COUNT; c-- > 0;) {
			struct vmm_list *at, *next;

			vmm_list_for_each_safe (at, next, &memory->segment[s].lru[c])
				fn(memory, vmm_container_of(at, struct vmm_instance, lru));
		}
	}
}

/*
 * Is a paging command pending that was to write what the CPU or the next page-in would read there?
 */
static bool has_pending_paging_write(const struct vmm_memory *memory,
				     const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t t = memory->adapter->paging_timeline;

	vmm_assert_held(&memory->adapter->paging_lock);
	return !vmm_timeline_done(
		memory->adapter, t,
		atomic_load_explicit(&instance->written[t], memory_order_relaxed));
}

/*
 * From 2.0 on the backing store is as current as the segment's copy if the latter was not written
 * to (PRI-10).
 */
static bool store_is_current(const struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return memory->model->keeps_store && !instance->retained && instance->not_written &&
	       instance->backing.address && !has_pending_paging_write(memory, instance);
}

/* Maps the CPU view to zeroed system memory instead of the segment. */
static vmm_status map_zero_pages(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = vmm_store_bytes(instance->allocation), offset;
	vmm_status status = vmm_residency_ensure_backing(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	const struct vmm_os_memory *pages = vmm_backing_memory(memory, &instance->backing, &offset);
	return vmm_os_view_map(&instance->view, 0, pages, offset, size);
}

/* Detaches the CPU from the memory segment: its writes reach system memory, or fault (TDR-06). */
static void detach_cpu(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_status status = VMM_OK;

	vmm_fast_lock_disable(instance);
	if (instance->retained)
		return;
	/* The content of a kept store is older than the segment's. */
	if (memory->model->keeps_store && !store_is_current(memory, instance)) {
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		instance->not_written = false;
	}
	if (vmm_unlikely(vmm_alternate_has_lock(instance)))
		status = vmm_alternate_abandon(memory, instance);
	if (vmm_ok(status) && !instance->view_current)
		return;
	if (vmm_ok(status) && vmm_locks(instance)) {
		status = map_zero_pages(memory, instance);
		if (vmm_ok(status))
			return;
	}
	if (vmm_locks(instance))
		vmm_reason(memory->adapter->observe, VMM_NO_MEMORY, a->owner, instance->handle,
			   "TDR-11: adapter reset: no system memory for the %llu bytes of 0x%08x, "
			   "which the CPU has locked: its pointer is invalid from now on",
			   (unsigned long long)a->size_bytes, instance->handle);
	/* An instance that is locked by an alternate address only has no view to unmap. */
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}

void vmm_memory_hide_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	for_each_resident(adapter->memory, false, detach_cpu);
}

static void mark_content_lost(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	if (!vmm_alternate_is_special(instance))
		instance->linear = false;
	if (a->offer) {
		instance->discarded = true; /* reported by the next reclaim */
		return;
	}
	a->content_lost = a->reset_lost = true;
	vmm_allocation_mark(a, VMM_MARK_CONTENT_LOST, true);
}

static void reset_in_memory(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	bool survives =
		store_is_current(memory, instance) || (instance->retained && !instance->gpu_wrote &&
						       !has_pending_paging_write(memory, instance));
	bool backed = survives || instance->retained || instance->view_current ||
		      vmm_alternate_is_special(instance) ||
		      (instance->partial && vmm_locks(instance));

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_drop(memory, instance);
	vmm_swizzle_release(memory, instance);
	(void)!vmm_ok(vmm_paging_report_lost(memory, instance));
	instance->handover = false;
	instance->cache = VMM_CACHE_CLEAN;
	vmm_residency_reset(memory, instance, backed ? VMM_PLACEMENT_SYSTEM : VMM_PLACEMENT_LOST);
	instance->allocation->pinned = false;
	vmm_residency_list_hold_out(instance);
	if (!survives)
		mark_content_lost(instance);
}

static void reset_in_aperture(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_swizzle_release(memory, instance);
	(void)!vmm_ok(vmm_paging_unmap(memory, instance));
	vmm_residency_reset(memory, instance, VMM_PLACEMENT_SYSTEM);
	instance->allocation->pinned = false;
}

/* Marks content lost whose transfer between a segment and system memory never completed. */
static void lose_content_in_transfer(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *at, *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (at, &memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(at, struct vmm_allocation, all);

		vmm_list_for_each (link, &a->instances) {
			struct vmm_instance *i =
				vmm_container_of(link, struct vmm_instance, sibling);

			if (i->place == VMM_PLACEMENT_SYSTEM && has_pending_paging_write(memory, i))
				mark_content_lost(i);
		}
	}
}

void vmm_memory_reset_locked(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_timeline *timeline = &adapter->timeline[adapter->paging_timeline];

	vmm_assert_held(&adapter->paging_lock);
	memory->resetting = true;
	for_each_resident(memory, false, reset_in_memory);
	for_each_resident(memory, true, reset_in_aperture);
	lose_content_in_transfer(memory);
	vmm_paging_drop_pending(memory);
	/*
	 * The pending packet's number may be recorded already. It counts as issued and completes
	 * with the others (TDR-09).
	 */
	if (memory->pending)
		atomic_fetch_add(&timeline->queued, 1);
	memory->pending = memory->resetting = false;
}

void vmm_memory_devices_lost_locked(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_assert_held(&adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!vmm_device_lost(device))
			continue;
		vmm_sync_lose_owners(device);
		adapter->model->device_lost(device);
	}
	vmm_state_unlock(adapter);
}

void vmm_memory_restart_locked(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	vmm_backing_collect(adapter->memory);
	/*
	 * The aperture is empty, so the mapping fits. If it fails, the paging buffer is used in
	 * system memory, as before its first mapping.
	 */
	(void)!vmm_ok(vmm_paging_map_current(adapter->memory));
	vmm_va_rewrite(adapter->memory);
}
