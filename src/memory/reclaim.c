/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: what was offered is its client's again, and he hears whether its content is still there (OFR-06). From 2.0 on its
 * system memory is there when the call returns (OFR-13), and what is on a residency list comes back into memory, which a
 * paging queue may have to do (OFR-12). Only of what was offered with AllowDecommit may there be no system memory to be
 * had: that stays as it is, and is to be reclaimed again (OFR-14).
 */
#include "memory/memory_private.h"

/* ---- giving up system memory ---- */

/* In a segment it leaves by the ways of residency.c, whoever is looking for room just now. */
static bool may_decommit(const struct vmm_allocation *allocation)
{
	const struct vmm_instance *instance = &allocation->first;

	return allocation->offer && allocation->decommit && !instance->kept &&
	       instance->place == VMM_PLACE_SYSTEM && instance->backing.arena &&
	       !vmm_locks(instance) && !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

bool vmm_offer_decommit(struct vmm_memory *memory)
{
	struct vmm_instance *least = NULL;
	struct vmm_list *link;

	vmm_list_for_each (link, &memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (may_decommit(a) && (!least || a->first.class_index < least->class_index))
			least = &a->first;
	}
	if (!least)
		return false;
	vmm_residency_drop(memory, least, VIDMM_RESIDENCY_DISCARDED);
	least->discarded = true;
	memory->figures.discarded_bytes += least->allocation->size_bytes;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DISCARD, least->allocation->owner,
		  least->handle, 0, least->allocation->size_bytes, 0, 0, 0);
	return true;
}

/* ---- reclaim ---- */

enum { FEW = 32 };

/* An allocation that an entry names. */
struct named {
	struct vmm_ref *ref;
	uint32_t entry;
};

struct reclaim {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_reclaim_request *request;
	struct vmm_paging_queue *queue;
	struct vmm_paging_operation *operation;
	struct named few[FEW], *named;
	struct vmm_ref **listed; /* those on a residency list, once each */
	uint32_t entry, count, listed_count;
};

static NTSTATUS count_one(struct vmm_device *device, struct vmm_ref *ref, void *context)
{
	struct reclaim *r = context;

	(void)device;
	(void)ref;
	r->count++;
	return STATUS_SUCCESS;
}

static NTSTATUS keep_one(struct vmm_device *device, struct vmm_ref *ref, void *context)
{
	struct reclaim *r = context;

	(void)device;
	r->named[r->count++] = (struct named){ref, r->entry};
	return STATUS_SUCCESS;
}

static NTSTATUS find_queue(struct reclaim *r)
{
	uint32_t handle = r->request->queue;

	if (!r->request->queued)
		return STATUS_SUCCESS;
	r->queue = vmm_paging_queue_find_locked(r->device, handle);
	if (!r->queue) {
		vmm_finding(r->device->adapter->observe, "OFR-12", r->device->process->id, handle,
			    "reclaim on 0x%08x, which is not a live paging queue of the device",
			    handle);
		return STATUS_INVALID_PARAMETER;
	}
	r->listed = vmm_calloc(r->count + 1, sizeof(struct vmm_ref *));
	r->operation = vmm_paging_operation_create(r->count);
	return r->listed && r->operation ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/* Paging lock held: what is found stays until it is given back. */
static NTSTATUS find(struct reclaim *r)
{
	const struct vmm_offer_walk walk = {r->device, &r->request->set, "OFR-02", true};
	NTSTATUS status = STATUS_SUCCESS;

	vmm_os_mutex_lock(&r->device->process->lock);
	for (uint32_t i = 0; i < walk.set->count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(&walk, i, count_one, r);
	if (NT_SUCCESS(status))
		status = find_queue(r);
	if (r->count > FEW)
		r->named = vmm_calloc(r->count, sizeof(struct named));
	if (NT_SUCCESS(status) && !r->named)
		status = STATUS_NO_MEMORY;
	r->count = 0;
	for (r->entry = 0; r->entry < walk.set->count && NT_SUCCESS(status); r->entry++)
		status = vmm_offer_each(&walk, r->entry, keep_one, r);
	vmm_os_mutex_unlock(&r->device->process->lock);
	return status;
}

/* OFR-13: zero pages, as whoever locks it would get them. */
static bool commit(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_instance *instance = &allocation->first;

	if (!allocation->adapter->wddm2 || !allocation->offer ||
	    (instance->place != VMM_PLACE_LOST && instance->place != VMM_PLACE_FRESH))
		return true;
	return vmm_ok(vmm_residency_give_backing(memory, instance));
}

/* Before anything is changed that the client could see. */
static NTSTATUS commit_all(const struct reclaim *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct vmm_ref *ref = r->named[i].ref;

		if (ref->allocation->decommit || commit(r->memory, ref->allocation))
			continue;
		vmm_reason(r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id,
			   ref->handle,
			   "OFR-13: no system memory for the %llu bytes of 0x%08x, which is to be "
			   "reclaimed",
			   (unsigned long long)ref->allocation->size_bytes, ref->handle);
		return STATUS_NO_MEMORY;
	}
	return STATUS_SUCCESS;
}

/* Was any content lost? */
static bool take_back(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_list *link;
	bool lost = false;

	/* OFR-10: what is still on its way to being offered is wanted back, too. */
	(void)vmm_is_offered_locked(allocation);
	vmm_offer_cancel(allocation);
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		lost |= i->discarded &&
			i->state ==
				VMM_INSTANCE_CURRENT; /* REN-20: the others' content is nobody's */
		i->discarded = false;
		if (i->place == VMM_PLACE_LOST)
			i->place =
				VMM_PLACE_FRESH; /* state machine 4.1: LOST by an offer, reclaimed */
		else if (i->place == VMM_PLACE_MEMORY || i->place == VMM_PLACE_APERTURE)
			vmm_residency_touch(memory, i); /* wanted back: about to be used */
	}
	vmm_allocation_set_offer(allocation, 0); /* OFR-07: it need not have been offered */
	allocation->decommit = allocation->uncommitted = false;
	return lost;
}

static void note_listed(struct reclaim *r, struct vmm_ref *ref)
{
	if (!r->queue || !ref->residency_count || vmm_is_offered_locked(ref->allocation))
		return;
	for (uint32_t i = 0; i < r->listed_count; i++)
		if (r->listed[i] == ref)
			return;
	r->listed[r->listed_count++] = ref;
}

static uint32_t reclaim_one(struct reclaim *r, struct vmm_ref *ref)
{
	struct vmm_allocation *allocation = ref->allocation;
	uint32_t result = VMM_RECLAIM_OK;

	if (allocation->decommit && !commit(r->memory, allocation)) {
		allocation->uncommitted = true;
		result = VMM_RECLAIM_NOT_COMMITTED;
	} else if (take_back(r->memory, allocation)) {
		result = VMM_RECLAIM_DISCARDED;
	}
	note_listed(r, ref);
	vmm_event(r->device->adapter->observe, VIDMM_EVENT_RECLAIM, r->device->process->id,
		  ref->handle, 0, allocation->size_bytes, result, 0, 0);
	return result;
}

static void reclaim_all(struct reclaim *r)
{
	uint32_t *results = r->request->results;

	for (uint32_t i = 0; results && i < r->request->set.count; i++)
		results[i] = VMM_RECLAIM_OK;
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t result = reclaim_one(r, r->named[i].ref);

		/* OFR-06: the worst of a resource's allocations */
		if (results && results[r->named[i].entry] < result)
			results[r->named[i].entry] = result;
	}
}

/* ---- back into memory (OFR-12) ---- */

static NTSTATUS queue_rest(struct reclaim *r)
{
	if (!r->listed_count || vmm_resident_bring_in(r->device, r->listed, r->listed_count))
		return STATUS_SUCCESS;
	r->request->fence_value =
		vmm_paging_operation_add(r->queue, r->operation, r->listed, r->listed_count);
	r->operation = NULL;
	return STATUS_PENDING;
}

/* Paging lock held. All entries are looked at before the first is touched. */
static NTSTATUS reclaim_locked(struct reclaim *r)
{
	NTSTATUS status = vmm_device_lost(r->device)
				  ? STATUS_DEVICE_REMOVED /* meanwhile (TDR-07) */
				  : find(r);

	if (NT_SUCCESS(status))
		status = commit_all(r);
	if (!NT_SUCCESS(status))
		return status;
	reclaim_all(r);
	return queue_rest(r);
}

static NTSTATUS check(struct vmm_device *device, const struct vmm_reclaim_request *request)
{
	if (request->queued && !device->adapter->wddm2) {
		vmm_reason(device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, 0,
			   "reclaim on a paging queue: the adapter's miniport is of WDDM 1.x, "
			   "which has none");
		return STATUS_NOT_SUPPORTED;
	}
	if (!request->needs_results || request->results || !request->set.count)
		return STATUS_SUCCESS;
	vmm_finding(device->adapter->observe, "OFR-14", device->process->id, 0,
		    "reclaim of %u entries without pResults, the only place that can tell of "
		    "NOT_COMMITTED",
		    request->set.count);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_memory_reclaim(struct vmm_device *device, struct vmm_reclaim_request *request)
{
	struct reclaim r = {
		.device = device, .memory = device->adapter->memory, .request = request};
	NTSTATUS status = vmm_offer_check_set(device, &request->set);

	request->fence_value = 0;
	if (NT_SUCCESS(status))
		status = check(device, request);
	if (!NT_SUCCESS(status))
		return status;
	r.named = r.few;
	vmm_paging_lock(device->adapter);
	status = reclaim_locked(&r);
	vmm_paging_unlock(device->adapter);
	if (r.named != r.few)
		vmm_free(r.named);
	vmm_free(r.listed);
	vmm_free(r.operation);
	if (status == STATUS_PENDING)
		r.memory->engine->wake(device->adapter);
	return status;
}
