/* SPDX-License-Identifier: MIT */
/*
 * What a client may change about an allocation after its creation (PRI-15): where it may be, where it would rather be, and
 * whether the GPU reaches it by physical addresses. A preference is a hint for the next time that a place is looked for.
 * What may not stay where it is, and is on a residency list, moves: at once, or when the GPU has let go of it, which a
 * paging queue's fence tells. The miniport is asked first (DxgkDdiValidateUpdateAllocationProperty), with no lock but the one
 * that keeps the allocation; afterwards everything is looked at once more.
 *
 * A shared allocation is its creator's to change: it moves for everybody, and every list that it is on must still fit.
 */
#include "memory/memory_private.h"

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

/* The properties, before or after. */
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

static NTSTATUS broke(const struct update *u, const char *what)
{
	const struct vmm_property_request *r = u->request;

	vmm_finding(u->device->adapter->observe, "PRI-15", u->device->process->id, r->allocation,
		    "update property of 0x%08x (mask 0x%x, segment set 0x%x, PreferredSegment "
		    "0x%08x, flags 0x%x): %s",
		    r->allocation, r->mask, r->set, r->preferred, r->flags, what);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS not_built(const struct update *u, const char *what)
{
	vmm_reason(u->device->adapter->observe, STATUS_NOT_SUPPORTED, u->device->process->id,
		   u->request->allocation, "PRI-15: update property: %s", what);
	return STATUS_NOT_SUPPORTED;
}

/* ---- is it a request? ---- */

static NTSTATUS check_request(const struct update *u)
{
	const struct vmm_property_request *r = u->request;

	if (u->device->adapter->interface_version < DXGKDDI_INTERFACE_VERSION_WDDM2_1)
		return not_built(u, "the adapter's miniport is of an interface before 2.1");
	if (r->mask & ~(uint32_t)MASK)
		return broke(u, "reserved bits of the mask");
	if (r->flags & ~(uint32_t)FLAGS)
		return broke(u, "reserved flags");
	if ((r->mask & SET_UNMOVEABLE) && (r->flags & FLAG_UNMOVEABLE))
		return not_built(u, "Unmoveable: no public page says what it asks for");
	if (u->memory->caps->validate_property)
		return STATUS_SUCCESS;
	return not_built(u, "the miniport has no DxgkDdiValidateUpdateAllocationProperty");
}

static NTSTATUS find(struct update *u)
{
	vmm_os_mutex_lock(&u->device->process->lock);
	u->queue = vmm_paging_queue_find_locked(u->device, u->request->queue);
	u->ref = vmm_ref_lookup_locked(u->device, u->request->allocation);
	vmm_os_mutex_unlock(&u->device->process->lock);
	if (!u->queue)
		return broke(u, "hPagingQueue is not a live paging queue of the device");
	if (u->ref)
		return STATUS_SUCCESS;
	vmm_ref_report(u->device, u->request->allocation, "PRI-15", "update property");
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS check_allocation(const struct update *u)
{
	struct vmm_allocation *a = u->ref->allocation;

	if (!u->ref->creator)
		return broke(u, "it is another device's, which opened it to this one");
	if (vmm_is_existing(a))
		return not_built(u, "of existing memory");
	if (a->pinned)
		return broke(u, "it is pinned");
	if (vmm_is_offered_locked(a))
		return broke(u, "it is offered and not reclaimed");
	if (vmm_locks(u->ref->instance))
		return broke(u, "the CPU has it locked");
	return STATUS_SUCCESS;
}

/* ---- what it would become ---- */

static struct properties now(const struct vmm_allocation *a)
{
	return (struct properties){a->read_set, a->write_set, a->preferred, a->hinted_banks,
				   a->flags};
}

static void become(struct vmm_allocation *a, const struct properties *p)
{
	a->read_set = p->read_set;
	a->write_set = p->write_set;
	a->preferred = p->preferred;
	a->hinted_banks = p->hinted_banks;
	a->flags = p->flags;
	vmm_allocation_set_serving(a);
}

static struct properties wanted(const struct update *u)
{
	const struct vmm_property_request *r = u->request;
	struct properties p = now(u->ref->allocation);

	if (r->mask & SET_SEGMENTS)
		p.read_set = p.write_set =
			r->set &
			~vmm_footprint_closed_set(u->memory, u->ref->allocation->pitch_bytes);
	if ((r->mask & SET_PREFERRED) && p.preferred != r->preferred) {
		p.preferred = r->preferred;
		p.hinted_banks = 0; /* they were of the segment preferred before (SEG-14) */
	}
	if (r->mask & SET_PHYSICAL) {
		p.flags &= ~(uint32_t)VMM_ALLOCATION_ACCESSED_PHYSICALLY;
		if (r->flags & FLAG_PHYSICAL)
			p.flags |= VMM_ALLOCATION_ACCESSED_PHYSICALLY;
	}
	return p;
}

static bool leaves_apertures(const struct vmm_memory *memory, const struct properties *p)
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
		return broke(u, "an empty segment set, or one that names a segment that does not "
				"exist"); /* SEG-19 */
	if (vmm_is_shared_with_kmd(u->ref->allocation) && leaves_apertures(u->memory, p))
		return broke(u, "ALF-30: the miniport shares its backing store, so it is for the "
				"aperture alone");
	if (!cpu_can_see(u->memory, p))
		return broke(u, "a CPU visible allocation for a memory segment without CpuVisible, "
				"and not for the aperture"); /* SEG-25 */
	if (!(r->mask & SET_PREFERRED))
		return STATUS_SUCCESS;
	if (r->preferred & (uint32_t)PREFERENCE_RESERVED)
		return broke(u, "reserved bits of PreferredSegment");
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t id = r->preferred >> (6 * i) & 0x1F;

		if (id && !((p->read_set | p->write_set) & 1u << (id - 1)))
			return broke(
				u, "PreferredSegment names a segment outside the set"); /* SEG-16 */
	}
	return STATUS_SUCCESS;
}

static NTSTATUS check_physical(const struct update *u, const struct properties *p)
{
	const struct vmm_allocation *a = u->ref->allocation;

	if (!vmm_allocation_is_physical(a) || (p->flags & VMM_ALLOCATION_ACCESSED_PHYSICALLY))
		return STATUS_SUCCESS;
	if (p->flags & VMM_ALLOCATION_NOTIFY_RESIDENCY)
		return broke(u, "ExplicitResidencyNotification needs AccessedPhysically");
	/* Its address is to be written into what is queued (DMA-27). */
	if (vmm_instance_busy(&a->first, VMM_USE_ANY, NULL, NULL))
		return broke(u, "queued work names it by its physical address");
	return STATUS_SUCCESS;
}

/* ---- the change ---- */

enum listing { OFF_THE_SUMS, INTO_THE_SUMS, EXCESS };

/* Of that device's list. */
static uint64_t account(struct vmm_device *device, const struct vmm_allocation *a,
			enum listing what)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->residency) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, residency_link);

		if (ref->allocation != a)
			continue;
		if (what == EXCESS)
			return vmm_resident_excess(device, &ref, 1);
		vmm_resident_account(ref, what == INTO_THE_SUMS);
	}
	return 0;
}

/* Of all lists that it is on; the greatest excess. */
static uint64_t account_all(const struct update *u, enum listing what)
{
	struct vmm_adapter *adapter = u->device->adapter;
	uint64_t excess = 0;
	struct vmm_list *link;

	if (!u->ref->allocation->listed)
		return 0;
	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices)
		excess = vmm_max_u64(
			excess, account(vmm_container_of(link, struct vmm_device, adapter_link),
					u->ref->allocation, what));
	vmm_os_mutex_unlock(&adapter->state_lock);
	return excess;
}

/* All or nothing: the lists still fit, counted as they will be. */
static NTSTATUS change(const struct update *u, const struct properties *p)
{
	struct vmm_allocation *a = u->ref->allocation;
	const struct properties before = now(a);

	account_all(u, OFF_THE_SUMS);
	become(a, p);
	uint64_t excess = account_all(u, EXCESS);
	if (excess)
		become(a, &before);
	account_all(u, INTO_THE_SUMS);
	if (!excess)
		return STATUS_SUCCESS;
	vmm_reason(u->device->adapter->observe, STATUS_NO_MEMORY, u->device->process->id,
		   u->ref->handle,
		   "PRI-15: with 0x%08x in segment set 0x%x a device's list exceeds what there is "
		   "by %llu bytes",
		   u->ref->handle, p->write_set, (unsigned long long)excess);
	return STATUS_NO_MEMORY;
}

static NTSTATUS move(struct update *u)
{
	if (!u->ref->residency_count || vmm_resident_bring_in(u->device, &u->ref, 1))
		return STATUS_SUCCESS;
	u->request->fence_value = vmm_paging_operation_add(u->queue, u->operation, &u->ref, 1);
	u->operation = NULL;
	return STATUS_PENDING;
}

/* STATUS_PENDING: something changes. */
static NTSTATUS look(struct update *u, struct properties *p)
{
	NTSTATUS status = vmm_device_lost(u->device) ? STATUS_DEVICE_REMOVED : find(u);

	if (NT_SUCCESS(status))
		status = check_allocation(u);
	if (!NT_SUCCESS(status))
		return status;
	const struct properties before = now(u->ref->allocation);
	*p = wanted(u);
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

/* The submit lock is held, and keeps what a handle names. */
static NTSTATUS update(struct update *u)
{
	struct vmm_adapter *adapter = u->device->adapter;
	struct properties p;
	void *allocation = NULL;

	vmm_paging_lock(adapter);
	NTSTATUS status = look(u, &p);
	if (status == STATUS_PENDING)
		allocation = u->ref->allocation->kmd_allocation;
	vmm_paging_unlock(adapter);
	if (status != STATUS_PENDING)
		return status;
	status = ask_miniport(u, allocation);
	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(adapter);
	status = look(u, &p);
	if (status == STATUS_PENDING) {
		status = change(u, &p);
		if (NT_SUCCESS(status))
			status = move(u);
	}
	vmm_paging_unlock(adapter);
	return status;
}

NTSTATUS vmm_memory_update_property(struct vmm_device *device, struct vmm_property_request *request)
{
	struct update u = {.device = device, .memory = device->adapter->memory, .request = request};
	NTSTATUS status = check_request(&u);

	request->fence_value = 0;
	if (!NT_SUCCESS(status))
		return status;
	u.operation = vmm_paging_operation_create(1);
	if (!u.operation)
		return STATUS_NO_MEMORY;
	vmm_os_mutex_lock(&device->adapter->submit_lock);
	status = update(&u);
	vmm_os_mutex_unlock(&device->adapter->submit_lock);
	vmm_free(u.operation);
	if (status == STATUS_PENDING)
		u.memory->engine->wake(device->adapter);
	return status;
}
