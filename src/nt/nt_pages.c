/* SPDX-License-Identifier: MIT */
/*
 * Locked pages of a client's memory or of a driver's pool. They get physical addresses like any
 * other range of the platform, by which a device finds them. Guarded by the memory lock.
 */
#include "nt/nt_internal.h"

vmm_status vmm_nt_pages_lock(struct vmm_nt *nt, void *pointer, uint64_t length, struct _MDL **mdl)
{
	const struct vmm_os_memory memory = {.base = pointer, .size_bytes = length};
	uint64_t physical;
	vmm_status status;

	if (!length || ((uintptr_t)pointer | length) % PAGE_SIZE)
		return VMM_INVALID_PARAMETER;
	physical = vmm_nt_phys_reserve(nt, length);
	status = vmm_nt_mdl_create(nt, &memory, 0, length, physical, mdl);
	if (!vmm_ok(status))
		return status;
	status = nt_phys_add_range(nt, (struct nt_phys_range){.physical = physical,
							      .size_bytes = length,
							      .pointer = pointer,
							      .exact = pointer,
							      .exact_bytes = length,
							      .locked = true});
	if (!vmm_ok(status)) {
		vmm_nt_mdl_destroy(nt, *mdl);
		*mdl = NULL;
	}
	return status;
}

void vmm_nt_pages_unlock(struct vmm_nt *nt, struct _MDL *mdl)
{
	vmm_nt_phys_remove(nt, (uint64_t)MmGetMdlPfnArray(mdl)[0] << PAGE_SHIFT);
	vmm_nt_mdl_destroy(nt, mdl);
}

static bool kernel_overlaps(struct vmm_nt *nt, const void *pointer, uint64_t length, bool whole)
{
	bool found;

	nt_memory_lock(nt);
	found = nt_pool_has_locked(nt, pointer, length, whole);
	for (uint32_t i = 0; i < nt->range_count && !found; i++) {
		const struct nt_phys_range *range = &nt->ranges[i];

		found = !range->locked && !range->trapped &&
			nt_range_overlaps(range->pointer, range->size_bytes, pointer, length,
					  whole);
	}
	nt_memory_unlock(nt);
	return found;
}

bool vmm_nt_is_kernel_range(struct vmm_nt *nt, const void *pointer, uint64_t length)
{
	return kernel_overlaps(nt, pointer, length, true);
}

bool vmm_nt_overlaps_kernel(struct vmm_nt *nt, const void *pointer, uint64_t length)
{
	return kernel_overlaps(nt, pointer, length, false);
}
