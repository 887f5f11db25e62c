/* SPDX-License-Identifier: MIT */
/*
 * Budgets (RES-05, RES-10, PRI-13): how many bytes a process may keep resident in each of the two
 * segment groups, local (0) and non-local (1). Segment flags of the miniport assign a segment to a
 * group; a segment in no group is not counted.
 *
 * Usage: an allocation counts in the group of its preferred segment, once for each residency list
 * of the process that it is on, whether it is resident at the moment or not.
 *
 * Budget: the limit of the process, at first the capacity of the group. The reservations of all
 * other processes (PRI-14) reduce it; the process's own reservation is its minimum. A process whose
 * usage exceeds a reduced budget gets a trim notification (trim.c).
 */
#include "memory/placement/placement.h"
#include "memory/sets/sets.h"
#include "memory/state/state.h"

#define GROUPS   2u
#define NO_GROUP GROUPS

struct vmm_budget {
	struct vmm_list link;
	uint32_t process;
	uint64_t limit[GROUPS], usage[GROUPS], reserved[GROUPS];
};

/*
 * ApplicationTarget is the older flag for both groups: a memory segment is local, an aperture is
 * non-local.
 */
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

/* Returns the group of segments in which the allocation counts. (PRI-13) */
static uint32_t group_of(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = allocation->adapter->memory;
	uint32_t order[VMM_PORT_SEGMENTS_MAX];

	vmm_assert_held(&allocation->adapter->paging_lock);
	if (!vmm_placement_candidates(memory, allocation, vmm_allocation_resident_set(allocation),
				      order))
		return NO_GROUP;
	return group_of_segment(vmm_memory_segment(memory, order[0]));
}

/* Page tables that can be evicted are no limit of a budget (VA-22). */
static uint64_t capacity(const struct vmm_memory *memory, uint32_t group)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t bytes = 0;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (group_of_segment(&memory->segment[i]) == group)
			bytes += memory->segment[i].capacity_bytes -
				 memory->segment[i].invalid_bytes +
				 memory->segment[i].movable_bytes;
	return bytes;
}

/*
 * Returns the bytes that the process may reserve: the capacity of the group less the reservations
 * of all other processes, at most the process's limit.
 */
static uint64_t available(const struct vmm_memory *memory, const struct vmm_budget *budget,
			  uint32_t group) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t bytes = capacity(memory, group);
	const struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->budgets) {
		const struct vmm_budget *other = vmm_container_of(link, struct vmm_budget, link);

		if (other != budget)
			bytes -= other->reserved[group]; /* their sum never exceeds capacity */
	}
	return vmm_min_u64(bytes, budget->limit[group]);
}

static uint64_t allowed(const struct vmm_memory *memory, const struct vmm_budget *budget,
			uint32_t group) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return vmm_max_u64(available(memory, budget, group), budget->reserved[group]);
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
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_budget *budget = find(memory, process);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (budget)
		return budget;
	budget = vmm_calloc(1, sizeof(*budget));
	if (!budget)
		return NULL;
	budget->process = process;
	for (uint32_t g = 0; g < GROUPS; g++)
		budget->limit[g] = capacity(memory, g);
	vmm_list_push_back(&memory->budgets, &budget->link);
	return budget;
}

struct vmm_budget *vmm_budget_of(struct vmm_device *device)
{
	vmm_assert_held(&device->adapter->paging_lock);
	if (!device->budget)
		device->budget = find_or_make(device->adapter->memory, device->process->id);
	return device->budget;
}

void vmm_budget_charge(struct vmm_ref *ref, bool listed)
{
	uint32_t group = group_of(ref->allocation);
	uint64_t bytes = ref->allocation->size_bytes;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (group == NO_GROUP)
		return;
	ref->device->budget->usage[group] += listed ? bytes : 0 - bytes;
}

/* Returns the bytes over budget after MakeResident of ADDED, of all groups. (PRI-13) */
uint64_t vmm_budget_excess(struct vmm_device *device, struct vmm_ref *const *added, uint32_t count)
{
	const struct vmm_budget *budget = device->budget;
	uint64_t usage[GROUPS + 1] = {0}, excess = 0;

	vmm_assert_held(&device->adapter->paging_lock);
	for (uint32_t i = 0; i < count; i++)
		usage[group_of(added[i]->allocation)] += added[i]->allocation->size_bytes;
	for (uint32_t g = 0; budget && g < GROUPS; g++) {
		uint64_t sum = budget->usage[g] + usage[g];
		uint64_t most = allowed(device->adapter->memory, budget, g);

		excess += sum > most ? sum - most : 0;
	}
	return excess;
}

static NTSTATUS check_group(struct vmm_adapter *adapter, const struct vmm_process *process,
			    uint32_t group, const char *what)
{
	NTSTATUS status = vmm_model_check_call(adapter, process, 0, what, ", which has no budgets");

	if (!NT_SUCCESS(status) || group < GROUPS)
		return status;
	return vmm_refuse_rule(adapter->observe, STATUS_INVALID_PARAMETER, "RES-10", process->id, 0,
			       "%s: segment group %u is neither local (0) nor non-local (1)", what,
			       group);
}

NTSTATUS vmm_budget_query(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			  struct vmm_video_memory *info)
{
	NTSTATUS status = check_group(adapter, process, group, "query video memory");
	struct vmm_budget *budget;

	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	budget = find_or_make(adapter->memory, process->id);
	if (budget)
		*info = (struct vmm_video_memory){
			.budget = allowed(adapter->memory, budget, group),
			.usage = budget->usage[group],
			.reserved = budget->reserved[group],
			.available = available(adapter->memory, budget, group),
		};
	vmm_paging_commit(adapter);
	return budget ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS reserve(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			uint64_t bytes) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_budget *budget = find_or_make(adapter->memory, process->id);
	uint64_t most;

	vmm_assert_held(&adapter->paging_lock);
	if (!budget)
		return STATUS_NO_MEMORY;
	most = available(adapter->memory, budget, group);
	if (bytes > most)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "PRI-14", process->id, 0,
			"reservation of %llu bytes in segment group %u refused: %llu bytes are "
			"available to the process",
			(unsigned long long)bytes, group, (unsigned long long)most);
	vmm_trims_before_budget(adapter->memory);
	budget->reserved[group] = bytes;
	vmm_trims_after_budget(adapter->memory);
	vmm_world_changed(adapter->world);
	atomic_store(&process->reserves, true);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_budget_reserve(struct vmm_adapter *adapter, struct vmm_process *process,
			    uint32_t group, uint64_t bytes)
{
	NTSTATUS status = check_group(adapter, process, group, "reserve video memory");

	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	status = reserve(adapter, process, group, bytes);
	vmm_paging_commit(adapter);
	return status;
}

void vmm_budget_release(struct vmm_adapter *adapter, const struct vmm_process *process)
{
	struct vmm_budget *budget;

	if (!adapter->residency_lists)
		return;
	vmm_paging_lock(adapter);
	budget = find(adapter->memory, process->id);
	for (uint32_t g = 0; budget && g < GROUPS; g++)
		budget->reserved[g] = 0;
	vmm_paging_commit(adapter);
	vmm_world_changed(adapter->world);
}

NTSTATUS vmm_budget_set(struct vmm_adapter *adapter, struct vmm_process *process, uint32_t group,
			uint64_t bytes)
{
	NTSTATUS status = check_group(adapter, process, group, "set budget");
	struct vmm_budget *budget;

	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	budget = find_or_make(adapter->memory, process->id);
	vmm_trims_before_budget(adapter->memory);
	if (budget)
		budget->limit[group] = bytes;
	vmm_trims_after_budget(adapter->memory);
	vmm_paging_commit(adapter);
	vmm_world_changed(adapter->world);
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
