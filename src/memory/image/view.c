/* SPDX-License-Identifier: MIT */
/* What happens to a CPU mapping when its instance leaves its placement (view_map.c makes it). */
#include "memory/image/image.h"

void vmm_view_unmap(struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_fast_lock_disable(instance);
	if (!instance->view_current || instance->retained)
		/* The view continues to map the retained copy (PAG-14). */
		return;
	/*
	 * The memory behind the view gets another owner. A stale pointer then faults instead of
	 * reaching that memory (decision 6). While it is locked, the caller maps the new placement
	 * before the CPU can access it.
	 */
	if (!vmm_locks(instance))
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}

void vmm_view_lose(const struct vmm_instance *instance, struct vmm_os_view *view)
{
	const struct vmm_allocation *a = instance->allocation;

	vmm_assert_held(&a->adapter->paging_lock);
	vmm_reason(a->adapter->observe, VMM_NO_MEMORY, a->owner, instance->handle,
		   "Q-480: the system refuses to map the %llu bytes of 0x%08x at their new place, "
		   "while the CPU has it locked: its pointer is invalid from now on",
		   (unsigned long long)a->size_bytes, instance->handle);
	vmm_os_view_unmap(view);
}
