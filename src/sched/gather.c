/* SPDX-License-Identifier: MIT */
/*
 * What a packet needs, in memory together: the buffer itself and what its patch list names, in list order (PAT-03,
 * DMA-35). What fits as a whole is one portion (SPL-01); what does not is tried as less (SPL-02). Under the paging lock; whatever is missing
 * afterwards has been asked for in vain, or waits for the GPU (VMM_PENDING).
 */
#include "sched/sched_private.h"

/* DMA-23: an allocation that is listed more than once is written if one of its entries says so. */
static bool is_written(const struct vmm_dma *dma, uint32_t index)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	if (dma->list[index].WriteOperation || allocation->read_set == allocation->write_set)
		return dma->list[index].WriteOperation;
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (dma->instances[i] == dma->instances[index] && dma->list[i].WriteOperation)
			return true;
	return false;
}

/* SPL-05: what the resource table holds where the buffer is split stays where it is, whoever wants its place. */
static vmm_status keep_bound(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t i = 0; i < dma->list_count; i++) {
		struct vmm_instance *instance = dma->instances[i];
		vmm_status status = VMM_OK;

		if (!instance || !vmm_split_is_bound(dma, instance))
			continue;
		instance->wanted = preparation;
		instance->bound = preparation;
		if (vmm_locks(instance) && instance->place == VMM_PLACE_MEMORY)
			instance->prepared = preparation; /* not even LKR-01 moves it now */
		else
			status = vmm_memory_make_resident_locked(adapter, instance,
								 is_written(dma, i), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

/* The portion's patch locations in list order (PAT-03). */
static vmm_status walk(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->prepared == preparation)
			continue; /* PAT-09: a NULL element unbinds; nothing to bring in */
		instance->wanted = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, instance, is_written(dma, index), preparation);
		if (status != VMM_OK) {
			dma->short_of = p;
			return status;
		}
	}
	return VMM_OK;
}

/* What comes after a split point wants what its own patch locations name, and what is bound there. */
static vmm_status want_rest(struct vmm_adapter *adapter, struct vmm_dma *dma, uint64_t preparation)
{
	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (instance)
			instance->wanted = preparation;
	}
	return keep_bound(adapter, dma, preparation);
}

static vmm_status make_resident(struct vmm_adapter *adapter, struct vmm_dma *dma,
				uint64_t preparation)
{
	struct vmm_instance **instances = dma->instances;

	if (vmm_unlikely(dma->split)) {
		vmm_status status = want_rest(adapter, dma, preparation);
		if (status == VMM_OK)
			status = vmm_context_memory_gather(dma, preparation);
		return status == VMM_OK ? walk(adapter, dma, preparation) : status;
	}
	for (uint32_t i = 0; i < dma->list_count; i++)
		if (instances[i])
			instances[i]->wanted = preparation;
	vmm_status status = vmm_context_memory_gather(dma, preparation); /* PRE-11 */
	return status == VMM_OK ? walk(adapter, dma, preparation) : status;
}

/* The largest that the patch list names and that has no place yet; list_count: none. */
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
 * SPL-13: the set may already be in memory in a way that leaves no room in one piece for the rest. Again, the largest
 * first; what has no place of this round yet may be pushed out for it.
 */
static vmm_status make_resident_anew(struct vmm_adapter *adapter, struct vmm_dma *dma,
				     uint64_t preparation)
{
	uint32_t index;
	vmm_status kept = keep_bound(adapter, dma, preparation);

	if (kept == VMM_OK)
		kept = vmm_context_memory_gather(dma, preparation);
	if (kept != VMM_OK)
		return kept;
	while ((index = largest_missing(dma, preparation)) < dma->list_count) {
		dma->instances[index]->wanted = preparation;
		vmm_status status = vmm_memory_make_resident_locked(
			adapter, dma->instances[index], is_written(dma, index), preparation);
		if (status != VMM_OK)
			return status;
	}
	return VMM_OK;
}

static uint32_t segment_set(const struct vmm_dma *dma, uint32_t index)
{
	const struct vmm_allocation *allocation = dma->instances[index]->allocation;

	return is_written(dma, index) ? allocation->write_set : allocation->read_set;
}

/* Is what can only go where there was no room more than fits there? No order of bringing it in will help then. */
static bool exceeds_segments(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint32_t set = segment_set(dma, dma->patches[dma->short_of].AllocationIndex);
	uint64_t counted = ++sched->preparations, bytes = 0;

	for (uint32_t p = dma->patch_start; p < dma->patch_end; p++) {
		uint32_t index = dma->patches[p].AllocationIndex;
		struct vmm_instance *instance = dma->instances[index];

		if (!instance || instance->wanted == counted)
			continue;
		instance->wanted = counted;
		if (!(segment_set(dma, index) & ~set))
			bytes += instance->allocation->size_bytes;
	}
	return bytes > vmm_memory_capacity(sched->adapter, set);
}

struct vmm_residency_set vmm_gather_set(const struct vmm_sched *sched, const struct vmm_dma *dma)
{
	return (struct vmm_residency_set){.device = dma->context->device,
					  .submission = dma->submission,
					  .named = dma->instances,
					  .named_count = dma->list_count,
					  .preparation = sched->preparations};
}

/* RES-08, DMA-35: from 2.0 on the device's list is what must be there, and what the submission names was on it. */
static vmm_status gather_list_once(struct vmm_sched *sched, struct vmm_dma *dma, bool anew)
{
	vmm_status status = vmm_context_memory_gather(dma, ++sched->preparations); /* PRE-11 */
	const struct vmm_residency_set set = vmm_gather_set(sched, dma);

	return status == VMM_OK ? vmm_residency_gather(&set, anew) : status;
}

static vmm_status gather_list(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_status status = gather_list_once(sched, dma, false);

	return status == VMM_NO_VIDEO_MEMORY ? gather_list_once(sched, dma, true) : status;
}

/* The buffer and what the portion uses, all in memory together. */
static vmm_status gather(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_status status = vmm_dma_place(dma);

	if (status != VMM_OK)
		return status;
	if (sched->adapter->wddm2)
		return gather_list(sched, dma);
	if (vmm_gather_is_needless(dma) && vmm_context_memory_is_in_place(dma)) {
		return vmm_context_memory_gather(dma, ++sched->preparations);
	}
	status = make_resident(sched->adapter, dma, ++sched->preparations);
	if (status == VMM_NO_VIDEO_MEMORY && !exceeds_segments(sched, dma))
		status = make_resident_anew(sched->adapter, dma, ++sched->preparations);
	return status;
}

/* SPL-12: the least that can be submitted is what comes before the next split point. */
static vmm_status gather_least(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint32_t end = vmm_split_group_end(dma, dma->patch_start);

	/* What only unbinds at the very end (PAT-09) has nothing to run. */
	if (end == dma->patch_count || dma->patches[end].SplitOffset >= dma->used_bytes)
		return VMM_NO_VIDEO_MEMORY;
	vmm_split_end_at(dma, end);
	return make_resident_anew(sched->adapter, dma, ++sched->preparations);
}

static vmm_status gather_in_order(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint64_t preparation = ++sched->preparations;
	vmm_status status =
		vmm_dma_place(dma); /* what wanted room may have been the buffer itself */

	if (status == VMM_OK)
		status = keep_bound(sched->adapter, dma, preparation);
	if (status == VMM_OK)
		status = vmm_context_memory_gather(dma, preparation);
	return status == VMM_OK ? walk(sched->adapter, dma, preparation) : status;
}

/* of what comes later, what is needed last makes room first. */
static void expect_rest(struct vmm_sched *sched, struct vmm_dma *dma)
{
	uint64_t rest = ++sched->preparations;

	for (uint32_t p = dma->patch_end; p-- > dma->patch_start;) {
		struct vmm_instance *instance = dma->instances[dma->patches[p].AllocationIndex];

		if (!instance)
			continue;
		instance->rest = rest;
		instance->needed_at = p;
	}
	vmm_memory_expect(sched->adapter, rest);
}

/* SPL-02: from the start of the rest, as far as there is room. Whatever comes later makes room. */
VMM_COLD static vmm_status gather_portion(struct vmm_sched *sched, struct vmm_dma *dma)
{
	dma->short_of = dma->patch_count;
	expect_rest(sched, dma);
	vmm_status status = gather_in_order(sched, dma);

	if (status == VMM_NO_VIDEO_MEMORY && dma->short_of < dma->patch_count) {
		uint32_t end = vmm_split_group(dma, dma->short_of);

		if (end == dma->patch_start) {
			status = gather_least(sched, dma);
		} else {
			vmm_split_end_at(dma, end);
			/* All is there; once more, so that what the portion does not name is not taken for its own. */
			status = gather_in_order(sched, dma);
		}
	}
	vmm_memory_expect(sched->adapter, 0);
	if (status != VMM_OK)
		vmm_split_end_at(dma, dma->patch_count);
	return status;
}

vmm_status vmm_gather(struct vmm_sched *sched, struct vmm_dma *dma)
{
	vmm_dma_pin(dma, true);
	vmm_status status = gather(sched, dma);
	if (status == VMM_NO_VIDEO_MEMORY) {
		vmm_dma_pin(dma, false); /* its own place may be what leaves no room in one piece */
		bool moved = vmm_dma_give_up_places(sched->adapter);
		vmm_dma_pin(dma, true);
		if (moved)
			status = gather(sched, dma);
	}
	if (status == VMM_NO_VIDEO_MEMORY && vmm_dma_will_give_up(sched->adapter, dma))
		status = VMM_PENDING;
	if (status == VMM_NO_VIDEO_MEMORY && dma->patch_start < dma->patch_count &&
	    !sched->adapter->wddm2) /* a list cannot be split (SPL) */
		status = gather_portion(sched, dma);
	if (status != VMM_OK)
		vmm_dma_pin(dma, false);
	return status;
}
