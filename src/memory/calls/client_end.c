/* SPDX-License-Identifier: MIT */
/* The end of an out-of-process client: its CPU mappings, client objects and arenas. */
#include "memory/image/image.h"
#include "memory/placement/client_object.h"
#include "memory/store/arena.h"
#include "memory/store/store.h"

static void end_views(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_list *link;

	allocation->viewer = NULL;
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		vmm_fast_lock_disable(i);
		vmm_os_view_release(&i->view);
		i->view_current = false;
		vmm_alternate_end(memory, i);
	}
}

/*
 * Removes the client's unused objects at once: it may be long until another placement needs their
 * ranges.
 */
static void remove_objects_of(struct vmm_memory *memory, uint64_t owner)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_client_objects_end_owner(memory, owner);
	vmm_backing_collect(memory);
	vmm_host_end_viewer(memory, owner);
	vmm_arenas_end_owner(memory, owner);
}

void vmm_memory_end_viewer(struct vmm_adapter *adapter, struct vmm_os_viewer *viewer)
{
	struct vmm_list *link;

	vmm_paging_lock(adapter);
	vmm_list_for_each (link, &adapter->memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (a->viewer == viewer)
			end_views(adapter->memory, a);
	}
	remove_objects_of(adapter->memory, vmm_os_viewer_owner(viewer));
	vmm_paging_commit(adapter);
}
