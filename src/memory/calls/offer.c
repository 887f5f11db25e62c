/* SPDX-License-Identifier: MIT */
/*
 * Offers (OFR), priorities and residency queries (PRI); reclaim.c ends offers.
 *
 * An offer only changes the eviction class of the allocation. If the memory is needed, the content
 * is discarded without a copy and without a notification (victim.c).
 */
#include "memory/calls/calls.h"
#include "memory/calls/creation.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"

enum { OFFER_LOW = 1, OFFER_AUTO = 4, RESIDENT_GPU = 1, RESIDENT_SHARED = 2, NOT_RESIDENT = 3 };
enum { ALLOW_DECOMMIT = 0x1 }; /* D3DDDI_OFFER_FLAGS */

static NTSTATUS report(struct vmm_device *device, const char *rule, uint32_t handle,
		       const char *what)
{
	return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, rule,
			       device->process->id, handle, "%s", what);
}

static NTSTATUS each_of_resource(const struct vmm_offer_walk *walk, const void *runtime,
				 vmm_offer_fn *fn, void *context)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_resource *resource = vmm_resource_find_locked(walk->device, runtime);
	struct vmm_list *link;
	NTSTATUS status = STATUS_SUCCESS;

	if (!resource)
		return report(walk->device, walk->rule, 0,
			      "the device has no resource with that runtime handle");
	vmm_list_for_each (link, &resource->refs) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, resource_link);

		if (walk->no_presentation && ref->allocation->primary)
			return report(
				walk->device, "OFR-11", ref->handle,
				"a resource with a primary must be offered and reclaimed by its "
				"allocation handles");
		/*
		 * A renamed allocation has several handles. That of the newest instance represents
		 * it. (REN-20)
		 */
		if (ref->instance->state == VMM_INSTANCE_CURRENT)
			status = fn(walk->device, ref, context);
		if (!NT_SUCCESS(status))
			break;
	}
	return status;
}

NTSTATUS vmm_offer_each(const struct vmm_offer_walk *walk, uint32_t index, vmm_offer_fn *fn,
			void *context)
{
	if (walk->set->resources)
		return each_of_resource(walk, walk->set->resources[index], fn, context);
	uint32_t handle = walk->set->allocations[index];
	struct vmm_ref *ref = vmm_ref_lookup_locked(walk->device, handle);

	if (!ref) {
		vmm_ref_report(walk->device, handle, walk->rule, "list of allocations");
		return STATUS_INVALID_PARAMETER;
	}
	return fn(walk->device, ref, context);
}

NTSTATUS vmm_offer_check_set(struct vmm_device *device, const struct vmm_handle_set *set)
{
	if ((set->resources != NULL) == (set->allocations != NULL))
		return report(device, "OFR-02", 0,
			      "exactly one of pResources and HandleList must be given");
	return STATUS_SUCCESS;
}

static NTSTATUS may_offer(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_offer_request *offer = context;
	struct vmm_list *link;

	vmm_assert_held(&device->adapter->paging_lock);
	if (ref->allocation->pinned)
		return report(device, "OFR-08", ref->handle, "offer of a pinned allocation");
	vmm_list_for_each (link, &ref->allocation->instances) {
		const struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (vmm_locks(i))
			return report(device, "OFR-08", ref->handle,
				      "offer of a locked allocation");
		if (offer->immediately && vmm_instance_busy(i, VMM_USE_ANY, NULL, NULL))
			return vmm_refuse_reason(
				device->adapter->observe, STATUS_GRAPHICS_ALLOCATION_BUSY,
				device->process->id, ref->handle,
				"OFR-16: OfferImmediately of 0x%08x: queued work still uses it",
				ref->handle);
	}
	return STATUS_SUCCESS;
}

/*
 * From WDDM 2.0 on no list tells which packets access the allocation. Every packet that the device
 * has queued may, if the allocation is on its residency list, or was when they were queued.
 * (OFR-01)
 */
static bool is_in_queued_work(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (ref->residency_count)
		vmm_ref_note_queued(ref);
	else if (vmm_list_empty(&ref->leaving_link)) /* else: packets from when it was listed */
		return false;
	return !vmm_ref_queued_is_done(ref);
}

/* Offers the content. It may be discarded once the queued work is done. (OFR-01, OFR-07) */
static NTSTATUS do_offer(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_offer_request *offer = context;
	uint32_t priority = offer->priority;
	struct vmm_allocation *allocation = ref->allocation;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_offer_cancel(allocation); /* the later of two offers takes effect */
	if (is_in_queued_work(ref)) {
		vmm_allocation_set_offer(allocation, 0);
		vmm_offer_after_device(ref, priority);
		allocation->decommit = offer->flags & ALLOW_DECOMMIT;
		allocation->uncommitted = false;
		return STATUS_SUCCESS;
	}
	vmm_allocation_set_offer(allocation, priority);
	allocation->decommit = offer->flags & ALLOW_DECOMMIT;
	allocation->uncommitted = false; /* the next reclaim tries again to commit memory */
	vmm_event(device->adapter->observe, VIDMM_EVENT_OFFER, device->process->id, ref->handle, 0,
		  allocation->size_bytes, priority, 0, 0);
	return STATUS_SUCCESS;
}

static void lock_both(struct vmm_device *device)
	VMM_ACQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	vmm_paging_lock(device->adapter);
	vmm_process_lock(device->process);
}

static void unlock_both(struct vmm_device *device)
	VMM_RELEASES(vmm_process_lock_class, vmm_paging_lock_class)
{
	vmm_process_unlock(device->process);
	vmm_paging_commit(device->adapter);
}

/* AllowDecommit needs WDDM 2.x. (OFR-14) */
static NTSTATUS check_flags(struct vmm_device *device, uint32_t flags)
{
	if (flags & ~(uint32_t)ALLOW_DECOMMIT)
		return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "OFR-14",
				       device->process->id, 0, "offer with reserved flags 0x%x",
				       flags);
	if (!flags)
		return STATUS_SUCCESS;
	return vmm_model_check_call(device->adapter, device->process, 0,
				    "OFR-14: offer with AllowDecommit", "");
}

NTSTATUS vmm_memory_offer(struct vmm_device *device, const struct vmm_handle_set *set,
			  const struct vmm_offer_request *request)
{
	const struct vmm_offer_walk walk = {device, set, "OFR-02", true};
	struct vmm_offer_request offer = *request;
	uint32_t priority = request->priority;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = vmm_offer_check_set(device, set);
	if (NT_SUCCESS(status))
		status = check_flags(device, request->flags);
	if (!NT_SUCCESS(status))
		return status;
	if (priority < OFFER_LOW || priority > OFFER_AUTO)
		return vmm_refuse_rule(device->adapter->observe, STATUS_INVALID_PARAMETER, "OFR-03",
				       device->process->id, 0,
				       "offer priority %u: valid priorities are 1 to 4", priority);
	lock_both(device);
	for (uint32_t i = 0; i < set->count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(&walk, i, may_offer, &offer);
	for (uint32_t i = 0; i < set->count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(&walk, i, do_offer, &offer);
	unlock_both(device);
	return status;
}

static NTSTATUS accept_any(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	(void)device;
	(void)ref;
	(void)context;
	return STATUS_SUCCESS;
}

/* Either a resource and no list, or a list and no resource. (PRI-03, PRI-04) */
static NTSTATUS check_shape(struct vmm_device *device, const struct vmm_shape *shape,
			    const void *values, const char *rule)
{
	if (!values || (shape->resource && (shape->count || shape->handles)) ||
	    (!shape->resource && (!shape->count || !shape->handles)))
		return report(device, rule, 0,
			      "needs an array of values, and either a resource or a list of "
			      "allocations, not both");
	return STATUS_SUCCESS;
}

static struct vmm_handle_set handle_set(const struct vmm_shape *shape)
{
	return (struct vmm_handle_set){.resources = shape->resource ? &shape->resource : NULL,
				       .allocations = shape->handles,
				       .count = shape->resource ? 1 : shape->count};
}

static NTSTATUS do_priority(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	ref->allocation->priority = *(const uint32_t *)context;
	vmm_allocation_reclass(ref->allocation);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_memory_set_priority(struct vmm_device *device, const struct vmm_shape *shape,
				 const uint32_t *priorities)
{
	const struct vmm_handle_set set = handle_set(shape);
	const struct vmm_offer_walk walk = {device, &set, "PRI-03", false};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_shape(device, shape, priorities, walk.rule);
	if (!NT_SUCCESS(status))
		return status;
	lock_both(device);
	for (uint32_t i = 0; i < set.count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(&walk, i, accept_any, NULL);
	for (uint32_t i = 0; i < set.count && NT_SUCCESS(status); i++) {
		uint32_t priority = priorities[i];

		status = vmm_offer_each(&walk, i, do_priority, &priority);
	}
	unlock_both(device);
	return status;
}

static NTSTATUS do_residency(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t *worst = context;
	uint32_t status = NOT_RESIDENT;

	vmm_assert_held(&device->adapter->paging_lock);
	(void)device;
	if (ref->instance->place == VMM_PLACEMENT_MEMORY)
		status = RESIDENT_GPU;
	else if (ref->instance->place == VMM_PLACEMENT_APERTURE)
		status = RESIDENT_SHARED;
	else if (ref->residency_count && vmm_instance_is_resident_in_system(ref->instance))
		status = RESIDENT_SHARED; /* PAG-24 */
	if (status > *worst)              /* PRI-04: a resource reports its worst member */
		*worst = status;
	return STATUS_SUCCESS;
}

/*
 * Queries one value per entry: starts with `first`, and lets `fn` combine it with each allocation.
 */
static NTSTATUS query(const struct vmm_offer_walk *walk, uint32_t first, vmm_offer_fn *fn,
		      uint32_t *values)
{
	NTSTATUS status = STATUS_SUCCESS;

	lock_both(walk->device);
	for (uint32_t i = 0; i < walk->set->count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(walk, i, accept_any, NULL);
	for (uint32_t i = 0; i < walk->set->count && NT_SUCCESS(status); i++) {
		values[i] = first;
		status = vmm_offer_each(walk, i, fn, &values[i]);
	}
	unlock_both(walk->device);
	return status;
}

NTSTATUS vmm_memory_query_residency(struct vmm_device *device, const struct vmm_shape *shape,
				    uint32_t *residency)
{
	const struct vmm_handle_set set = handle_set(shape);
	const struct vmm_offer_walk walk = {device, &set, "PRI-04", false};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_shape(device, shape, residency, walk.rule);
	return NT_SUCCESS(status) ? query(&walk, RESIDENT_GPU, do_residency, residency) : status;
}

static NTSTATUS do_read_priority(struct vmm_device *device, struct vmm_ref *ref, void *context)
{
	uint32_t *highest = context;

	(void)device;
	if (ref->allocation->priority > *highest)
		*highest = ref->allocation->priority;
	return STATUS_SUCCESS;
}

/*
 * Returns the priority that was set, or else the one that the miniport gave (PRI-01). That a
 * resource returns its highest one is inferred.
 */
NTSTATUS vmm_memory_query_priority(struct vmm_device *device, const struct vmm_shape *shape,
				   uint32_t *priorities)
{
	const struct vmm_handle_set set = handle_set(shape);
	const struct vmm_offer_walk walk = {device, &set, "PRI-03", false};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_shape(device, shape, priorities, walk.rule);
	return NT_SUCCESS(status) ? query(&walk, 0, do_read_priority, priorities) : status;
}
