/* SPDX-License-Identifier: MIT */
/*
 * Loss and return of power. Before a loss of power, content is evicted from the segments that will
 * not preserve it; content in other segments stays (PNP-06). No packet is prepared or with the GPU,
 * and no client is inside a device. If an allocation cannot be evicted with its content, the power
 * stays on: a power transition loses no content (PNP-05).
 */
#include "memory/image/image.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

/*
 * Does the whole allocation end at or below the end of the memory that the system preserves?
 * (SEG-23, C-09)
 */
static bool ends_in_preserved_memory(const struct vmm_segment *segment,
				     const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = vmm_footprint_bytes(segment, instance->allocation), end = 0;
	struct vmm_extent extent;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
		extent = vmm_extent_at(instance, at, size);
		end = vmm_max_u64(end, extent.offset + extent.size_bytes);
	}
	return segment->port->gpu_base + end - 1 <= segment->port->system_memory_end;
}

/* Does the segment preserve all its content? (SEG-22) */
static bool preserves_all(const struct vmm_segment *segment, enum vmm_power_loss loss)
{
	return loss == VMM_POWER_STANDBY ? segment->port->flags.PreservedDuringStandby
					 : segment->port->flags.PreservedDuringHibernate;
}

static bool is_preserved(const struct vmm_segment *segment, const struct vmm_instance *instance,
			 enum vmm_power_loss loss) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return loss == VMM_POWER_HIBERNATE &&
	       segment->port->flags.PartiallyPreservedDuringHibernate &&
	       ends_in_preserved_memory(segment, instance);
}

static struct vmm_instance *next_to_evict(struct vmm_segment *segment, uint32_t class_index,
					  enum vmm_power_loss loss)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	if (preserves_all(segment, loss))
		return NULL;
	vmm_list_for_each (link, &segment->lru[class_index]) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, lru);

		if (!is_preserved(segment, i, loss))
			return i;
	}
	return NULL;
}

static vmm_status wait_for_paging(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint64_t last = vmm_memory_flush_locked(adapter);

	vmm_assert_held(&memory->adapter->paging_lock);
	return memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_POWER);
}

static vmm_status evict(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = instance->allocation;
	uint8_t segment = instance->segment;
	uint64_t offset = instance->offset;
	struct vmm_range_extents *extents = NULL;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->extents != NULL))
		status = vmm_range_extents_copy(instance->extents, &extents);
	if (vmm_ok(status))
		status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_POWER);
	/* The GPU may use a locked instance only at its placement. (LOCK-45, LKR-09) */
	if (status == VMM_OK && (a->pinned || vmm_lock_fixes_placement(instance))) {
		a->home_segment = segment;
		a->home_offset = offset;
		a->home_extents = extents;
		extents = NULL;
		vmm_list_push_back(&memory->power_returns, &instance->lru);
	}
	vmm_free(extents);
	if (vmm_ok(status) && status != VMM_PENDING)
		return status;
	vmm_reason(memory->adapter->observe, status, a->owner, instance->handle,
		   "0x%08x (%llu bytes, %s) cannot be evicted from segment %u with its content, so "
		   "the adapter keeps its power",
		   instance->handle, (unsigned long long)a->size_bytes,
		   vmm_locks(instance) ? "locked" : "not locked", segment);
	return status == VMM_PENDING ? VMM_UNSUCCESSFUL : status;
}

static vmm_status evict_class(struct vmm_memory *memory, uint32_t class_index,
			      enum vmm_power_loss loss) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_lru_order(memory);
	for (uint32_t s = 0; s < memory->segment_count && vmm_ok(status); s++) {
		struct vmm_instance *i;

		while (vmm_ok(status) &&
		       (i = next_to_evict(&memory->segment[s], class_index, loss)) != NULL)
			status = evict(memory, i);
	}
	return status;
}

static bool unmaps_paging_buffers(struct vmm_memory *memory, enum vmm_power_loss loss)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t id = memory->caps->paging_buffer_segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	return id && !preserves_all(vmm_memory_segment(memory, id), loss);
}

vmm_status vmm_memory_power_down(struct vmm_adapter *adapter, enum vmm_power_loss loss)
{
	struct vmm_memory *memory = adapter->memory;
	vmm_status status = VMM_OK;

	vmm_paging_lock(adapter);
	/*
	 * Pinned allocations (PAG-18) are evicted first, so that they do not block the eviction
	 * apertures (PAG-20).
	 */
	for (uint32_t c = VMM_CLASS_COUNT; c-- > 0 && vmm_ok(status);)
		status = evict_class(memory, c, loss);
	if (vmm_ok(status))
		status = wait_for_paging(memory);
	if (vmm_ok(status) && unmaps_paging_buffers(memory, loss)) {
		status = vmm_paging_buffers_unmap(memory);
		if (vmm_ok(status))
			status = wait_for_paging(memory);
	}
	vmm_backing_collect(memory);
	vmm_paging_commit(adapter);
	return status;
}

/*
 * Returns a locked instance to its placement. CPU stores block while the content moves. (LOCK-04)
 */
static void return_under_lock(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	bool shown = !instance->retained; /* else the CPU uses the retained system copy (PAG-14) */

	if (shown && !vmm_ok(vmm_os_view_freeze(&instance->view)))
		return;
	vmm_status status = vmm_residency_pin_again(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status == VMM_OK)
		status = wait_for_paging(memory);
	if (!shown)
		return;
	if (!vmm_ok(status)) {
		vmm_os_view_thaw(&instance->view);
		return;
	}
	/* The pages that the CPU saw are not the content any more. Another attempt costs little. */
	if (!vmm_ok(vmm_view_map(memory, instance)) && !vmm_ok(vmm_view_map(memory, instance)))
		vmm_view_lose(instance, &instance->view);
}

/*
 * Returns instances to their placement. An instance that the CPU has locked is not moved into a
 * segment (LKR-08) unless returns_under_lock says so; it is paged in when the GPU uses it. Only a
 * removed adapter makes the calls fail, and it needs no placements.
 */
static void return_all(struct vmm_memory *memory) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	while (!vmm_list_empty(&memory->power_returns)) {
		struct vmm_instance *i =
			vmm_container_of(memory->power_returns.next, struct vmm_instance, lru);

		vmm_list_remove(&i->lru);
		if (!vmm_locks(i))
			(void)!vmm_ok(vmm_residency_pin_again(memory, i));
		else if (vmm_lock_fixes_placement(i))
			return_under_lock(memory, i);
		vmm_free(i->allocation->home_extents); /* NULL if it has returned */
		i->allocation->home_extents = NULL;
	}
}

void vmm_memory_power_up(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_paging_lock(adapter);
	if (memory->powering_down)
		(void)!vmm_ok(vmm_paging_buffers_remap(memory));
	vmm_va_rewrite(memory);
	return_all(memory);
	vmm_paging_commit(adapter);
}
