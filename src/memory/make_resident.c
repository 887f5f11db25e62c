/* SPDX-License-Identifier: MIT */
/*
 * MakeResident and Evict (RES-02, RES-03, RES-05, RES-06). MakeResident is all or nothing: everything is checked, and
 * counted, before anything is counted. What can be placed at once is; the rest becomes an operation of the queue.
 */
#include "memory/memory_private.h"

enum {
	CANT_TRIM_FURTHER = 0x1,
	MUST_SUCCEED = 0x2,
	EVICT_ONLY_IF_NECESSARY = 0x1,
	NOT_WRITTEN_TO = 0x2,
	FLAGS = 0x3,
};

struct request {
	struct vmm_device *device;
	struct vmm_memory *memory;
	struct vmm_residency_request *request;
	struct vmm_paging_queue *queue;
	struct vmm_ref **refs;
	struct vmm_ref **added; /* those that are not on the list yet, once each */
	uint32_t added_count;
};

static NTSTATUS broke(const struct request *r, const char *rule, uint32_t handle, const char *what)
{
	vmm_finding(r->device->adapter->observe, rule, r->device->process->id, handle,
		    "%u allocations, flags 0x%x: %s", r->request->count, r->request->flags, what);
	return STATUS_INVALID_PARAMETER;
}

static NTSTATUS check_version(const struct request *r, const char *what)
{
	if (r->device->adapter->wddm2)
		return STATUS_SUCCESS;
	vmm_reason(r->device->adapter->observe, STATUS_NOT_SUPPORTED, r->device->process->id, 0,
		   "%s: the adapter's miniport is of WDDM 1.x, where references decide residency",
		   what);
	return STATUS_NOT_SUPPORTED;
}

/* Paging lock held: what is found stays until it is given back. */
static NTSTATUS find_refs(struct request *r, const char *what)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_os_mutex_lock(&r->device->process->lock);
	for (uint32_t i = 0; i < r->request->count && NT_SUCCESS(status); i++) {
		r->refs[i] = vmm_ref_lookup_locked(r->device, r->request->handles[i]);
		if (r->refs[i])
			continue;
		vmm_ref_report(r->device, r->request->handles[i], "PRI-09", what);
		status = STATUS_INVALID_PARAMETER; /* RES-02 */
	}
	vmm_os_mutex_unlock(&r->device->process->lock);
	return status;
}

static bool init(struct request *r)
{
	r->refs = vmm_calloc(r->request->count + 1, sizeof(struct vmm_ref *));
	r->added = vmm_calloc(r->request->count + 1, sizeof(struct vmm_ref *));
	return r->refs && r->added;
}

static void fini(struct request *r)
{
	vmm_free(r->refs);
	vmm_free(r->added);
}

/* ---- MakeResident ---- */

static NTSTATUS check_make(const struct request *r)
{
	uint32_t flags = r->request->flags;

	if (flags & ~(uint32_t)FLAGS)
		return broke(r, "PRI-09", 0, "make resident with reserved flags");
	if ((flags & MUST_SUCCEED) && !(flags & CANT_TRIM_FURTHER))
		return broke(r, "RES-05", 0,
			     "make resident with MustSucceed and without CantTrimFurther (PRI-08)");
	return STATUS_SUCCESS;
}

/* What is named twice, or is on the list already, takes no more room. */
static void collect_added(struct request *r)
{
	for (uint32_t i = 0; i < r->request->count; i++) {
		struct vmm_ref *ref = r->refs[i];

		if (ref->residency_count || ref->instance->wanted == UINT64_MAX)
			continue;
		ref->instance->wanted = UINT64_MAX; /* taken back below */
		r->added[r->added_count++] = ref;
	}
	for (uint32_t i = 0; i < r->added_count; i++)
		r->added[i]->instance->wanted = 0;
}

/* RES-05, PRI-07: the budget, or with CantTrimFurther only what there is. */
static NTSTATUS check_room(struct request *r)
{
	uint64_t over = vmm_budget_excess(r->device, r->added, r->added_count);
	uint64_t beyond = vmm_resident_excess(r->device, r->added, r->added_count);
	bool may_pass = r->request->flags & CANT_TRIM_FURTHER;

	r->request->bytes_to_trim = vmm_max_u64(over, beyond);
	if (!beyond && (!over || may_pass)) {
		r->request->bytes_to_trim = over;
		return STATUS_SUCCESS;
	}
	vmm_reason(r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id, 0,
		   "RES-05: make resident: %llu bytes over the budget, %llu more than the segments "
		   "hold together with the device's list (PRI-07)",
		   (unsigned long long)over, (unsigned long long)beyond);
	return STATUS_NO_MEMORY;
}

static void uncount(struct request *r, uint32_t count)
{
	while (count)
		vmm_resident_unlist(r->refs[--count]);
}

static vmm_status place_now(struct request *r, uint64_t *sequence)
{
	uint64_t round = vmm_resident_round(r->memory);

	vmm_resident_want(r->device, round);
	for (uint32_t i = 0; i < r->request->count; i++) {
		struct vmm_instance *instance = r->refs[i]->instance;

		if (instance->held)
			return VMM_PENDING;
		if (vmm_resident_stays_out(instance))
			continue;
		vmm_status status = vmm_resident_place(r->memory, instance, round);
		if (status != VMM_OK)
			return status;
		*sequence = vmm_max_u64(*sequence, vmm_resident_paged(instance));
	}
	return VMM_OK;
}

/* Counted; now in place, or on the way. */
static NTSTATUS bring_in(struct request *r)
{
	struct vmm_adapter *adapter = r->device->adapter;
	uint64_t sequence = 0;
	vmm_status status = place_now(r, &sequence);

	vmm_memory_flush_locked(adapter);
	if (status == VMM_OK && vmm_timeline_done(adapter, adapter->paging_timeline, sequence)) {
		r->request->fence_value = 0; /* PRI-06 */
		return STATUS_SUCCESS;
	}
	/* The adapter may be reset, and may be not: then it is done afterwards. */
	if (status == VMM_DEVICE_REMOVED && atomic_load(&adapter->recovering))
		status = VMM_PENDING;
	if (status != VMM_OK && status != VMM_PENDING)
		return status == VMM_NO_VIDEO_MEMORY ? STATUS_NO_MEMORY : status;
	status = vmm_paging_queue_add(r->queue, r->refs, r->request->count,
				      &r->request->fence_value);
	return vmm_ok(status) ? STATUS_PENDING : status;
}

/* TDR-11: what has no content any more is not brought in, so it cannot be said to be there. */
static NTSTATUS check_content(const struct request *r)
{
	for (uint32_t i = 0; i < r->request->count; i++) {
		const struct vmm_allocation *a = r->refs[i]->allocation;

		if (vmm_likely(!a->content_lost))
			continue;
		vmm_reason(r->device->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
			   r->device->process->id, r->request->handles[i],
			   "%s: make resident of 0x%08x, whose content was lost%s",
			   a->reset_lost ? "TDR-11" : "PAG-20", r->request->handles[i],
			   a->reset_lost ? " when the adapter was reset" : "");
		return STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST;
	}
	return STATUS_SUCCESS;
}

static NTSTATUS make_resident_locked(struct request *r)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t counted = 0;

	if (vmm_device_lost(r->device)) /* while it waited for the lock (TDR-07) */
		return STATUS_DEVICE_REMOVED;
	vmm_os_mutex_lock(&r->device->process->lock);
	r->queue = vmm_paging_queue_find_locked(r->device, r->request->queue);
	vmm_os_mutex_unlock(&r->device->process->lock);
	if (!r->queue)
		return broke(r, "RES-02", r->request->queue,
			     "make resident on what is not a live paging queue of the device");
	status = find_refs(r, "make resident");
	if (NT_SUCCESS(status))
		status = check_content(r);
	if (!NT_SUCCESS(status))
		return status;
	if (!vmm_budget_of(r->device))
		return STATUS_NO_MEMORY;
	collect_added(r);
	status = check_room(r);
	while (NT_SUCCESS(status) && counted < r->request->count) {
		status = vmm_resident_list(r->refs[counted]);
		counted += NT_SUCCESS(status);
	}
	if (NT_SUCCESS(status))
		status = bring_in(r);
	if (!NT_SUCCESS(status))
		uncount(r, counted);
	return status;
}

/* RES-05, PRI-08 */
VMM_COLD static void lose_device(struct vmm_device *device, NTSTATUS status)
{
	vmm_reason(
		device->adapter->observe, status, device->process->id, device->handle,
		"RES-05: make resident with MustSucceed failed: the device is in error, state ERROR_OUTOFMEMORY (PRI-08, PRI-16)");
	vmm_device_fail(device, VMM_DEVICE_OUT_OF_MEMORY);
}

NTSTATUS vmm_memory_make_resident(struct vmm_device *device, struct vmm_residency_request *request)
{
	struct request r = {
		.device = device, .memory = device->adapter->memory, .request = request};
	NTSTATUS status = check_version(&r, "make resident");

	request->fence_value = request->bytes_to_trim = 0;
	if (NT_SUCCESS(status))
		status = check_make(&r);
	if (!NT_SUCCESS(status))
		return status;
	status = STATUS_NO_MEMORY;
	if (init(&r)) {
		vmm_paging_lock(device->adapter);
		status = make_resident_locked(&r);
		vmm_paging_unlock(device->adapter);
	}
	fini(&r);
	if (status == STATUS_PENDING)
		device->adapter->memory->engine->wake(device->adapter);
	if (status == STATUS_NO_MEMORY && (request->flags & MUST_SUCCEED))
		lose_device(device, status);
	return status;
}

/* ---- Evict ---- */

static NTSTATUS check_counts(const struct request *r)
{
	for (uint32_t i = 0; i < r->request->count; i++) {
		uint32_t named = 1;

		for (uint32_t j = 0; j < i; j++)
			named += r->refs[j] == r->refs[i];
		if (r->refs[i]->residency_count >= named)
			continue;
		vmm_finding(r->device->adapter->observe, "RES-06", r->device->process->id,
			    r->request->handles[i],
			    "evict of 0x%08x, which is made resident %u times and named %u times",
			    r->request->handles[i], r->refs[i]->residency_count, named);
		return STATUS_INVALID_PARAMETER;
	}
	return STATUS_SUCCESS;
}

static void evict(struct request *r, struct vmm_ref *ref)
{
	vmm_resident_unlist(ref);
	if (r->request->flags & NOT_WRITTEN_TO) { /* whichever Evict carries it (PRI-10) */
		vmm_gate_shut(ref->instance);     /* the next lock is to be seen */
		ref->instance->not_written = true;
	}
	if (ref->residency_count || (r->request->flags & EVICT_ONLY_IF_NECESSARY))
		return;
	vmm_resident_depart(ref);
}

NTSTATUS vmm_memory_evict(struct vmm_device *device, struct vmm_residency_request *request)
{
	struct request r = {
		.device = device, .memory = device->adapter->memory, .request = request};
	NTSTATUS status = check_version(&r, "evict");

	request->bytes_to_trim = 0;
	if (NT_SUCCESS(status) && (request->flags & ~(uint32_t)FLAGS))
		status = broke(&r, "PRI-09", 0, "evict with reserved flags");
	if (!NT_SUCCESS(status))
		return status;
	status = STATUS_NO_MEMORY;
	if (init(&r)) {
		vmm_paging_lock(device->adapter);
		status = vmm_device_lost(device) ? STATUS_DEVICE_REMOVED : find_refs(&r, "evict");
		if (NT_SUCCESS(status))
			status = check_counts(&r);
		for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
			evict(&r, r.refs[i]);
		if (NT_SUCCESS(status))
			request->bytes_to_trim = vmm_budget_excess(device, NULL, 0);
		vmm_paging_unlock(device->adapter);
	}
	fini(&r);
	if (NT_SUCCESS(status))
		device->adapter->memory->engine->wake(device->adapter);
	return status;
}
