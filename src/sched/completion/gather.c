/* SPDX-License-Identifier: MIT */
/*
 * Makes the working set of a packet resident: the buffer itself, and what its model's table calls
 * the working set (working_set.h). Here is that of WDDM 1.x: the allocations that the patch list
 * references, in list order (PAT-03, DMA-35). If all of it fits, the packet is one portion
 * (SPL-01); if not, a shorter portion is tried (SPL-02). The caller holds the paging lock.
 * VMM_PENDING: memory becomes free when the GPU completes work. VMM_NO_VIDEO_MEMORY: the set does
 * not fit.
 *
 * The rounds, from cheap to expensive:
 *
 *   nothing             everything was resident at capture and no placement has changed
 *   list order          as the patch list references the allocations
 *   largest first       if list order found only fragmented free space: evicts what is not placed
 *                       yet itself (SPL-13)
 *   anew                evicts the set itself, which may lie in the middle of the space that the
 *                       rest needs in one piece, and places it, the largest first (SPL-13)
 *   unpinned buffers    unmaps other DMA buffers from the aperture, then the rounds above. If
 *                       pinned ones remain, the packet waits for them, and moves nothing meanwhile
 *                       (Q-495)
 *   a shorter portion   as far as memory suffices (SPL-02), at least one split group (SPL-12)
 */
#include "sched/completion/completion.h"

/* DMA-23: an allocation that is listed more than once is written if one of its entries says so. */
static bool is_written(const struct vmm_dma *dma, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	if (vmm_dma_writes(dma, index) || allocation->read_set == allocation->write_set)
		return vmm_dma_writes(dma, index);
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (dma->instances[i] == dma->instances[index] && vmm_dma_writes(dma, i))
			return true;
	return false;
}

/*
 * SPL-05: makes resident, and pins, what the resource table holds at the split point of the buffer.
 */
static vmm_status gather_bound(struct vmm_adapter *adapter, struct vmm_dma *dma,
			       uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		vmm_status status = VMM_OK;

		if (!instance || !vmm_split_is_bound(dma, instance))
			continue;
		instance->required_by = preparation;
		instance->bound = preparation;
		if (vmm_locks(instance) && instance->place == VMM_PLACEMENT_MEMORY)
			instance->prepared = preparation; /* stays even if LKR-01 asks to move it */
		else
			status = vmm_memory_make_resident_locked(adapter, instance,
								 is_written(dma, i), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

/* Makes the allocations of the portion's patch locations resident, in list order (PAT-03). */
static vmm_status gather_patches(struct vmm_adapter *adapter, struct vmm_dma *dma,
				 uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->prepared == preparation)
			continue; /* PAT-09: a NULL element unbinds; nothing to bring in */
		instance->required_by = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, instance, is_written(dma, index), preparation);
		if (status != VMM_OK) {
			dma->failed_patch = p;
			return status;
		}
	}
	return VMM_OK;
}

/*
 * The portion behind a split point needs the allocations that its patch locations reference, and
 * what is bound there.
 */
static vmm_status mark_rest(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (instance)
			instance->required_by = preparation;
	}
	return gather_bound(adapter, dma, preparation);
}

static vmm_status make_resident(struct vmm_adapter *adapter, struct vmm_dma *dma,
				uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance **instances = dma->instances;

	vmm_assert_held(&adapter->paging_lock);
	if (vmm_unlikely(dma->split)) {
		vmm_status status = mark_rest(adapter, dma, preparation);
		if (status == VMM_OK)
			status = vmm_context_memory_gather(dma, preparation);
		return status == VMM_OK ? gather_patches(adapter, dma, preparation) : status;
	}
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (instances[i])
			instances[i]->required_by = preparation;
	vmm_status status = vmm_context_memory_gather(dma, preparation); /* PRE-11 */
	return status == VMM_OK ? gather_patches(adapter, dma, preparation) : status;
}

/*
 * Returns the list index of the largest allocation of the portion that is not prepared yet;
 * list_count: none.
 */
static uint32_t largest_missing(const struct vmm_dma *dma, uint64_t preparation)
{
	uint32_t largest = dma->list_count;

	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		const struct vmm_instance *instance = dma->instances[index];

		if (instance && instance->prepared != preparation &&
		    (largest == dma->list_count ||
		     instance->allocation->size_bytes >
			     dma->instances[largest]->allocation->size_bytes))
			largest = index;
	}
	return largest;
}

/*
 * SPL-13: what is already resident may fragment the free space, so that the rest does not fit. This
 * round places the largest first, and may evict what it has not placed yet itself.
 */
static vmm_status gather_largest_first(struct vmm_adapter *adapter, struct vmm_dma *dma,
				       uint64_t preparation) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t index;
	vmm_status ready = gather_bound(adapter, dma, preparation);

	vmm_assert_held(&adapter->paging_lock);
	if (ready == VMM_OK)
		ready = vmm_context_memory_gather(dma, preparation);
	if (ready != VMM_OK)
		return ready;
	while ((index = largest_missing(dma, preparation)) < dma->list_count) {
		dma->instances[index]->required_by = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, dma->instances[index], is_written(dma, index), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

static uint32_t segment_set(const struct vmm_dma *dma, uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	return is_written(dma, index) ? allocation->write_set : allocation->read_set;
}

/*
 * Returns true if the allocations that can only be placed in the segments that were full exceed the
 * capacity of those segments. Then no order of placement can succeed.
 */
static bool exceeds_segments(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t set = segment_set(dma, dma->patches[dma->failed_patch].AllocationIndex);
	uint64_t counted = ++sched->preparations, bytes = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->required_by == counted)
			continue;
		instance->required_by = counted;
		if (!(segment_set(dma, index) & ~set))
			bytes += instance->allocation->size_bytes;
	}
	return bytes > vmm_memory_capacity(sched->adapter, set);
}

VMM_COLD static bool a_place_is_in_use(struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		const struct vmm_instance *instance =
			dma->instances[dma->patches[p].AllocationIndex];

		if (instance && !vmm_split_is_bound(dma, instance) &&
		    vmm_memory_place_is_in_use(sched->adapter, instance))
			return true;
	}
	return false;
}

/*
 * SPL-13: what is resident of the set keeps its place in all other rounds. If the GPU uses a part
 * of it, nothing is evicted yet: the end of that paging would be progress, and each progress is
 * another attempt, which pages in again what this one evicted.
 */
VMM_COLD static vmm_status gather_anew(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t preparation = ++sched->preparations;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (a_place_is_in_use(sched, dma))
		return VMM_PENDING;
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];
		vmm_status status = VMM_OK;

		if (instance && !vmm_split_is_bound(dma, instance))
			status = vmm_memory_give_up_place(sched->adapter, instance, preparation);
		if (status != VMM_OK)
			return status;
	}
	return gather_largest_first(sched->adapter, dma, ++sched->preparations);
}

/* SPL-01 */
vmm_status vmm_gather_references(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_status status = vmm_dma_map(dma);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	if (vmm_gather_is_needless(dma)) {
		if (vmm_context_memory_is_none(dma)) {
			sched->preparations++;
			return VMM_OK;
		}
		if (vmm_context_memory_is_in_place(dma))
			return vmm_context_memory_gather(dma, ++sched->preparations);
	}
	status = make_resident(sched->adapter, dma, ++sched->preparations);
	if (status != VMM_NO_VIDEO_MEMORY || exceeds_segments(sched, dma))
		return status;
	status = gather_largest_first(sched->adapter, dma, ++sched->preparations);
	return status == VMM_NO_VIDEO_MEMORY ? gather_anew(sched, dma) : status;
}

/* SPL-12: tries the shortest portion that can be submitted, which ends at the next split point. */
static vmm_status gather_least(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t end = vmm_split_group_end(dma, dma->patch_start);

	vmm_assert_held(&sched->adapter->paging_lock);
	/*
	 * A group at the end of the buffer only unbinds (PAT-09): no commands would remain for a
	 * next portion.
	 */
	if (end == dma->patch_count || dma->patches[end].SplitOffset >= dma->used_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_split_end_at(dma, end);
	return gather_largest_first(sched->adapter, dma, ++sched->preparations);
}

static vmm_status gather_in_order(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t preparation = ++sched->preparations;
	vmm_status status = vmm_dma_map(dma); /* the buffer itself may be what did not fit */

	if (status == VMM_OK)
		status = gather_bound(sched->adapter, dma, preparation);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (status == VMM_OK)
		status = vmm_context_memory_gather(dma, preparation);
	return status == VMM_OK ? gather_patches(sched->adapter, dma, preparation) : status;
}

/*
 * evict the rest of the buffer after everything else, and of the rest first what it
 * references last.
 */
static void order_rest(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t rest = ++sched->preparations;

	vmm_assert_held(&sched->adapter->paging_lock);
	for (uint32_t p = dma->patch_end; p-- > dma->patch_start;) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (!instance)
			continue;
		instance->split_rest = rest;
		instance->needed_at = p;
	}
	vmm_memory_set_split_rest(sched->adapter, rest);
}

/*
 * SPL-02: makes the longest portion resident that fits. The allocations of later portions may be
 * evicted for it. (SPL-08)
 */
VMM_COLD static vmm_status gather_portion(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	dma->failed_patch = dma->patch_count;
	order_rest(sched, dma);
	vmm_status status = gather_in_order(sched, dma);

	if (status == VMM_NO_VIDEO_MEMORY && dma->failed_patch < dma->patch_count) {
		uint32_t end = vmm_split_group(dma, dma->failed_patch);

		if (end == dma->patch_start) {
			status = gather_least(sched, dma);
		} else {
			vmm_split_end_at(dma, end);
			/*
			 * The set is resident. A new preparation number keeps the rest from
			 * counting as part of the portion.
			 */
			status = gather_in_order(sched, dma);
		}
	}
	vmm_memory_set_split_rest(sched->adapter, 0);
	if (status != VMM_OK)
		vmm_split_end_at(dma, dma->patch_count);
	return status;
}

/*
 * An attempt that must wait may have moved memory of the set all the same, and the end of that
 * paging is what the next attempt waits for. If that one moves the memory back, in space that the
 * buffers of other packets divide, the set is never complete. After so many attempts in a row those
 * buffers leave the aperture, and the next attempt has their space.
 */
#define ATTEMPTS_MAX 64u

/* The mapping of the buffer itself may fragment the aperture: the buffer is mapped anew, too. */
VMM_COLD static vmm_status gather_without_buffers(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_NO_VIDEO_MEMORY;
	bool left;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_dma_unpin(dma);
	bool moved = vmm_dma_unmap_unpinned(sched->adapter, &left);
	vmm_dma_pin_locked(dma);
	if (moved)
		status = sched->working_set->gather(sched, dma);
	dma->awaits_buffers = status == VMM_NO_VIDEO_MEMORY && left;
	return dma->awaits_buffers ? VMM_PENDING : status;
}

vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_unlikely(dma->awaits_buffers) && vmm_dma_another_is_pinned(sched->adapter, dma))
		return VMM_PENDING;
	dma->awaits_buffers = false;
	vmm_dma_pin_locked(dma);
	vmm_status status = sched->working_set->gather(sched, dma);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = gather_without_buffers(sched, dma);
	if (status == VMM_NO_VIDEO_MEMORY && dma->patch_start < dma->patch_count &&
	    sched->working_set->referenced) /* a residency list cannot be split (SPL) */
		status = gather_portion(sched, dma);
	if (status != VMM_OK)
		vmm_dma_unpin(dma);
	dma->attempts = status == VMM_PENDING ? dma->attempts + 1 : 0;
	if (vmm_unlikely(dma->attempts == ATTEMPTS_MAX)) {
		bool left;

		dma->attempts = 0;
		(void)vmm_dma_unmap_unpinned(sched->adapter, &left);
	}
	return status;
}
