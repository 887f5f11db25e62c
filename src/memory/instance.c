/* SPDX-License-Identifier: MIT */
/*
 * Initializes and finishes instances, each of which is one placement and content of an allocation
 * (REN-05). Also computes the eviction class of an allocation and whether it can reach an aperture.
 */
#include "memory/memory_private.h"

void vmm_instance_init(struct vmm_instance *instance, struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	instance->allocation = allocation;
	instance->place = VMM_PLACEMENT_FRESH;
	instance->state = VMM_INSTANCE_CURRENT;
	instance->range = VMM_RANGE_NONE;
	instance->class_index = (uint8_t)vmm_allocation_class(allocation);
	vmm_list_init(&instance->lru);
	vmm_list_push_back(&allocation->instances, &instance->sibling);
	if (++allocation->instance_count > 1)
		vmm_allocation_mark(allocation, VMM_MARK_RENAMED, true);
	allocation->adapter->memory->instances++;
}

void vmm_instance_finish(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_fast_lock_unbind(instance);
	if (instance->place != VMM_PLACEMENT_LOST && instance->place != VMM_PLACEMENT_FRESH)
		vmm_residency_drop(memory, instance, VIDMM_RESIDENCY_DESTROYED);
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	if (instance->view.address)
		vmm_os_view_release(&instance->view);
	vmm_alternate_drop(instance);
	vmm_retained_free(instance);
	vmm_list_remove(&instance->sibling);
	if (--instance->allocation->instance_count == 1)
		vmm_allocation_mark(instance->allocation, VMM_MARK_RENAMED, false);
	memory->instances--;
}

uint32_t vmm_allocation_class(const struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	if (allocation->pinned)
		return VMM_CLASS_PINNED;
	return (uint32_t)vmm_policy_class(allocation->offer, allocation->priority);
}

bool vmm_allocation_reaches_aperture(const struct vmm_allocation *allocation)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t set = allocation->read_set & allocation->write_set;

	vmm_assert_held(&allocation->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture && (set & 1u << i))
			return true;
	return false;
}
