/* SPDX-License-Identifier: MIT */
/*
 * ShareBackingStoreWithKmd (ALF-30): the miniport works on the content of an allocation in system memory, beside the
 * program that created it. Its pages are mapped once, for vidmm and for the miniport alike, and stay the same from before
 * DxgkDdiSetAllocationBackingStore, which belongs to the creation, until DxgkDdiDestroyAllocation has come back: like those
 * of PermanentSysMem they outlive offers, resets and a lack of memory. There is no other copy, since such an allocation
 * may be in apertures alone.
 */
#include "memory/memory_private.h"

NTSTATUS vmm_backing_share_tell(struct vmm_memory *memory, const struct vmm_allocation *allocation)
{
	if (vmm_likely(!vmm_is_shared_with_kmd(allocation)))
		return STATUS_SUCCESS;
	return vmm_port_set_backing_store(memory->adapter->port, allocation->kmd_allocation,
					  allocation->first.backing.address);
}

struct vmm_backing vmm_backing_share_take(struct vmm_allocation *allocation)
{
	struct vmm_backing store = {0};

	if (vmm_unlikely(vmm_is_shared_with_kmd(allocation))) {
		store = allocation->first.backing;
		allocation->first.backing = (struct vmm_backing){0};
	}
	return store;
}

void vmm_backing_share_free(struct vmm_memory *memory, struct vmm_backing *store)
{
	if (vmm_likely(!store->address))
		return;
	vmm_paging_lock(memory->adapter);
	vmm_backing_destroy_after(memory, store, vmm_paging_sequence(memory));
	vmm_paging_unlock(memory->adapter);
}
