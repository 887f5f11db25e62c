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
