/* SPDX-License-Identifier: MIT */
/*
 * The working set of a packet of WDDM 2.x: what is on the residency list of its device (RES-08).
 * The submission may only reference what was on that list (DMA-35).
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

/*
 * An allocation list makes nothing resident. A reference to an allocation that is not resident is
 * an invalid access: the device is in error (DMA-26, PRI-11). CPU locks are the UMD's
 * responsibility (LKR-09). Without AccessedPhysically an allocation has no address to patch in
 * (DMA-27), unless it can only be in memory segments.
 */
static NTSTATUS check_residency(const struct vmm_submission *s, uint32_t index,
				const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	const char *why =
		!ref->residency_count ? "it is not on the device's residency list"
		: ref->instance->held
			? "it is not resident, and a CPU lock keeps it from being made resident "
			  "(LOCK-48, LKR-09)"
			: NULL;

	vmm_assert_held(&s->adapter->paging_lock);
	if (!s->kind->by_address && !vmm_allocation_has_address(ref->allocation))
		return vmm_submission_refuse_entry(
			s, "DMA-27", STATUS_GRAPHICS_INVALID_ALLOCATION_USAGE, index,
			"it was not created AccessedPhysically (PAG-24)");
	if (!why)
		return STATUS_SUCCESS;
	vmm_device_fail(s->device, VMM_DEVICE_FAULT);
	return vmm_submission_refuse_entry(s, s->kind->words->residency_rule,
					   STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE, index, why);
}

/* Returns the set that a packet of the device needs, as of sched->preparations. */
static struct vmm_residency_set set_of(const struct vmm_sched *sched, const struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	return (struct vmm_residency_set){.device = dma->context->device,
					  .submission = dma->submission,
					  .listed = dma->instances,
					  .listed_count = dma->list_count,
					  .preparation = sched->preparations};
}

/* The list must be resident, and the submission references only what was on it. (DMA-35) */
static vmm_status gather_once(struct vmm_sched *sched, struct vmm_dma *dma,
			      enum vmm_residency_round round) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_context_memory_gather(dma, ++sched->preparations); /* PRE-11 */
	const struct vmm_residency_set set = set_of(sched, dma);

	vmm_assert_held(&sched->adapter->paging_lock);
	return status == VMM_OK ? vmm_residency_gather(&set, round) : status;
}

static vmm_status gather_list(struct vmm_sched *sched, struct vmm_dma *dma)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = vmm_dma_map(dma);

	vmm_assert_held(&sched->adapter->paging_lock);
	if (status != VMM_OK)
		return status;
	status = VMM_NO_VIDEO_MEMORY;
	for (uint32_t round = 0; round < VMM_ROUND_COUNT && status == VMM_NO_VIDEO_MEMORY; round++)
		status = gather_once(sched, dma, (enum vmm_residency_round)round);
	return status;
}

/* The list is resident while the packet runs, and its content is there before. (RES-08) */
static uint64_t mark_list(struct vmm_sched *sched, const struct vmm_dma *dma, uint64_t needed)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_residency_set set = set_of(sched, dma);

	vmm_assert_held(&sched->adapter->paging_lock);
	return vmm_max_u64(needed,
			   vmm_residency_use(&set, dma->packet.timeline, dma->packet.sequence));
}

const struct vmm_working_set vmm_working_set_wddm2 = {
	.too_large = "RES-08: the residency list of the device does not fit into its segments "
		     "together, in any order",
	.check = check_residency,
	.gather = gather_list,
	.mark = mark_list,
};
