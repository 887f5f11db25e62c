/* SPDX-License-Identifier: MIT */
/*
 * The adapter's reset, as far as memory is concerned (PAG-27, TDR-11). What was in a memory segment is lost; what an aperture
 * mapped, and what is in system memory, is not, unless a paging command that the GPU has not executed was to write it.
 * What was pinned (Overlay, Capture) has lost its place with the rest, and is from now on like any other.
 * A pointer that the CPU holds stays good: it shows system memory from now on, empty where the content was in video memory.
 */
#include "memory/memory_private.h"
#include "memory/va_private.h"
#include "sync/sync.h"

typedef void visit(struct vmm_memory *memory, struct vmm_instance *instance);

static void for_each_resident(struct vmm_memory *memory, bool aperture, visit *fn)
{
	vmm_recency_settle(memory);
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

/* Was a paging command to write what the CPU or the next page-in would find there? */
static bool is_moving(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	uint32_t t = memory->adapter->paging_timeline;

	return !vmm_timeline_done(
		memory->adapter, t,
		atomic_load_explicit(&instance->written[t], memory_order_relaxed));
}

/* From 2.0 on the store is as good as the segment if nobody has written there (PRI-10). */
static bool has_good_store(const struct vmm_memory *memory, const struct vmm_instance *instance)
{
	return memory->caps->wddm2 && !instance->kept && instance->not_written &&
	       instance->backing.address && !is_moving(memory, instance);
}

/* Pages that read as zero, in the place of the segment's. */
static vmm_status show_empty(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t size = vmm_store_bytes(instance->allocation), offset;
	vmm_status status = vmm_residency_give_backing(memory, instance);

	if (!vmm_ok(status))
		return status;
	const struct vmm_os_memory *pages = vmm_backing_memory(memory, &instance->backing, &offset);
	return vmm_os_view_map(&instance->view, 0, pages, offset, size);
}

/* TDR-06: a store of the CPU's finds system memory, or nothing. */
static void hide(struct vmm_memory *memory, struct vmm_instance *instance)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_status status = VMM_OK;

	vmm_gate_shut(instance);
	if (instance->kept)
		return;
	/* From 2.0 on there is a store, whose content is of before. */
	if (memory->caps->wddm2 && !has_good_store(memory, instance)) {
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		instance->not_written = false;
	}
	if (vmm_unlikely(vmm_alternate_is_locked(instance)))
		status = vmm_alternate_abandon(memory, instance);
	if (vmm_ok(status) && !instance->view_current)
		return;
	if (vmm_ok(status) && vmm_locks(instance)) {
		status = show_empty(memory, instance);
		if (vmm_ok(status))
			return;
	}
	if (vmm_locks(instance))
		vmm_reason(
			memory->adapter->observe, VMM_NO_MEMORY, a->owner, instance->handle,
			"TDR-11: no system memory for the %llu bytes that 0x%08x shows to the CPU while its adapter is reset: "
			"the pointer is dead",
			(unsigned long long)a->size_bytes, instance->handle);
	vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}

void vmm_memory_hide_locked(struct vmm_adapter *adapter)
{
	for_each_resident(adapter->memory, false, hide);
}

static void lose(struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;

	vmm_gate_shut(instance);
	if (!vmm_alternate_is_special(instance))
		instance->linear = false;
	if (a->offer) {
		instance->discarded = true; /* what the next reclaim will say of it */
		return;
	}
	a->content_lost = a->reset_lost = true;
	vmm_allocation_mark(a, VMM_MARK_CONTENT_LOST, true);
}

static void leave_memory(struct vmm_memory *memory, struct vmm_instance *instance)
{
	bool survives = has_good_store(memory, instance) ||
			(instance->kept && !instance->gpu_wrote && !is_moving(memory, instance));
	bool backed = survives || instance->kept || instance->view_current ||
		      vmm_alternate_is_special(instance) ||
		      (instance->partial && vmm_locks(instance));

	if (vmm_unlikely(instance->partial != NULL))
		vmm_partial_drop(memory, instance);
	vmm_swizzle_release(memory, instance);
	(void)!vmm_ok(vmm_paging_report_lost(memory, instance));
	instance->gpu_wrote = false;
	instance->handover = false;
	instance->cache = VMM_CACHE_CLEAN;
	vmm_residency_reset(memory, instance, backed ? VMM_PLACE_SYSTEM : VMM_PLACE_LOST);
	instance->allocation->pinned = false;
	vmm_resident_hold_out(instance);
	if (!survives)
		lose(instance);
}

static void leave_aperture(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_swizzle_release(memory, instance);
	(void)!vmm_ok(vmm_paging_unmap(memory, instance));
	vmm_residency_reset(memory, instance, VMM_PLACE_SYSTEM);
	instance->allocation->pinned = false;
}

/* On its way out of a segment, or into one by way of system memory, and never got there. */
static void lose_what_was_moving(struct vmm_memory *memory)
{
	struct vmm_list *at, *link;

	vmm_list_for_each (at, &memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(at, struct vmm_allocation, all);

		vmm_list_for_each (link, &a->instances) {
			struct vmm_instance *i =
				vmm_container_of(link, struct vmm_instance, sibling);

			if (i->place == VMM_PLACE_SYSTEM && is_moving(memory, i))
				lose(i);
		}
	}
}

void vmm_memory_reset_locked(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_timeline *timeline = &adapter->timeline[adapter->paging_timeline];

	memory->resetting = true;
	for_each_resident(memory, false, leave_memory);
	for_each_resident(memory, true, leave_aperture);
	lose_what_was_moving(memory);
	vmm_paging_forget(memory);
	/* Its number may have been noted already: it counts as given out, and completes with the rest (TDR-09). */
	if (memory->pending)
		atomic_fetch_add(&timeline->queued, 1);
	memory->pending = memory->resetting = false;
}

void vmm_memory_devices_lost_locked(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!vmm_device_lost(device))
			continue;
		vmm_sync_lose_owners(device);
		if (!adapter->wddm2) {
			vmm_device_disturb(device); /* KMX-23 */
			continue;
		}
		vmm_paging_queues_lose(device);
		vmm_sync_lose_device(device);
		vmm_resident_lose(device);
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
}

void vmm_memory_restart_locked(struct vmm_adapter *adapter)
{
	vmm_backing_collect(adapter->memory);
	/* With an empty aperture there is room; without it the buffer is used from where it is, as before its first map. */
	(void)!vmm_ok(vmm_paging_map_current(adapter->memory));
	vmm_va_rewrite(adapter->memory);
}
