/* SPDX-License-Identifier: MIT */
/*
 * Content on every physical adapter of a link, at the same offset of the same segment. LinkMirrored: one backing store,
 * which goes into all copies; one copy comes back (PAG-22). LinkInstanced: a store for each, all in one piece of system
 * memory, so that the CPU sees them one after the other (PAG-23, SWZ-30).
 *
 * The CPU never sees such content in a memory segment, of which there would be as many as adapters: a lock takes it out,
 * and the next use by a GPU brings what the CPU wrote to all of them.
 *
 * Each adapter's paging runs in order on its own node. What one of them writes to a store, and others read, is the only
 * thing that crosses over; vmm_link_order sees to that.
 */
#include "memory/memory_private.h"
#include "memory/private.h"

_Static_assert(VMM_LINKS_MAX == VMM_PORT_LINKS_MAX, "a lane for each adapter");

static vmm_status parts_create(struct vmm_memory *memory, struct vmm_backing *backing,
			       const struct vmm_allocation *allocation)
{
	uint64_t size = allocation->size_bytes, physical, offset;
	const struct vmm_os_memory *pages = vmm_backing_memory(memory, backing, &offset);
	vmm_status status = VMM_OK;

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

void vmm_link_parts_destroy(struct vmm_memory *memory, struct vmm_backing *backing)
{
	for (uint32_t i = 0; backing->parts && i < VMM_LINKS_MAX; i++)
		vmm_nt_mdl_destroy(memory->adapter->world->nt, backing->parts[i]);
	vmm_free(backing->parts);
	backing->parts = NULL;
}

vmm_status vmm_link_store_create(struct vmm_memory *memory, struct vmm_instance *instance,
				 bool zero)
{
	const struct vmm_allocation *allocation = instance->allocation;
	vmm_status status = vmm_backing_create_for(memory, allocation, vmm_store_bytes(allocation),
						   zero, &instance->backing);

	if (!vmm_ok(status) || vmm_likely(!vmm_link_is_instanced(allocation)))
		return status;
	status = parts_create(memory, &instance->backing, allocation);
	if (!vmm_ok(status))
		vmm_backing_destroy(memory, &instance->backing);
	return status;
}

/* Transfers of one flush are one number, whose packets run beside one another: who must come after gets the next. */
void vmm_link_order(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	uint32_t timeline = memory->adapter->paging_timeline;
	uint64_t last = atomic_load_explicit(&instance->written[timeline], memory_order_relaxed);

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
