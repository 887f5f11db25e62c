/* SPDX-License-Identifier: MIT */
/*
 * Budgets (RES-05, RES-10, PRI-13): how much a process may keep resident in the segments of a group. A segment belongs to
 * one because its miniport said so; what is in none is not counted. An allocation counts where it would rather be, on
 * each list of the process that it is on, whether it is in memory at the moment or not.
 *
 * Nobody limits a process by himself: until a budget is set it is all that the group has.
 */
#include "memory/memory_private.h"

#define GROUPS   2u
#define NO_GROUP GROUPS

struct vmm_budget {
	struct vmm_list link;
	uint32_t process;
	uint64_t limit[GROUPS], usage[GROUPS];
};

/* ApplicationTarget is the older way of saying it: memory is local, the aperture is not. */
static uint32_t group_of_segment(const struct vmm_segment *segment)
{
	DXGK_SEGMENTFLAGS flags = segment->port->flags;

	if (flags.LocalBudgetGroup)
		return 0;
	if (flags.NonLocalBudgetGroup)
		return 1;
	if (flags.ApplicationTarget)
		return segment->aperture;
	return NO_GROUP;
}

static uint32_t group_of(const struct vmm_allocation *allocation)
{
	struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];

	if (!vmm_place_candidates(memory, allocation, vmm_resident_set(allocation), order))
		return NO_GROUP;
	return group_of_segment(vmm_memory_segment(memory, order[0]));
}

static struct vmm_budget *find(struct vmm_memory *memory, uint32_t process)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &memory->budgets) {
		struct vmm_budget *budget = vmm_container_of(link, struct vmm_budget, link);

		if (budget->process == process)
			return budget;
	}
	return NULL;
}

static struct vmm_budget *find_or_make(struct vmm_memory *memory, uint32_t process)
{
	struct vmm_budget *budget = find(memory, process);

	if (budget)
		return budget;
	budget = vmm_calloc(1, sizeof(*budget));
	if (!budget)
		return NULL;
	budget->process = process;
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		uint32_t group = group_of_segment(&memory->segment[i]);

		if (group != NO_GROUP)
			budget->limit[group] += memory->segment[i].capacity_bytes -
						memory->segment[i].invalid_bytes;
	}
	vmm_list_push_back(&memory->budgets, &budget->link);
	return budget;
}

struct vmm_budget *vmm_budget_of(struct vmm_device *device)
{
	if (!device->budget)
		device->budget = find_or_make(device->adapter->memory, device->process->id);
	return device->budget;
}

void vmm_budget_charge(struct vmm_ref *ref, bool listed)
{
	uint32_t group = group_of(ref->allocation);
	uint64_t bytes = ref->allocation->size_bytes;

	if (group == NO_GROUP)
		return;
	ref->device->budget->usage[group] += listed ? bytes : 0 - bytes;
}

uint64_t vmm_budget_excess(struct vmm_device *device, struct vmm_ref *const *added, uint32_t count)
{
	const struct vmm_budget *budget = device->budget;
	uint64_t usage[GROUPS + 1] = {0}, excess = 0;

	for (uint32_t i = 0; i < count; i++)
		usage[group_of(added[i]->allocation)] += added[i]->allocation->size_bytes;
	for (uint32_t g = 0; budget && g < GROUPS; g++) {
		uint64_t sum = budget->usage[g] + usage[g];

		excess += sum > budget->limit[g] ? sum - budget->limit[g] : 0;
	}
	return excess;
}

NTSTATUS vmm_budget_set(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			uint64_t bytes)
{
	struct vmm_budget *budget;

	if (group >= GROUPS)
		return STATUS_INVALID_PARAMETER;
	if (!adapter->wddm2) {
		vmm_reason(adapter->observe, STATUS_NOT_SUPPORTED, process->id, 0,
			   "set budget: the adapter's miniport is of WDDM 1.x, which has none");
		return STATUS_NOT_SUPPORTED;
	}
	vmm_paging_lock(adapter);
	budget = find_or_make(adapter->memory, process->id);
	if (budget)
		budget->limit[group] = bytes;
	vmm_paging_unlock(adapter);
	return budget ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

void vmm_budgets_finish(struct vmm_memory *memory)
{
	while (!vmm_list_empty(&memory->budgets)) {
		struct vmm_list *link = memory->budgets.next;

		vmm_list_remove(link);
		vmm_free(vmm_container_of(link, struct vmm_budget, link));
	}
}
