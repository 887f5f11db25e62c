/* SPDX-License-Identifier: MIT */
/* The working set of a packet of WDDM 1.x: what its allocation list references. (PAT-03) */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

/*
 * What the CPU has locked must be in memory that both the CPU and the GPU can use, or be movable to
 * such memory. (LKR-02)
 */
static NTSTATUS check_locks(const struct vmm_submission *s, uint32_t index,
			    const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&s->adapter->paging_lock);
	if (vmm_unlikely(vmm_memory_has_aperture_lock(ref->instance)))
		return vmm_submission_refuse_entry(
			s, "SWZ-18", STATUS_GRAPHICS_CANT_RENDER_LOCKED_ALLOCATION, index,
			"it is locked with AcquireAperture (LKR-06)");
	if (vmm_unlikely(vmm_locks(ref->instance) &&
			 !vmm_memory_can_render_under_lock(ref->instance)))
		return vmm_submission_refuse_entry(
			s, "LKR-02", STATUS_GRAPHICS_CANT_RENDER_LOCKED_ALLOCATION, index,
			"it is locked and no aperture segment can hold it; after an unlock the "
			"same buffer is accepted (LOCK-36, LKR-03)");
	return STATUS_SUCCESS;
}

const struct vmm_working_set vmm_working_set_wddm1 = {
	.referenced = true,
	.too_large = "SPL-12: the working set of a submission cannot be made resident together",
	.check = check_locks,
	.gather = vmm_gather_references,
};
