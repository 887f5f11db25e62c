/* SPDX-License-Identifier: MIT */
/*
 * MakeResident and Evict (RES-02, RES-03, RES-05, RES-06).
 *
 * MakeResident is all or nothing: everything is checked before the first residency count is raised.
 * It then tries to place all allocations at once. If that is not possible, or their paging is not
 * complete, the call becomes an operation of the paging queue.
 */
#include "memory/sets/sets.h"
#include "memory/state/state.h"

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
	struct vmm_ref **added; /* the refs that are not on the list yet, without duplicates */
	uint32_t added_count;
	uint64_t sequence; /* the paging packet that must be complete */
};

static NTSTATUS report(const struct request *r, const char *rule, uint32_t handle, const char *what)
{
	return vmm_refuse_rule(r->device->adapter->observe, STATUS_INVALID_PARAMETER, rule,
			       r->device->process->id, handle, "%u allocations, flags 0x%x: %s",
			       r->request->count, r->request->flags, what);
}

static NTSTATUS check_version(const struct request *r, const char *what)
{
	return vmm_model_check_call(r->device->adapter, r->device->process, 0, what,
				    ", where allocation lists decide residency");
}

/* The caller holds the paging lock, so the refs stay valid until its release. */
static NTSTATUS find_refs(struct request *r, const char *what) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert_held(&r->device->adapter->paging_lock);
	vmm_process_lock(r->device->process);
	for (uint32_t i = 0; i < r->request->count && NT_SUCCESS(status); i++) {
		r->refs[i] = vmm_ref_lookup_locked(r->device, r->request->handles[i]);
		if (r->refs[i])
			continue;
		vmm_ref_report(r->device, r->request->handles[i], "PRI-09", what);
		status = STATUS_INVALID_PARAMETER; /* RES-02 */
	}
	vmm_process_unlock(r->device->process);
	return status;
}

static bool create_arrays(struct request *r)
{
	r->refs = vmm_calloc(r->request->count + 1, sizeof(struct vmm_ref *));
	r->added = vmm_calloc(r->request->count + 1, sizeof(struct vmm_ref *));
	return r->refs && r->added;
}

static void free_arrays(struct request *r)
{
	vmm_free(r->refs);
	vmm_free(r->added);
}

/* ---- MakeResident ---- */

static NTSTATUS check_make_flags(const struct request *r)
{
	uint32_t flags = r->request->flags;

	if (flags & ~(uint32_t)FLAGS)
		return report(r, "PRI-09", 0, "make resident with reserved flags");
	if ((flags & MUST_SUCCEED) && !(flags & CANT_TRIM_FURTHER))
		return report(r, "RES-05", 0,
			      "make resident with MustSucceed needs CantTrimFurther (PRI-08)");
	return STATUS_SUCCESS;
}

/*
 * Collects the refs that add to the list: not listed yet, each once. instance->required_by marks
 * duplicates.
 */
static void collect_added(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->request->count; i++) {
		struct vmm_ref *ref = r->refs[i];

		if (ref->residency_count || ref->instance->required_by == UINT64_MAX)
			continue;
		ref->instance->required_by = UINT64_MAX; /* cleared below */
		r->added[r->added_count++] = ref;
	}
	for (uint32_t i = 0; i < r->added_count; i++)
		r->added[i]->instance->required_by = 0;
}

/* Checks the budget, or with CantTrimFurther only what the segments can hold. (RES-05, PRI-07) */
static NTSTATUS check_space(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t over = vmm_budget_excess(r->device, r->added, r->added_count);
	uint64_t beyond = vmm_residency_list_excess(r->device, r->added, r->added_count);
	bool may_pass = r->request->flags & CANT_TRIM_FURTHER;

	vmm_assert_held(&r->device->adapter->paging_lock);
	r->request->bytes_to_trim = vmm_max_u64(over, beyond);
	if (!beyond && (!over || may_pass)) {
		r->request->bytes_to_trim = over;
		return STATUS_SUCCESS;
	}
	return vmm_refuse_reason(
		r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id, 0,
		"RES-05: make resident: the device's list would exceed the budget by %llu "
		"bytes and what the segments can hold by %llu bytes (PRI-07)",
		(unsigned long long)over, (unsigned long long)beyond);
}

static void unlist(struct request *r, uint32_t count) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	while (count)
		vmm_residency_list_remove(r->refs[--count]);
}

/*
 * Most lists name what is resident already: nothing moves, so the device's list need not be marked
 * as what must stay. Returns false if one instance is not settled.
 */
static bool use_settled(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->request->count; i++) {
		struct vmm_instance *instance = r->refs[i]->instance;

		if (!vmm_residency_list_is_settled(instance))
			return false;
		vmm_residency_touch(r->memory, instance);
		r->sequence = vmm_max_u64(r->sequence, vmm_paging_last_of(instance));
	}
	return true;
}

static vmm_status place_missing(void *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct request *r = context;

	vmm_assert_held(&r->device->adapter->paging_lock);
	uint64_t round = vmm_residency_list_round(r->memory);

	vmm_residency_list_want(r->device, round);
	for (uint32_t i = 0; i < r->request->count; i++) {
		struct vmm_instance *instance = r->refs[i]->instance;

		if (instance->held)
			return VMM_PENDING;
		if (vmm_residency_list_stays_out(instance))
			continue;
		vmm_status status = vmm_residency_list_make(r->memory, instance, round);
		if (status != VMM_OK)
			return status;
		r->sequence = vmm_max_u64(r->sequence, vmm_paging_last_of(instance));
	}
	return VMM_OK;
}

/* The bytes fit, as checked, but not where the rest of the list, or DMA buffers, leave them. */
VMM_COLD static vmm_status make_room(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	bool awaits_buffers = false;
	vmm_status status =
		vmm_residency_list_make_room(r->device, &awaits_buffers, place_missing, r);

	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->request->count; i++)
		r->sequence = vmm_max_u64(r->sequence, vmm_paging_last_of(r->refs[i]->instance));
	return status;
}

static vmm_status place_now(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	if (vmm_likely(use_settled(r)))
		return VMM_OK;
	vmm_unlock_wait_for(r->memory, r->device->process->id);
	vmm_status status = place_missing(r);
	if (status == VMM_NO_VIDEO_MEMORY)
		status = make_room(r);
	vmm_unlock_wait_for_none(r->memory);
	/* The list fits, as checked: the operation waits until other processes unlock. */
	return status == VMM_NO_VIDEO_MEMORY && vmm_unlock_would_help(r->device->adapter)
		       ? VMM_PENDING
		       : status;
}

static uint64_t largest_of(const struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t bytes = 0;

	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->request->count; i++)
		bytes = vmm_max_u64(bytes, r->refs[i]->allocation->size_bytes);
	return bytes;
}

/*
 * The list fits by bytes, so no number of bytes is certain to suffice. A caller that trims as many
 * as the largest allocation has comes closer. (RES-05)
 */
VMM_COLD static NTSTATUS refuse_place(struct request *r, vmm_status status)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	if (status == VMM_NO_MEMORY)
		return vmm_refuse_reason(
			r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id, 0,
			"RES-05: make resident: no system memory for the paging of %u allocations",
			r->request->count);
	uint64_t largest = largest_of(r);
	r->request->bytes_to_trim = vmm_max_u64(r->request->bytes_to_trim, largest);
	return vmm_refuse_reason(
		r->device->adapter->observe, STATUS_NO_MEMORY, r->device->process->id, 0,
		"RES-05: make resident: the device's list with these %u allocations, the largest "
		"of %llu bytes, fits by bytes, but not into the free ranges that locked and pinned "
		"memory and DMA buffers leave",
		r->request->count, (unsigned long long)largest);
}

/* Places the listed allocations, or queues an operation that does. */
static NTSTATUS bring_in(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = r->device->adapter;
	vmm_status status = place_now(r);

	vmm_assert_held(&r->device->adapter->paging_lock);
	vmm_memory_flush_locked(adapter);
	if (status == VMM_OK && vmm_timeline_done(adapter, adapter->paging_timeline, r->sequence)) {
		r->request->fence_value = 0; /* PRI-06 */
		return STATUS_SUCCESS;
	}
	/* The adapter may be about to be reset. The operation is then done after the reset. */
	if (status == VMM_DEVICE_REMOVED && atomic_load(&adapter->recovering))
		status = VMM_PENDING;
	if (status == VMM_NO_VIDEO_MEMORY || status == VMM_NO_MEMORY)
		return refuse_place(r, status);
	if (status != VMM_OK && status != VMM_PENDING)
		return status;
	status = vmm_paging_queue_add(r->queue, r->refs, r->request->count,
				      &r->request->fence_value);
	return vmm_ok(status) ? STATUS_PENDING : status;
}

/* On the list and in a memory segment that it may be in; nothing has to be done or checked. */
static bool is_in_place(const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *allocation = ref->allocation;
	const struct vmm_instance *instance = ref->instance;

	vmm_assert_held(&allocation->adapter->paging_lock);
	return ref->residency_count && instance->place == VMM_PLACEMENT_MEMORY &&
	       !instance->handover && (allocation->serving >> instance->segment & 1) &&
	       !atomic_load_explicit(&allocation->marks, memory_order_relaxed);
}

enum { BATCH = 32 };

/*
 * Looks up the handles of a batch, and has the CPU load the cache lines that count_batch reads.
 * Returns how many were found before the first that names nothing.
 */
static uint32_t look_up_batch(const struct vmm_handle_view *view, const uint32_t *handles,
			      uint32_t count, struct vmm_ref **refs)
{
	uint32_t i = 0;

	for (; i < count; i++) {
		refs[i] = vmm_handle_find(view, handles[i], VMM_HANDLE_ALLOCATION);
		if (vmm_unlikely(!refs[i]))
			break;
		vmm_ref_prefetch(refs[i]);
	}
	return i;
}

/* Counts the refs and records their use, up to the first that is not in place. Returns how many. */
static uint32_t count_batch(const struct vmm_device *device, struct vmm_ref *const *refs,
			    uint32_t count, struct vmm_lru_uses *uses)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_lru_uses at = *uses;
	uint32_t i = 0;

	vmm_assert_held(&device->adapter->paging_lock);
	for (; i < count; i++) {
		struct vmm_ref *ref = refs[i];

		if (vmm_unlikely(ref->device != device || !is_in_place(ref)))
			break;
		ref->residency_count++;
		vmm_lru_use(&at, ref->instance);
	}
	*uses = at;
	return i;
}

static void uncount(const struct vmm_handle_view *view, const uint32_t *handles, uint32_t count)
{
	while (count)
		((struct vmm_ref *)vmm_handle_find(view, handles[--count], VMM_HANDLE_ALLOCATION))
			->residency_count--;
}

/* Counts every entry of the request, if all are in place; otherwise none. */
static bool count_in_place(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	const uint32_t *handles = r->request->handles, count = r->request->count;
	struct vmm_lru_uses uses = vmm_lru_uses_begin(r->memory);
	struct vmm_ref *refs[BATCH];
	uint32_t done = 0;

	vmm_assert_held(&r->device->adapter->paging_lock);
	vmm_process_lock(r->device->process);
	const struct vmm_handle_view view = vmm_handle_view(&r->device->process->handles);
	while (done < count) {
		uint32_t batch = vmm_min_u32(count - done, BATCH);
		uint32_t found = look_up_batch(&view, handles + done, batch, refs);
		uint32_t counted = count_batch(r->device, refs, found, &uses);

		done += counted;
		if (counted < batch)
			break;
	}
	if (done < count)
		uncount(&view, handles, done);
	vmm_process_unlock(r->device->process);
	vmm_lru_uses_end(&uses);
	return done == count;
}

/*
 * Fast path: most lists name only what is resident already, and no paging is under way. It reads
 * two cache lines of each allocation. Returns false if the call must be done in full; nothing has
 * changed then. (RES-01, RES-03)
 */
static bool make_resident_in_place(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = r->device->adapter;

	vmm_assert_held(&adapter->paging_lock);
	return !r->memory->pending && r->device->demand &&
	       vmm_timeline_done(adapter, adapter->paging_timeline,
				 vmm_paging_sequence(r->memory)) &&
	       !vmm_budget_excess(r->device, NULL, 0) &&
	       !vmm_residency_list_excess(r->device, NULL, 0) && count_in_place(r);
}

/* An allocation whose content is lost is never placed, so it cannot be made resident. (TDR-11) */
static NTSTATUS check_content(const struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	for (uint32_t i = 0; i < r->request->count; i++) {
		const struct vmm_allocation *a = r->refs[i]->allocation;

		if (vmm_likely(!a->content_lost))
			continue;
		return vmm_refuse_reason(
			r->device->adapter->observe, STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST,
			r->device->process->id, r->request->handles[i],
			"%s: make resident of 0x%08x: its content was lost%s",
			a->reset_lost ? "TDR-11" : "PAG-20", r->request->handles[i],
			a->reset_lost ? " when the adapter was reset" : "");
	}
	return STATUS_SUCCESS;
}

static NTSTATUS make_resident_locked(struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t counted = 0;

	vmm_assert_held(&r->device->adapter->paging_lock);
	/* it may have been lost during the wait for the lock (TDR-07) */
	if (vmm_device_lost(r->device))
		return STATUS_DEVICE_REMOVED;
	vmm_process_lock(r->device->process);
	r->queue = vmm_paging_queue_find_locked(r->device, r->request->queue);
	vmm_process_unlock(r->device->process);
	if (!r->queue)
		return report(r, "RES-02", r->request->queue,
			      "make resident: the handle names no live paging queue of the device");
	if (vmm_likely(make_resident_in_place(r)))
		return STATUS_SUCCESS;
	if (!create_arrays(r))
		return STATUS_NO_MEMORY;
	status = find_refs(r, "make resident");
	if (NT_SUCCESS(status))
		status = check_content(r);
	if (!NT_SUCCESS(status))
		return status;
	if (!vmm_budget_of(r->device))
		return STATUS_NO_MEMORY;
	collect_added(r);
	status = check_space(r);
	while (NT_SUCCESS(status) && counted < r->request->count) {
		status = vmm_residency_list_add(r->refs[counted]);
		counted += NT_SUCCESS(status);
	}
	if (NT_SUCCESS(status))
		status = bring_in(r);
	if (!NT_SUCCESS(status))
		unlist(r, counted);
	return status;
}

/* MustSucceed: the failure puts the device into an error state. (RES-05, PRI-08) */
VMM_COLD static void lose_device(struct vmm_device *device, NTSTATUS status)
{
	vmm_reason(device->adapter->observe, status, device->process->id, device->handle,
		   "RES-05: make resident with MustSucceed failed: the device is in error, state "
		   "ERROR_OUTOFMEMORY (PRI-08, PRI-16)");
	vmm_device_fail(device, VMM_DEVICE_OUT_OF_MEMORY);
}

NTSTATUS vmm_memory_make_resident(struct vmm_device *device, struct vmm_residency_request *request)
{
	struct request r = {
		.device = device, .memory = device->adapter->memory, .request = request};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_version(&r, "make resident");
	request->fence_value = request->bytes_to_trim = 0;
	if (NT_SUCCESS(status))
		status = check_make_flags(&r);
	if (!NT_SUCCESS(status))
		return status;
	vmm_paging_lock(device->adapter);
	status = make_resident_locked(&r);
	vmm_paging_commit(device->adapter);
	free_arrays(&r);
	if (status == STATUS_PENDING)
		device->adapter->memory->engine->wake(device->adapter);
	if (status == STATUS_NO_MEMORY && (request->flags & MUST_SUCCEED))
		lose_device(device, status);
	return status;
}

/* ---- Evict ---- */

static NTSTATUS check_counts(const struct request *r) VMM_REQUIRES(vmm_paging_lock_class)
{
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t counted = 0;

	vmm_assert_held(&r->device->adapter->paging_lock);
	while (counted < r->request->count && NT_SUCCESS(status)) {
		struct vmm_ref *ref = r->refs[counted];

		ref->times_listed++;
		if (ref->residency_count < ref->times_listed)
			status = vmm_refuse_rule(
				r->device->adapter->observe, STATUS_INVALID_PARAMETER, "RES-06",
				r->device->process->id, r->request->handles[counted],
				"evict of 0x%08x: it is made resident %u times, but occurs %u "
				"times in the list",
				r->request->handles[counted], ref->residency_count,
				ref->times_listed);
		counted++;
	}
	while (counted)
		r->refs[--counted]->times_listed = 0;
	return status;
}

static void evict(struct request *r, struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&r->device->adapter->paging_lock);
	vmm_residency_list_remove(ref);
	/* Any Evict of it may say so (PRI-10). What was written before it was listed counts. */
	if ((r->request->flags & NOT_WRITTEN_TO) && !ref->instance->store_stale) {
		/* the slow path of the unlock clears not_written */
		vmm_fast_lock_disable(ref->instance);
		ref->instance->not_written = true;
	}
	if (ref->residency_count)
		return;
	ref->instance->store_stale |= !ref->instance->not_written;
	if (r->request->flags & EVICT_ONLY_IF_NECESSARY)
		return;
	vmm_residency_list_depart(ref);
}

NTSTATUS vmm_memory_evict(struct vmm_device *device, struct vmm_residency_request *request)
{
	struct request r = {
		.device = device, .memory = device->adapter->memory, .request = request};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = check_version(&r, "evict");
	request->bytes_to_trim = 0;
	if (NT_SUCCESS(status) && (request->flags & ~(uint32_t)FLAGS))
		status = report(&r, "PRI-09", 0, "evict with reserved flags");
	if (!NT_SUCCESS(status))
		return status;
	status = STATUS_NO_MEMORY;
	if (create_arrays(&r)) {
		vmm_paging_lock(device->adapter);
		status = vmm_device_lost(device) ? STATUS_DEVICE_REMOVED : find_refs(&r, "evict");
		if (NT_SUCCESS(status))
			status = check_counts(&r);
		for (uint32_t i = 0; i < request->count && NT_SUCCESS(status); i++)
			evict(&r, r.refs[i]);
		if (NT_SUCCESS(status))
			request->bytes_to_trim = vmm_budget_excess(device, NULL, 0);
		vmm_paging_commit(device->adapter);
	}
	free_arrays(&r);
	if (NT_SUCCESS(status))
		device->adapter->memory->engine->wake(device->adapter);
	return status;
}
