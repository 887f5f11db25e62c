/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: the client takes back what it offered and learns whether the content survived (OFR-06).
 *
 * From 2.0 on the backing store is committed when the call returns (OFR-13). Allocations on a
 * residency list come back into memory, possibly through an operation of a paging queue (OFR-12).
 * Committing can fail only for allocations that were offered with AllowDecommit. Such an allocation
 * stays offered, and the client must reclaim it again (OFR-14).
 */
#include "memory/calls/calls.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

/* ---- giving up system memory ---- */

/* An allocation in a segment does not qualify: placement evicts it there (residency.c). */
static bool may_decommit(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_instance *instance = &allocation->first;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return allocation->offer && allocation->decommit && !instance->retained &&
	       instance->place == VMM_PLACEMENT_SYSTEM && instance->backing.arena &&
	       !vmm_locks(instance) && !vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL);
}

bool vmm_offer_decommit(struct vmm_memory *memory)
{
	struct vmm_instance *least = NULL;
	struct vmm_list *link;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each (link, &memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (may_decommit(a) && (!least || a->first.class_index < least->class_index))
			least = &a->first;
	}
	if (!least)
		return false;
	vmm_residency_drop(memory, least, VIDMM_RESIDENCY_DISCARDED);
	least->discarded = true;
	memory->statistics.bytes_discarded += least->allocation->size_bytes;
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DISCARD, least->allocation->owner,
		  least->handle, 0, least->allocation->size_bytes, 0, 0, 0);
	return true;
}

/* ---- reclaim ---- */

enum { INLINE_ENTRIES = 32 };

/* An allocation that an entry of the request names. */
struct resolved {
	struct vmm_ref *ref;
	uint32_t entry;
};

struct reclaim {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_reclaim_request *request;
	struct vmm_paging_queue *queue;
	struct vmm_paging_operation *operation;
	struct resolved inline_entries[INLINE_ENTRIES], *resolved;
	struct vmm_ref **listed; /* references on a residency list, each once */
	uint32_t entry, count, listed_count;
};

static NTSTATUS count_one(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct reclaim *r = context;

	vmm_assert_held(&device->adapter->paging_lock);
	(void)device;
	(void)ref;
	r->count++;
	return STATUS_SUCCESS;
}

static NTSTATUS record_one(struct vmm_device *device, struct vmm_ref *ref, void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct reclaim *r = context;

	vmm_assert_held(&device->adapter->paging_lock);
	(void)device;
	r->resolved[r->count++] = (struct resolved){ref, r->entry};
	return STATUS_SUCCESS;
}

static NTSTATUS find_queue(struct reclaim *r)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	uint32_t handle = r->request->queue;

	vmm_assert_held(&r->device->adapter->paging_lock);
	if (!r->request->queued)
		return STATUS_SUCCESS;
	r->queue = vmm_paging_queue_find_locked(r->device, handle);
	if (!r->queue)
		return vmm_refuse_rule(
			r->device->adapter->observe, STATUS_INVALID_PARAMETER, "OFR-12",
			r->device->process->id, handle,
			"reclaim on 0x%08x, which is not a live paging queue of the device",
			handle);
	r->listed = vmm_calloc(r->count + 1, sizeof(struct vmm_ref *));
	r->operation = vmm_paging_operation_create(r->count);
	return r->listed && r->operation ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

/*
 * Resolves the entries. Caller holds the paging lock, so the references stay valid until it is
 * released.
 */
static NTSTATUS resolve_entries(struct reclaim *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_offer_walk walk = {r->device, &r->request->set, "OFR-02", true};
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&r->device->adapter->paging_lock);
	vmm_process_lock(r->device->process);
	for (uint32_t i = 0; i < walk.set->count && NT_SUCCESS(status); i++)
		status = vmm_offer_each(&walk, i, count_one, r);
	if (NT_SUCCESS(status))
		status = find_queue(r);
	if (r->count > INLINE_ENTRIES)
		r->resolved = vmm_calloc(r->count, sizeof(struct resolved));
	if (NT_SUCCESS(status) && !r->resolved)
		status = STATUS_NO_MEMORY;
	r->count = 0;
	for (r->entry = 0; r->entry < walk.set->count && NT_SUCCESS(status); r->entry++)
		status = vmm_offer_each(&walk, r->entry, record_one, r);
	vmm_process_unlock(r->device->process);
	return status;
}

/* Commits zeroed pages, the same as a lock of the allocation would (OFR-13). */
static bool commit_backing(struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = &allocation->first;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!memory->model->reclaim_commits || !allocation->offer ||
	    (instance->place != VMM_PLACEMENT_LOST && instance->place != VMM_PLACEMENT_FRESH))
		return true;
	return vmm_ok(vmm_residency_ensure_backing(memory, instance));
}

/* Runs before anything that the client can see is changed. */
static NTSTATUS commit_all(const struct reclaim *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct vmm_ref *ref = r->resolved[i].ref;

		if (ref->allocation->decommit || commit_backing(r->memory, ref->allocation))
			continue;
		return vmm_refuse_reason(
			r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id,
			ref->handle,
			"OFR-13: no system memory for the %llu bytes of 0x%08x: it cannot be "
			"reclaimed",
			(unsigned long long)ref->allocation->size_bytes, ref->handle);
	}
	return STATUS_SUCCESS;
}

/* Ends the offer. Returns true if the content of the current instance was lost. */
static bool reclaim_content(struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;
	bool lost = false;

	vmm_assert_held(&memory->adapter->paging_lock);
	/* A queued offer that has not taken effect yet is canceled, too (OFR-10). */
	(void)vmm_is_offered_locked(allocation);
	vmm_offer_cancel(allocation);
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		/* Only the current instance has content that counts (REN-20). */
		lost |= i->discarded && i->state == VMM_INSTANCE_CURRENT;
		i->discarded = false;
		/* State machine 4.1: an instance that the offer made LOST becomes FRESH again. */
		if (i->place == VMM_PLACEMENT_LOST)
			i->place = VMM_PLACEMENT_FRESH;
		else if (i->place == VMM_PLACEMENT_MEMORY || i->place == VMM_PLACEMENT_APERTURE)
			vmm_residency_touch(memory, i); /* the client is about to use it */
	}
	vmm_allocation_set_offer(allocation, 0); /* also valid if it was not offered (OFR-07) */
	allocation->decommit = allocation->uncommitted = false;
	return lost;
}

static void record_listed(struct reclaim *r, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	if (!r->queue || !ref->residency_count || vmm_is_offered_locked(ref->allocation))
		return;
	for (uint32_t i = 0; i < r->listed_count; i++)
		if (r->listed[i] == ref)
			return;
	r->listed[r->listed_count++] = ref;
}

static uint32_t reclaim_one(struct reclaim *r, struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_allocation *allocation = ref->allocation;
	uint32_t result = VMM_RECLAIM_OK;

	vmm_assert_held(&r->device->adapter->paging_lock);
	if (allocation->decommit && !commit_backing(r->memory, allocation)) {
		allocation->uncommitted = true;
		result = VMM_RECLAIM_NOT_COMMITTED;
	} else if (reclaim_content(r->memory, allocation)) {
		result = VMM_RECLAIM_DISCARDED;
	}
	record_listed(r, ref);
	/*
	 * Most clients lock next what they reclaim. From 2.0 on the first lock notes that the store
	 * is stale; one by the word would not.
	 */
	if (result == VMM_RECLAIM_OK && !ref->instance->has_fast_lock &&
	    (ref->instance->store_stale || !allocation->adapter->client_synchronizes))
		vmm_fast_lock_enable(ref);
	vmm_event(r->device->adapter->observe, VIDMM_EVENT_RECLAIM, r->device->process->id,
		  ref->handle, 0, allocation->size_bytes, result, 0, 0);
	return result;
}

static void reclaim_all(struct reclaim *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t *results = r->request->results;

	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; results && i < r->request->set.count; i++)
		results[i] = VMM_RECLAIM_OK;
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t result = reclaim_one(r, r->resolved[i].ref);

		/* A resource entry reports the worst result of its allocations (OFR-06). */
		if (results && results[r->resolved[i].entry] < result)
			results[r->resolved[i].entry] = result;
	}
}

/* ---- bringing listed allocations back into memory (OFR-12) ---- */

static NTSTATUS queue_rest(struct reclaim *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	if (!r->listed_count || vmm_residency_list_bring_in(r->device, r->listed, r->listed_count))
		return STATUS_SUCCESS;
	r->request->fence_value =
		vmm_paging_operation_add(r->queue, r->operation, r->listed, r->listed_count);
	r->operation = NULL;
	return STATUS_PENDING;
}

/* Caller holds the paging lock. All entries are validated before the first one is changed. */
static NTSTATUS reclaim_locked(struct reclaim *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	/* the device was lost before the lock was taken (TDR-07) */
	NTSTATUS status = vmm_device_lost(r->device) ? STATUS_DEVICE_REMOVED : resolve_entries(r);

	if (NT_SUCCESS(status))
		status = commit_all(r);
	if (!NT_SUCCESS(status))
		return status;
	reclaim_all(r);
	return queue_rest(r);
}

static NTSTATUS check(struct vmm_device *device, const struct vmm_reclaim_request *request)
{
	if (request->queued) {
		NTSTATUS status =
			vmm_model_check_call(device->adapter, device->process, 0,
					     "reclaim on a paging queue", ", which has none");

		if (!NT_SUCCESS(status))
			return status;
	}
	if (!request->needs_results || request->results || !request->set.count)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, "OFR-14", device->process->id,
		0,
		"reclaim of %u entries without pResults, the only place that can tell of "
		"NOT_COMMITTED",
		request->set.count);
}

NTSTATUS vmm_memory_reclaim(struct vmm_device *device, struct vmm_reclaim_request *request)
{
	struct reclaim r = {
		.device = device, .memory = device->adapter->memory, .request = request};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = vmm_offer_check_set(device, &request->set);
	request->fence_value = 0;
	if (NT_SUCCESS(status))
		status = check(device, request);
	if (!NT_SUCCESS(status))
		return status;
	r.resolved = r.inline_entries;
	vmm_paging_lock(device->adapter);
	status = reclaim_locked(&r);
	vmm_paging_commit(device->adapter);
	if (r.resolved != r.inline_entries)
		vmm_free(r.resolved);
	vmm_free(r.listed);
	vmm_free(r.operation);
	if (status == STATUS_PENDING)
		r.memory->engine->wake(device->adapter);
	return status;
}
