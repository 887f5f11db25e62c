/* SPDX-License-Identifier: MIT */
/*
 * What is in a segment now, and what one process has (QST-04, QST-05). An allocation belongs to the
 * process that created it, also while others have it open.
 */
#include "memory/calls/calls.h"
#include "memory/placement/placement.h"
#include "memory/state/state.h"

static NTSTATUS check_segment(const struct vmm_adapter *adapter, const struct vmm_process *process,
			      uint32_t index)
{
	if (index < adapter->memory->segment_count)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "QST-04", process->id, 0,
			       "query statistics of segment %u: the adapter has %u segments, "
			       "counted from 0",
			       index, adapter->memory->segment_count);
}

NTSTATUS vmm_memory_segment_usage(struct vmm_adapter *adapter, const struct vmm_process *process,
				  uint32_t index, struct vmm_segment_usage *usage)
{
	const struct vmm_memory *memory = adapter->memory;
	NTSTATUS status = check_segment(adapter, process, index);

	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	const struct vmm_segment *segment = &memory->segment[index];
	vmm_assert(segment->resident_bytes <= segment->capacity_bytes);
	vmm_assert(segment->residents || !segment->resident_bytes);
	*usage = (struct vmm_segment_usage){.commit_limit_bytes = segment->capacity_bytes,
					    .resident_bytes = segment->resident_bytes,
					    .residents = segment->residents,
					    .flags = segment->port->flags};
	for (uint32_t class = 0; class < VMM_ALLOCATION_CLASSES; class ++) {
		uint64_t bytes = memory->statistics.tallies.evicted_bytes[index][class];

		usage->evicted_by_class[class] = bytes;
		usage->evicted_bytes += bytes;
	}
	vmm_paging_unlock_idle(adapter);
	return STATUS_SUCCESS;
}

static void add_instance(struct vmm_process_memory *usage, const struct vmm_instance *instance,
			 const uint32_t *index) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = instance->allocation;
	const struct vmm_backing *backing = &instance->backing;

	vmm_assert_held(&a->adapter->paging_lock);
	if (backing->address) {
		usage->system_bytes += backing->size_bytes;
		if (a->flags & VMM_ALLOCATION_CACHED)
			usage->cached_bytes += backing->size_bytes;
		if (backing->section)
			usage->section_bytes += backing->size_bytes;
	}
	if (!instance->segment || (index && *index != instance->segment - 1u))
		return;
	vmm_assert(instance->segment <= a->adapter->memory->segment_count);
	uint32_t p = vmm_placement_preference(a, instance->segment);
	usage->resident_bytes += a->size_bytes;
	usage->residents++;
	vmm_tally_add(p < VMM_SEGMENT_PREFERENCES ? &usage->preferred[p] : &usage->elsewhere, a);
}

NTSTATUS vmm_memory_of_process(struct vmm_adapter *adapter, const struct vmm_process *process,
			       const uint32_t *index, struct vmm_process_memory *usage)
{
	NTSTATUS status = index ? check_segment(adapter, process, *index) : STATUS_SUCCESS;
	struct vmm_list *link, *sibling;

	if (!NT_SUCCESS(status))
		return status;
	*usage = (struct vmm_process_memory){0};
	vmm_paging_lock(adapter);
	vmm_list_for_each (link, &adapter->memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (a->owner != process->id)
			continue;
		vmm_list_for_each (sibling, &a->instances)
			add_instance(usage, vmm_container_of(sibling, struct vmm_instance, sibling),
				     index);
	}
	vmm_paging_unlock_idle(adapter);
	return STATUS_SUCCESS;
}
