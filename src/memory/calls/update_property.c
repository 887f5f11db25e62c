/* SPDX-License-Identifier: MIT */
/*
 * Changes of an allocation's properties after its creation (PRI-15): its segment set, its preferred
 * segments, and whether the GPU uses physical addresses. A preference is a hint for the next
 * placement.
 *
 * An allocation on a residency list moves if its placement is no longer allowed: at once, or when
 * the GPU has finished with it, which the paging queue's fence signals. The miniport is asked first
 * (DxgkDdiValidateUpdateAllocationProperty). Only the submit lock is held during that call; it
 * keeps the allocation alive. Afterwards everything is validated again.
 *
 * Only the creator may change a shared allocation. It moves for all openers, and every list
 * that contains it must still fit.
 */
#include "memory/placement/placement.h"
#include "memory/sets/sets.h"
#include "memory/state/state.h"

#include <string.h>

enum {
	SET_PHYSICAL = 0x1,
	SET_SEGMENTS = 0x2,
	SET_PREFERRED = 0x4,
	SET_UNMOVEABLE = 0x8,
	MASK = 0xF,
	FLAG_PHYSICAL = 0x1,
	FLAG_UNMOVEABLE = 0x2,
	FLAGS = 0x3,
	PREFERENCE_RESERVED = (int)0xC0000000,
};

/* The properties that an update may change. */
struct properties {
	uint32_t read_set, write_set, preferred, hinted_banks, flags;
};

struct update {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_property_request *request;
	struct vmm_paging_queue *queue;
	struct vmm_paging_operation *operation;
	struct vmm_ref *ref;
};

static NTSTATUS violation(const struct update *u, const char *what)
{
	const struct vmm_property_request *r = u->request;

	return vmm_refuse_rule(
		u->device->adapter->observe, STATUS_INVALID_PARAMETER, "PRI-15",
		u->device->process->id, r->allocation,
		"update property of 0x%08x (mask 0x%x, segment set 0x%x, PreferredSegment "
		"0x%08x, flags 0x%x): %s",
		r->allocation, r->mask, r->set, r->preferred, r->flags, what);
}

static NTSTATUS not_supported(const struct update *u, const char *what)
{
	return vmm_refuse_reason(u->device->adapter->observe, STATUS_NOT_SUPPORTED,
				 u->device->process->id, u->request->allocation,
				 "PRI-15: update property: %s", what);
}

/* ---- validation of the request ---- */

static NTSTATUS check_request(const struct update *u)
{
	const struct vmm_property_request *r = u->request;

	if (u->device->adapter->interface_version < DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		return not_supported(u, "the adapter's miniport is of an interface before 2.1");
	if (r->mask & ~(uint32_t)MASK)
		return violation(u, "reserved bits of the mask are set");
	if (r->flags & ~(uint32_t)FLAGS)
		return violation(u, "reserved flags are set");
	if ((r->mask & SET_UNMOVEABLE) && (r->flags & FLAG_UNMOVEABLE))
		return not_supported(u, "Unmoveable is not built: no public page defines it");
	if (u->memory->caps->validate_property)
		return STATUS_SUCCESS;
	return not_supported(u, "the miniport has no DxgkDdiValidateUpdateAllocationProperty");
}

static NTSTATUS find_objects(struct update *u) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_process_lock(u->device->process);
	u->queue = vmm_paging_queue_find_locked(u->device, u->request->queue);
	u->ref = vmm_ref_lookup_locked(u->device, u->request->allocation);
	if (u->queue && !u->ref)
		vmm_ref_report(u->device, u->request->allocation, "PRI-15", "update property");
	vmm_process_unlock(u->device->process);
	if (!u->queue)
		return violation(u, "hPagingQueue is not a live paging queue of the device");
	return u->ref ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static NTSTATUS check_allocation(const struct update *u) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = u->ref->allocation;

	if (!u->ref->creator)
		return violation(u, "another device created it; only the creator may change it");
	if (vmm_is_existing(a))
		return not_supported(u, "an update of existing memory is not built");
	if (a->pinned)
		return violation(u, "the allocation is pinned");
	if (vmm_is_offered_locked(a))
		return violation(u, "the allocation is offered; reclaim it first");
	if (vmm_locks(u->ref->instance))
		return violation(u, "the CPU has locked the allocation");
	return STATUS_SUCCESS;
}

/* ---- the properties after the update ---- */

static struct properties current_properties(const struct vmm_allocation *a)
{
	return (struct properties){a->read_set, a->write_set, a->preferred, a->hinted_banks,
				   a->flags};
}

static void apply_properties(struct vmm_allocation *a, const struct properties *p)
{
	a->read_set = p->read_set;
	a->write_set = p->write_set;
	a->preferred = p->preferred;
	a->hinted_banks = p->hinted_banks;
	a->flags = p->flags;
	vmm_allocation_set_serving(a);
}

static struct properties requested_properties(const struct update *u)
{
	const struct vmm_property_request *r = u->request;
	struct properties p = current_properties(u->ref->allocation);

	if (r->mask & SET_SEGMENTS)
		p.read_set = p.write_set =
			r->set &
			~vmm_footprint_excluded_set(u->memory, u->ref->allocation->pitch_bytes);
	if ((r->mask & SET_PREFERRED) && p.preferred != r->preferred) {
		p.preferred = r->preferred;
		p.hinted_banks = 0;
		/* The hints were for the segment preferred before (SEG-14). */
	}
	if (r->mask & SET_PHYSICAL) {
		p.flags &= ~(uint32_t)VMM_ALLOCATION_ACCESSED_PHYSICALLY;
		if (r->flags & FLAG_PHYSICAL)
			p.flags |= VMM_ALLOCATION_ACCESSED_PHYSICALLY;
	}
	return p;
}

static bool allows_memory_segment(const struct vmm_memory *memory, const struct properties *p)
{
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (((p->read_set | p->write_set) & 1u << i) && !memory->segment[i].aperture)
			return true;
	return false;
}

static bool cpu_can_see(const struct vmm_memory *memory, const struct properties *p)
{
	bool all = true;

	if (!(p->flags & VMM_ALLOCATION_VISIBLE))
		return true;
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		if (!(p->write_set & 1u << i))
			continue;
		if (memory->segment[i].aperture)
			return true;
		all &= memory->segment[i].port->flags.CpuVisible;
	}
	return all;
}

static NTSTATUS check_segments(const struct update *u, const struct properties *p)
{
	const struct vmm_property_request *r = u->request;
	uint32_t count = u->memory->segment_count;
	uint32_t all = count == 32 ? UINT32_MAX : (1u << count) - 1;

	if ((r->mask & SET_SEGMENTS) && (!p->write_set || (r->set & ~all)))
		return violation(u, "the segment set is empty or includes a segment that does not "
				    "exist (SEG-19)");
	if (vmm_is_shared_with_kmd(u->ref->allocation) && allows_memory_segment(u->memory, p))
		return violation(u, "ALF-30: the miniport shares its backing store, so its set may "
				    "contain apertures only");
	if (!cpu_can_see(u->memory, p))
		return violation(
			u, "it is CPU-visible, and its set has memory segments without CpuVisible "
			   "and no aperture (SEG-25)");
	if (!(r->mask & SET_PREFERRED))
		return STATUS_SUCCESS;
	if (r->preferred & (uint32_t)PREFERENCE_RESERVED)
		return violation(u, "reserved bits of PreferredSegment are set");
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t id = r->preferred >> (6 * i) & 0x1F;

		if (id && !((p->read_set | p->write_set) & 1u << (id - 1)))
			return violation(
				u, "PreferredSegment includes a segment outside the set (SEG-16)");
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_physical(const struct update *u, const struct properties *p)
{
	const struct vmm_allocation *a = u->ref->allocation;

	if (!vmm_allocation_is_physical(a) || (p->flags & VMM_ALLOCATION_ACCESSED_PHYSICALLY))
		return STATUS_SUCCESS;
	if (p->flags & VMM_ALLOCATION_NOTIFY_RESIDENCY)
		return violation(u, "ExplicitResidencyNotification needs AccessedPhysically");
	/* Its address would have to be patched into queued work (DMA-27). */
	if (vmm_instance_busy(&a->first, VMM_USE_ANY, NULL, NULL))
		return violation(u, "queued work references it by physical address");
	return STATUS_SUCCESS;
}

/* ---- applying the change ---- */

enum listing { REMOVE_DEMAND, ADD_DEMAND, EXCESS };

/* Updates the sums of that device's list, or returns its excess. */
static uint64_t account(struct vmm_device *device, const struct vmm_allocation *a,
			enum listing what) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_list_for_each (link, &device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (ref->allocation != a)
			continue;
		if (what == EXCESS)
			return vmm_residency_list_excess(device, &ref, 1);
		vmm_residency_list_account(ref, what == ADD_DEMAND);
	}
	return 0;
}

/* Applies `what` to all lists that contain the allocation. Returns the greatest excess in bytes. */
static uint64_t account_all(const struct update *u, enum listing what)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = u->device->adapter;
	uint64_t excess = 0;
	struct vmm_list *link;

	if (!u->ref->allocation->listed)
		return 0;
	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices)
		excess = vmm_max_u64(
			excess, account(vmm_container_of(link, struct vmm_device, adapter_link),
					u->ref->allocation, what));
	vmm_state_unlock(adapter);
	return excess;
}

/* Applies the change if all lists still fit with it; otherwise changes nothing. */
static NTSTATUS commit_change(const struct update *u, const struct properties *p)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *a = u->ref->allocation;
	const struct properties before = current_properties(a);

	account_all(u, REMOVE_DEMAND);
	apply_properties(a, p);
	uint64_t excess = account_all(u, EXCESS);
	if (excess)
		apply_properties(a, &before);
	account_all(u, ADD_DEMAND);
	if (!excess)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		u->device->adapter->observe, STATUS_NO_MEMORY, u->device->process->id,
		u->ref->handle,
		"PRI-15: with 0x%08x in segment set 0x%x the residency list of a device would "
		"exceed the capacity by %llu bytes",
		u->ref->handle, p->write_set, (unsigned long long)excess);
}

static NTSTATUS bring_in(struct update *u) VMM_REQUIRES(vmm_paging_lock_class)
{
	if (!u->ref->residency_count || vmm_residency_list_bring_in(u->device, &u->ref, 1))
		return STATUS_SUCCESS;
	u->request->fence_value = vmm_paging_operation_add(u->queue, u->operation, &u->ref, 1);
	u->operation = NULL;
	return STATUS_PENDING;
}

/* Validates the request and computes the new properties. Returns STATUS_PENDING if they differ. */
static NTSTATUS evaluate(struct update *u, struct properties *p) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = vmm_device_lost(u->device) ? STATUS_DEVICE_REMOVED : find_objects(u);

	if (NT_SUCCESS(status))
		status = check_allocation(u);
	if (!NT_SUCCESS(status))
		return status;
	const struct properties before = current_properties(u->ref->allocation);
	*p = requested_properties(u);
	status = check_segments(u, p);
	if (NT_SUCCESS(status))
		status = check_physical(u, p);
	return NT_SUCCESS(status) && memcmp(p, &before, sizeof(*p)) ? STATUS_PENDING : status;
}

static NTSTATUS ask_miniport(const struct update *u, void *allocation)
{
	const struct vmm_property_request *r = u->request;
	const DXGKARG_VALIDATEUPDATEALLOCPROPERTY args = {
		.hAllocation = allocation,
		.SupportedSegmentSet = r->set,
		.PreferredSegment.Value = r->preferred,
		.Flags.Value = r->flags,
		.PropertyMaskValue = r->mask,
	};
	NTSTATUS status = vmm_port_validate_property(u->device->adapter->port, &args);

	if (!NT_SUCCESS(status))
		vmm_reason(u->device->adapter->observe, status, u->device->process->id,
			   r->allocation,
			   "PRI-15: update property of 0x%08x: the miniport refuses (mask 0x%x, "
			   "segment set 0x%x, PreferredSegment 0x%08x, flags 0x%x)",
			   r->allocation, r->mask, r->set, r->preferred, r->flags);
	return status;
}

/* Caller holds the submit lock, which keeps the allocation alive. */
static NTSTATUS update(struct update *u)
{
	struct vmm_adapter *adapter = u->device->adapter;
	struct properties p;
	void *allocation = NULL;

	vmm_paging_lock(adapter);
	NTSTATUS status = evaluate(u, &p);
	if (status == STATUS_PENDING)
		allocation = u->ref->allocation->kmd_allocation;
	vmm_paging_commit(adapter);
	if (status != STATUS_PENDING)
		return status;
	status = ask_miniport(u, allocation);
	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	status = evaluate(u, &p);
	if (status == STATUS_PENDING) {
		status = commit_change(u, &p);
		if (NT_SUCCESS(status))
			status = bring_in(u);
	}
	vmm_paging_commit(adapter);
	return status;
}

NTSTATUS vmm_memory_update_property(struct vmm_device *device, struct vmm_property_request *request)
{
	struct update u = {.device = device, .memory = device->adapter->memory, .request = request};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_request(&u);
	request->fence_value = 0;
	if (!NT_SUCCESS(status))
		return status;
	u.operation = vmm_paging_operation_create(1);
	if (!u.operation)
		return STATUS_NO_MEMORY;
	vmm_submit_lock(device->adapter);
	status = update(&u);
	vmm_submit_unlock(device->adapter);
	vmm_free(u.operation);
	if (status == STATUS_PENDING)
		u.memory->engine->wake(device->adapter);
	return status;
}
