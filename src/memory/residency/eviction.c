/* SPDX-License-Identifier: MIT */
/*
 * The eviction path: how content leaves a memory segment (PAG-17).
 *
 * With an EvictionSegmentSet the content is copied through an aperture of the set. The new backing
 * pages are mapped there, the miniport copies to that aperture range, and the pages are unmapped.
 * Paging commands run in order, so the range may be reused as soon as the commands are written.
 *
 * In three cases the content is copied directly to the backing pages (SEG-20):
 * - There is no set.
 * - The allocation is larger than every aperture of its set.
 * - The apertures that are large enough are occupied by memory that can be neither waited for nor
 *   evicted: memory of the submission itself, or DMA buffers.
 *
 * If no aperture of the set has a large enough range outside its pinned allocations, the content is
 * lost (PAG-20, PNP-09, C-38).
 */
#include "memory/image/image.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "policy/policy.h"

/*
 * Returns true if the segment of that index is an aperture of the eviction set with the capacity
 * for the allocation.
 */
static bool is_candidate(const struct vmm_memory *memory, uint32_t index,
			 const struct vmm_allocation *allocation)
{
	return (allocation->eviction_set & 1u << index) &&
	       allocation->size_bytes <= memory->segment[index].capacity_bytes;
}

/*
 * Returns the largest range in bytes that eviction may use. Pinned allocations are all in the last
 * fifth (PAG-19), so that is the part before the first of them.
 */
static uint64_t largest_passage(const struct vmm_segment *segment)
{
	uint64_t begin = segment->capacity_bytes;
	const struct vmm_list *link;

	vmm_list_for_each (link, &segment->lru[VMM_CLASS_PINNED])
		begin = vmm_min_u64(begin,
				    vmm_container_of(link, struct vmm_instance, lru)->offset);
	return begin;
}

bool vmm_eviction_is_blocked_by_pinned(const struct vmm_memory *memory,
				       const struct vmm_allocation *allocation)
{
	bool any = false;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!is_candidate(memory, i, allocation))
			continue;
		if (largest_passage(&memory->segment[i]) >= allocation->size_bytes)
			return false;
		any = true;
	}
	return any;
}

static uint64_t widest_passage(const struct vmm_memory *memory, uint32_t eviction_set)
{
	uint64_t widest = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (eviction_set & 1u << i)
			widest = vmm_max_u64(widest, largest_passage(&memory->segment[i]));
	return widest;
}

/*
 * Allocates a range in an aperture of the eviction set, in *aperture and *space. Returns
 * VMM_NO_VIDEO_MEMORY if no aperture can serve, and VMM_PENDING if one can once the GPU is done
 * with what occupies it.
 */
static vmm_status take_passage(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t preparation, struct vmm_segment **aperture,
			       struct vmm_free_space *space) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_range_request request = {.size_bytes = instance->allocation->size_bytes,
						  .owner = instance};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!is_candidate(memory, i, instance->allocation))
			continue;
		*aperture = &memory->segment[i];
		vmm_status tried =
			vmm_residency_take_space(memory, *aperture, &request, preparation, space);
		if (tried != VMM_PENDING && tried != VMM_NO_VIDEO_MEMORY)
			return tried;
		if (tried == VMM_PENDING)
			status = VMM_PENDING;
	}
	return status;
}

static vmm_status copy_out(struct vmm_memory *memory, struct vmm_instance *instance,
			   uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment *aperture = NULL;
	struct vmm_free_space space;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!instance->allocation->eviction_set))
		return vmm_paging_transfer(memory, instance, false);
	vmm_status status = take_passage(memory, instance, preparation, &aperture, &space);
	if (status == VMM_NO_VIDEO_MEMORY)
		return vmm_paging_transfer(memory, instance, false);
	if (status != VMM_OK)
		return status;
	status = vmm_paging_transfer_through(memory, instance, aperture->port->id, space.offset);
	vmm_segment_free(memory, aperture, space.node);
	return status;
}

static vmm_status transfer_out(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = copy_out(memory, instance, preparation);

	vmm_assert_held(&memory->adapter->paging_lock);
	return status == VMM_OK ? vmm_paging_discard_mirrors(memory, instance) : status;
}

/*
 * `not_written` content equals the copy in the store, so it is discarded instead of copied
 * (PRI-10). HardwareProtected content that must not be copied unencrypted does not come here unless
 * it may be discarded so (PAG-32).
 */
vmm_status vmm_eviction_to_kept_store(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint64_t preparation)
{
	bool had_one = instance->backing.address != NULL;

	vmm_assert_held(&memory->adapter->paging_lock);
	/* While it is locked, the CPU may write to it. */
	bool not_written = instance->not_written && !vmm_locks(instance);
	vmm_status status;

	if (not_written && had_one)
		return vmm_paging_discard(memory, instance);
	status = vmm_residency_ensure_backing(memory, instance);
	if (!vmm_ok(status) || not_written) {
		/* Never written to: its content is zero, as the new store's pages are. */
		return vmm_ok(status) ? vmm_paging_discard(memory, instance) : status;
	}
	status = transfer_out(memory, instance, preparation);
	if (status != VMM_OK && !had_one)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* PAG-12 */
vmm_status vmm_eviction_to_new_store(struct vmm_memory *memory, struct vmm_instance *instance,
				     uint64_t preparation)
{
	vmm_status status = vmm_link_store_create(memory, instance, false);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	status = transfer_out(memory, instance, preparation);
	if (status != VMM_OK)
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* Copies the newer content back to a retained copy, by the same path as an eviction. */
static vmm_status write_back_retained(struct vmm_memory *memory, struct vmm_instance *instance,
				      uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = transfer_out(memory, instance, preparation);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	instance->gpu_wrote = false;
	return VMM_OK;
}

static vmm_status evict_from_memory(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->retained && !instance->gpu_wrote)
		return vmm_paging_discard(memory, instance); /* PAG-13, PAG-06 */
	if (instance->retained)
		return write_back_retained(memory, instance, preparation);
	vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_MEMORY);
	return memory->model->page_out(memory, instance, preparation);
}

/*
 * The system refuses the mapping of the new store. Until now nothing has been written to it but the
 * copy, so the instance stays in the segment, where the CPU still sees it.
 */
static void stay_in_segment(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	instance->place = VMM_PLACEMENT_MEMORY;
	instance->linear = false;
	/* A client may have mapped a part of it. */
	if (!instance->view.viewer || !vmm_ok(vmm_view_map(memory, instance)))
		vmm_os_view_thaw(&instance->view);
	instance->view_current = true;
	if (!memory->model->keeps_store)
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
}

static vmm_status evict_under_lock(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_os_view_freeze(&instance->view);

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * CPU writes block while the content moves (LOCK-04, PAG-16, LKR-04). If the view cannot be
	 * write-protected, a write could be lost, so the instance stays.
	 */
	if (!vmm_ok(status))
		return status;
	/*
	 * The CPU saw linear content through a range; it sees the same in system memory (SWZ-19).
	 */
	instance->linear =
		vmm_memory_has_aperture_lock(instance) && vmm_instance_is_swizzled(instance);
	status = evict_from_memory(memory, instance, preparation);
	if (status != VMM_OK) {
		instance->linear = false;
		vmm_os_view_thaw(&instance->view);
		return status;
	}
	vmm_paging_mark_instance(memory, instance, true);
	uint64_t sequence = vmm_memory_flush_locked(adapter);
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					     VIDMM_WAIT_LOCK);
	instance->place = VMM_PLACEMENT_SYSTEM;
	instance->view_current = false;
	/* First: reads are not blocked, and the CPU loses its pages of a host aperture (SWZ-29). */
	vmm_status shown = vmm_view_map(memory, instance);
	if (!vmm_ok(shown)) {
		stay_in_segment(memory, instance);
		return shown;
	}
	vmm_residency_leave_segment(memory, instance);
	vmm_swizzle_release(memory, instance); /* until here the CPU read through the ranges */
	vmm_coherence_to_cpu(memory, instance, false);
	vmm_eviction_count(memory, instance, old_segment, reason);
	vmm_residency_event(memory, instance, reason, old_segment);
	return status;
}

/* Does the CPU see it through a swizzling range that has an alternate address? */
static bool has_lock_through_alternate(struct vmm_memory *memory,
				       const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!vmm_alternate_has_lock(instance)))
		return false;
	const struct vmm_swizzling_range *range =
		vmm_swizzle_find(memory, instance, instance->lock_data);
	return range && range->alternate;
}

/* Evicts an instance that is locked through an alternate address (LKR-07, SWZ-25). */
static vmm_status evict_alternate(struct vmm_memory *memory, struct vmm_instance *instance,
				  uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_alternate *before = instance->alternate;
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_alternate_evict(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->alternate == before) /* it is still in the segment */
		return status;
	vmm_residency_leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	vmm_coherence_to_cpu(memory, instance, false);
	vmm_eviction_count(memory, instance, old_segment, reason);
	vmm_residency_event(memory, instance, reason, old_segment);
	return status;
}

/*
 * Moves the pages that are not in system memory yet to those that are. The CPU's view does not
 * change (LOCK-21).
 */
static vmm_status evict_partial(struct vmm_memory *memory, struct vmm_instance *instance,
				uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t old_segment = instance->segment;
	vmm_status status = vmm_partial_evict(memory, instance);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->partial) /* it is still in the segment */
		return status;
	vmm_residency_leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	vmm_eviction_count(memory, instance, old_segment, reason);
	vmm_residency_event(memory, instance, reason, old_segment);
	return status;
}

/* Protected content leaves only if the segment encrypts it (PAG-32). */
static bool would_leave_unencrypted(struct vmm_memory *memory, const struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return (instance->allocation->flags & VMM_ALLOCATION_HARDWARE_PROTECTED) &&
	       !(instance->not_written && instance->backing.address) &&
	       !vmm_memory_segment(memory, instance->segment)->port->flags.EncryptedPagingSupported;
}

static vmm_status discard_protected(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	/* Neither CPU writes nor content across a power transition may be lost (PNP-05). */
	if (vmm_locks(instance) || reason == VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED;
	vmm_reason(memory->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
		   instance->allocation->owner, instance->handle,
		   "PAG-32: the content of 0x%08x is HardwareProtected and segment %u has no "
		   "EncryptedPagingSupported: it is discarded, not copied out",
		   instance->handle, instance->segment);
	vmm_eviction_count(memory, instance, instance->segment, reason);
	vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DISCARDED);
	return VMM_OK;
}

/*
 * The pinned allocations in the eviction apertures leave too little space for the transfer, so the
 * content is discarded without an operation (PAG-20, state machine 4.1). An instance that the CPU
 * has locked stays instead: CPU writes must not be lost.
 */
static vmm_status lose_content(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_locks(instance))
		return VMM_NOT_SUPPORTED;
	vmm_finding(
		memory->adapter->observe, "PAG-20", a->owner, instance->handle,
		"the content of 0x%08x (%llu bytes) is lost: pinned allocations in the apertures "
		"of its EvictionSegmentSet 0x%x leave at most %llu contiguous bytes (PNP-09)",
		instance->handle, (unsigned long long)a->size_bytes, a->eviction_set,
		(unsigned long long)widest_passage(memory, a->eviction_set));
	a->content_lost = true;
	vmm_allocation_mark(a, VMM_MARK_CONTENT_LOST, true);
	vmm_eviction_count(memory, instance, instance->segment, reason);
	vmm_residency_drop(memory, instance, reason);
	return VMM_OK;
}

/*
 * Notifies the miniport that the instance is about to leave its aperture segment. Sets *notified to
 * whether an operation was built for that: only if the miniport asked for it. (PAG-29)
 */
static vmm_status notify_leaving_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
					  bool *notified) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_part all = {.size_bytes = instance->allocation->size_bytes,
					    .segment = instance->segment,
					    .at = instance->offset};

	vmm_assert_held(&memory->adapter->paging_lock);
	*notified = vmm_notify_is_wanted(instance->allocation);
	return *notified ? vmm_paging_notify_alloc(memory, instance, &all) : VMM_OK;
}

/*
 * Evicts on behalf of `preparation`, whose own working set stays. Returns VMM_PENDING if the GPU
 * uses the eviction path.
 */
static vmm_status evict_now(struct vmm_memory *memory, struct vmm_instance *instance,
			    uint32_t reason, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t old_segment = instance->segment;
	bool notified = false;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	vmm_assert(instance->place == VMM_PLACEMENT_MEMORY ||
		   instance->place == VMM_PLACEMENT_APERTURE);
	vmm_assert(vmm_instance_unused(instance));
	if (vmm_unlikely(instance->allocation->gone)) {
		/* The allocation is being destroyed, so its content is not saved (ALF-37). */
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
		return VMM_OK;
	}
	if (vmm_unlikely(has_lock_through_alternate(memory, instance)))
		return evict_alternate(memory, instance, reason);
	if (vmm_unlikely(instance->partial != NULL))
		return evict_partial(memory, instance, reason);
	if (instance->place == VMM_PLACEMENT_MEMORY) {
		/* Only then may it have written under the CPU's lock. (LKR-09) */
		vmm_assert(memory->model->gpu_uses_locked ||
			   !(instance->retained && vmm_locks(instance) && instance->gpu_wrote));
		if (vmm_unlikely(vmm_eviction_loses_content(memory, instance)))
			return lose_content(memory, instance, reason);
		if (vmm_unlikely(would_leave_unencrypted(memory, instance)))
			return discard_protected(memory, instance, reason);
		if (vmm_locks(instance) && !instance->retained)
			return evict_under_lock(memory, instance, reason, preparation);
		vmm_swizzle_release(memory, instance);
		status = evict_from_memory(memory, instance, preparation);
		if (status == VMM_OK)
			vmm_view_unmap(instance);
	} else {
		vmm_swizzle_release(memory, instance);
		status = notify_leaving_aperture(memory, instance, &notified);
		if (vmm_ok(status))
			/* An aperture is unmapped; nothing is copied (PAG-17). */
			status = vmm_paging_unmap(memory, instance);
	}
	if (status != VMM_OK)
		return status;
	vmm_paging_mark_instance(
		memory, instance,
		notified || (instance->place == VMM_PLACEMENT_MEMORY && !instance->retained));
	vmm_retained_left_segment(instance);
	vmm_residency_leave_segment(memory, instance);
	instance->place = VMM_PLACEMENT_SYSTEM;
	vmm_eviction_count(memory, instance, old_segment, reason);
	vmm_residency_event(memory, instance, reason, old_segment);
	return VMM_OK;
}

/* Notifies the miniport before the content moves, and again if the eviction fails (PAG-25). */
vmm_status vmm_residency_evict_for(struct vmm_memory *memory, struct vmm_instance *instance,
				   uint32_t reason, uint64_t preparation)
{
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->allocation->pinned ||
			 vmm_allocation_is_displayed(instance->allocation)) &&
	    reason != VIDMM_RESIDENCY_STOP && reason != VIDMM_RESIDENCY_POWER)
		return VMM_NOT_SUPPORTED; /* PAG-18, PRS-06 */
	vmm_paging_switch_away(memory, instance);
	status = vmm_paging_notify(memory, instance, false);
	if (!vmm_ok(status))
		return status;
	status = evict_now(memory, instance, reason, preparation);
	if (status != VMM_OK && status != VMM_DEVICE_REMOVED)
		(void)!vmm_paging_notify(memory, instance, true);
	return status;
}

vmm_status vmm_residency_evict(struct vmm_memory *memory, struct vmm_instance *instance,
			       uint32_t reason)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_residency_evict_for(memory, instance, reason, VMM_NO_PREPARATION);
}

void vmm_eviction_blocker(struct vmm_memory *memory, const struct vmm_instance *instance,
			  uint32_t *timeline, uint64_t *sequence)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_lru_order(memory);
	*timeline = memory->adapter->paging_timeline;
	*sequence = 0;
	for (uint32_t s = 0; s < memory->segment_count; s++) {
		if (!is_candidate(memory, s, instance->allocation))
			continue;
		for (uint32_t c = 0; c < VMM_POLICY_CLASS_COUNT; c++) {
			struct vmm_list *link;

			vmm_list_for_each (link, &memory->segment[s].lru[c])
				if (vmm_instance_busy(
					    vmm_container_of(link, struct vmm_instance, lru),
					    VMM_USE_ACTIVE, timeline, sequence))
					return;
		}
	}
}
