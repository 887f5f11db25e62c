/* SPDX-License-Identifier: MIT */
/*
 * Instances, each of which is one placement and content of an allocation (REN-05), and what follows
 * from an allocation's properties: its eviction class, and the segments that it may be in.
 */
#include "memory/state/state.h"
#include "policy/policy.h"

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

uint32_t vmm_allocation_memory_set(const struct vmm_allocation *allocation)
{
	const struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t set = 0;

	vmm_assert_held(&allocation->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (!memory->segment[i].aperture)
			set |= (allocation->read_set | allocation->write_set) & 1u << i;
	return set;
}

uint32_t vmm_allocation_resident_set(const struct vmm_allocation *allocation)
{
	uint32_t both = allocation->read_set & allocation->write_set;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return both ? both : allocation->write_set;
}

bool vmm_allocation_has_address(const struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	return vmm_allocation_is_physical(allocation) ||
	       (!allocation->adapter->memory->caps->gpummu.supported &&
		!vmm_allocation_resident_set_has_aperture(allocation));
}

bool vmm_allocation_resident_set_has_aperture(const struct vmm_allocation *allocation)
{
	vmm_assert_held(&allocation->adapter->paging_lock);
	return vmm_allocation_resident_set(allocation) &
	       vmm_segment_apertures(allocation->adapter->memory);
}

bool vmm_lock_fixes_placement(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return allocation->adapter->model->gpu_uses_locked && vmm_locks(instance) &&
	       !vmm_allocation_resident_set_has_aperture(allocation);
}

bool vmm_instance_is_resident_in_system(const struct vmm_instance *instance)
{
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return instance->place == VMM_PLACEMENT_SYSTEM && instance->backing.address &&
	       !vmm_allocation_is_physical(allocation) &&
	       vmm_allocation_resident_set_has_aperture(allocation);
}

bool vmm_instance_unused(const struct vmm_instance *instance)
{
	return !vmm_instance_busy(instance, VMM_USE_ACTIVE, NULL, NULL);
}
