/* SPDX-License-Identifier: MIT */
/*
 * Linked adapters: content on every physical adapter of a link, at the same offset of the same
 * segment.
 * - LinkMirrored: there is one backing store. It is copied to all adapters; on eviction one
 *   adapter's copy is copied back (PAG-22).
 * - LinkInstanced: each adapter has its own store. All stores are in one range of system memory,
 *   in the order of the adapters. A CPU mapping shows that whole range (PAG-23, SWZ-30).
 *
 * The CPU never accesses such content in a memory segment, because each adapter has its own. A lock
 * evicts the content, and the next GPU use copies what the CPU wrote to all adapters.
 *
 * Each adapter's paging commands run in order on its own node. Only a store that one adapter writes
 * and others read creates a dependency between nodes; vmm_link_order enforces it.
 */
#include "memory/state/state.h"
#include "memory/store/store.h"

_Static_assert(VMM_LINKS_MAX == VMM_PORT_LINKS_MAX, "one paging lane per physical adapter");

static vmm_status create_parts(struct vmm_memory *memory, struct vmm_backing *backing,
			       const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = allocation->size_bytes, physical, offset;
	const struct vmm_os_memory *pages = vmm_backing_memory(memory, backing, &offset);
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	backing->parts = vmm_calloc(VMM_LINKS_MAX, sizeof(*backing->parts));
	if (!backing->parts)
		return VMM_NO_MEMORY;
	physical = vmm_backing_bus_address(memory, backing);
	for (uint32_t i = 0; i < vmm_link_copies(allocation) && vmm_ok(status); i++)
		status = vmm_nt_mdl_create(memory->adapter->world->nt, pages, offset + i * size,
					   size, physical + i * size,
					   (struct _MDL **)&backing->parts[i]);
	return status;
}

vmm_status vmm_link_store_create(struct vmm_memory *memory, struct vmm_instance *instance,
				 bool zero)
{
	const struct vmm_allocation *allocation = instance->allocation;
	vmm_status status = vmm_backing_create_for(memory, allocation, vmm_store_bytes(allocation),
						   zero, &instance->backing);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status) || vmm_likely(!vmm_link_is_instanced(allocation)))
		return status;
	status = create_parts(memory, &instance->backing, allocation);
	if (!vmm_ok(status))
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

vmm_status vmm_residency_ensure_backing(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->backing.arena)
		return VMM_OK;
	return vmm_link_store_create(memory, instance, true);
}

/*
 * The commands of one flush share a sequence number, and run on all nodes at the same time.
 * Commands that must run later therefore go into the next packet.
 */
void vmm_link_order(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	uint32_t timeline = memory->adapter->paging_timeline;
	uint64_t last = atomic_load_explicit(&instance->written[timeline], memory_order_relaxed);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_timeline_done(memory->adapter, timeline, last))
		return;
	if (memory->pending && last == vmm_paging_sequence(memory))
		vmm_memory_flush_locked(memory->adapter);
	memory->after = vmm_max_u64(memory->after, last);
}

const char *vmm_link_not_built(uint32_t flags)
{
	if (flags & VMM_ALLOCATION_ALTERNATE)
		return "UseAlternateVA on each adapter of a link";
	if ((flags & VMM_ALLOCATION_LINK_INSTANCED) && (flags & VMM_ALLOCATION_EXISTING))
		return "existing memory, which is one store, as the stores of several adapters "
		       "(LinkInstanced, PAG-23)";
	return NULL;
}
