/* SPDX-License-Identifier: MIT */
/*
 * ShareBackingStoreWithKmd (ALF-30): the miniport accesses the backing store of an allocation in
 * system memory, as does the process that created it. vidmm and the miniport use the same mapping
 * of the pages.
 *
 * The pages stay the same from before DxgkDdiSetAllocationBackingStore, during creation, until
 * DxgkDdiDestroyAllocation has returned. As with PermanentSysMem they survive offers, resets and
 * scarcity of memory. No other copy of the content exists, since such an allocation may be placed
 * in apertures only.
 */
#include "memory/state/state.h"
#include "memory/store/store.h"

NTSTATUS vmm_backing_share_announce(struct vmm_memory *memory,
				    const struct vmm_allocation *allocation)
{
	if (vmm_likely(!vmm_is_shared_with_kmd(allocation)))
		return STATUS_SUCCESS;
	return vmm_port_set_backing_store(memory->adapter->port, allocation->kmd_allocation,
					  allocation->first.backing.address);
}

struct vmm_backing vmm_backing_share_take(struct vmm_allocation *allocation)
{
	struct vmm_backing store = {0};

	vmm_assert_held(&allocation->adapter->paging_lock);
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
	vmm_paging_commit(memory->adapter);
}
