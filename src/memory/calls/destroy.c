/* SPDX-License-Identifier: MIT */
/*
 * Deferred destruction of allocations. The client's handle becomes invalid at once. The reference
 * that the handle stood for (struct vmm_ref) is moved to the list memory->closed. It stays there
 * until every packet that references the allocation is complete (SUB-29). From WDDM 2.0 on, it
 * stays until every packet is complete that the device had queued at that time (ALF-37).
 *
 * The reaper (vmm_memory_reap) then calls DxgkDdiCloseAllocation, and with the last reference
 * DxgkDdiDestroyAllocation (ALF-34). The flags of pfnDeallocate2Cb change this; see
 * destroy_flags.c.
 */
#include "memory/calls/creation.h"
#include "memory/image/image.h"
#include "memory/residency/residency.h"
#include "memory/sets/sets.h"
#include "memory/sets/va_private.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "object/nt_handle.h"

/*
 * Returns true if no packet uses or pages any instance of the allocation, and no source shows it.
 */
static bool allocation_idle(const struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter *adapter = allocation->adapter;
	const struct vmm_list *link;

	vmm_assert_held(&allocation->adapter->paging_lock);
	if (vmm_allocation_is_displayed(allocation))
		return false; /* not destroyed while a source shows it (PRS-06) */
	vmm_list_for_each (link, &allocation->instances) {
		const struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (vmm_instance_busy(i, VMM_USE_ANY, NULL, NULL) ||
		    !vmm_timeline_done(adapter, adapter->paging_timeline,
				       atomic_load_explicit(&i->updated, memory_order_relaxed)))
			return false;
	}
	return true;
}

/*
 * Returns true if the GPU is done with the allocation, and with the work of the device that defers
 * the end of REF.
 */
static bool is_done(const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_adapter *adapter = ref->allocation->adapter;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		if (!vmm_device_done(ref->device, t, ref->departs_after[t]))
			return false;
	return allocation_idle(ref->allocation);
}

static void free_kmd_resource(struct vmm_adapter *adapter, struct vmm_kmd_resource *kmd)
{
	if (!kmd)
		return;
	vmm_paging_lock(adapter);
	bool last = --kmd->references == 0;
	vmm_paging_commit(adapter);
	if (!last)
		return;
	vmm_port_destroy_allocation(adapter->port, kmd->handle, NULL, 0, true);
	vmm_free(kmd);
}

static void finish_instances(struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link, *next;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		vmm_assert(vmm_locks(i) == 0); /* locks end with their handle */
		vmm_instance_finish(memory, i);
		if (i != &allocation->first)
			vmm_free(i);
	}
}

/*
 * Ends an allocation that no handle, share or list of work finds any more. Caller holds the paging
 * lock.
 */
static void finish_allocation(struct vmm_memory *memory, struct vmm_allocation *allocation)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_offer_cancel(allocation);
	finish_instances(memory, allocation);
	vmm_list_remove(&allocation->all);
	memory->adapter->allocation_count--;
}

void vmm_allocation_put(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_adapter *adapter = memory->adapter;
	struct vmm_backing store = {0};

	vmm_paging_lock(adapter);
	bool last = --allocation->references == 0;
	if (last) {
		store = vmm_backing_share_take(allocation);
		finish_allocation(memory, allocation);
	}
	vmm_paging_commit(adapter);
	if (!last)
		return;
	if (allocation->pinned)
		vmm_progress_signal(adapter); /* a creation may wait for this placement (PAG-19) */
	if (!allocation->gone)
		vmm_port_destroy_allocation(adapter->port, NULL, &allocation->kmd_allocation, 1,
					    false);
	vmm_backing_share_free(memory, &store);
	free_kmd_resource(adapter, allocation->kmd_resource);
	vmm_account_put(allocation->account);
	vmm_pool_give(memory, allocation);
}

static void close_ref(struct vmm_memory *memory, struct vmm_ref *ref)
{
	if (memory->adapter->residency_lists) {
		vmm_paging_lock(memory->adapter);
		vmm_residency_list_left(ref);
		if (ref->device->va)
			vmm_va_forget_ref(ref); /* unmaps its GPU addresses (VA-09) */
		vmm_paging_commit(memory->adapter);
	}
	if (!ref->allocation->gone)
		vmm_port_close_allocation(memory->adapter->port, ref->device->kmd_device,
					  &ref->kmd_open, 1);
	struct vmm_deallocation *ended_by = ref->ended_by;
	bool own = ref == &ref->allocation->own; /* embedded: freed with the allocation */

	vmm_allocation_put(memory, ref->allocation);
	vmm_deallocation_closed(memory, ended_by);
	if (!own)
		vmm_free(ref);
}

/*
 * Fast path: returns true for an allocation that never had a placement and that no packet
 * references. It ends while the caller still holds the locks under which its handle ended. There is
 * no packet to wait for, and no placement to free that another thread may wait for.
 */
static bool is_unused(const struct vmm_ref *ref, const struct vmm_deallocation *d)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = ref->allocation;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	return !d->flags && a->closing && a->references == 1 && a->instance_count == 1 &&
	       vmm_list_empty(&a->mappings) && a->first.place == VMM_PLACEMENT_FRESH &&
	       !a->pinned && !vmm_is_shared_with_kmd(a) && is_done(ref);
}

/*
 * Closes and destroys, in the miniport too, all allocations of d->unused. Caller holds the submit
 * lock at most.
 */
static void close_unused(struct vmm_memory *memory, struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = memory->adapter;

	while (!vmm_list_empty(&d->unused)) {
		struct vmm_ref *ref = vmm_container_of(d->unused.next, struct vmm_ref, zombie_link);
		struct vmm_allocation *a = ref->allocation;

		vmm_list_remove(&ref->zombie_link);
		vmm_port_close_allocation(adapter->port, ref->device->kmd_device, &ref->kmd_open,
					  1);
		vmm_port_destroy_allocation(adapter->port, NULL, &a->kmd_allocation, 1, false);
		free_kmd_resource(adapter, a->kmd_resource);
		if (ref != &a->own)
			vmm_free(ref);
		vmm_account_put(a->account);
		vmm_pool_give(memory, a);
	}
}

void vmm_memory_reap(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;
	struct vmm_list ready, *link, *next;

	vmm_list_init(&ready);
	vmm_paging_lock(adapter);
	vmm_backing_collect(memory);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		if (!is_done(ref))
			continue;
		vmm_list_remove(link);
		atomic_fetch_sub(&adapter->zombies, 1);
		vmm_list_push_back(&ready, link);
	}
	vmm_paging_commit(adapter);
	bool any = !vmm_list_empty(&ready);
	vmm_list_for_each_safe (link, next, &ready)
		close_ref(memory, vmm_container_of(link, struct vmm_ref, zombie_link));
	vmm_shares_reap(memory);
	if (any)
		vmm_progress_signal(adapter);
}

bool vmm_memory_can_reap_locked(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_assert_held(&adapter->paging_lock);
	vmm_list_for_each (link, &adapter->memory->closed)
		if (is_done(vmm_container_of(link, struct vmm_ref, zombie_link)))
			return true;
	return false;
}

/* Drops all locks of a handle that ends (LOCK-30, Q-04). Caller holds the paging lock. */
static void drop_locks(struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_fast_lock_unbind(ref->instance);
	ref->device->adapter->memory->statistics.handles_destroyed_locked += ref->lock_count != 0;
	ref->instance->lock_count -= ref->lock_count;
	ref->lock_count = 0;
	ref->device->adapter->model->unlocked(ref->instance);
	vmm_retained_note_unlock(ref->instance);
}

/*
 * Ends the handles of all other instances of a renamed allocation (REN-20). Caller holds paging and
 * process lock.
 */
static void destroy_extra_refs_locked(struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	struct vmm_process *process = ref->device->process;
	struct vmm_list *link;

	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	vmm_list_for_each (link, &ref->allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);
		struct vmm_ref *other =
			vmm_handle_lookup(&process->handles, i->handle, VMM_HANDLE_ALLOCATION);

		if (!other || other == ref || other->allocation != ref->allocation)
			continue;
		drop_locks(other);
		vmm_handle_destroy(&process->handles, other->handle);
		vmm_list_remove(&other->device_link);
		vmm_list_remove(&other->resource_link);
		vmm_free(other);
	}
}

/*
 * Returns the ref that owns the miniport's open. For the handle of a further instance that is the
 * ref of the first instance. Caller holds the process lock.
 */
static struct vmm_ref *owning_ref_locked(struct vmm_ref *ref)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	vmm_assert_held(&ref->allocation->adapter->paging_lock);
	if (!ref->extra)
		return ref;
	return vmm_handle_lookup(&ref->device->process->handles, ref->allocation->first.handle,
				 VMM_HANDLE_ALLOCATION);
}

/*
 * Ends the handle of REF and queues the ref for deferred destruction. Caller holds paging and
 * process lock.
 */
static void retire_ref_locked(struct vmm_memory *memory, struct vmm_ref *ref,
			      struct vmm_deallocation *d)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	struct vmm_process *process = ref->device->process;
	struct vmm_allocation *a = ref->allocation;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!a->shared)
		destroy_extra_refs_locked(ref);
	if (!a->shared || a->queued_offer.after == ref)
		vmm_offer_cancel(a);
	a->closing = !a->shared;
	vmm_handle_destroy(&process->handles, ref->handle);
	vmm_list_remove(&ref->device_link);
	vmm_list_remove(&ref->resource_link);
	drop_locks(ref);
	ref->retired = true;
	ref->times_listed = 0;
	vmm_residency_list_forget(ref);
	if (ref->creator && a->shared)
		a->kmd_device = NULL; /* shared: may outlive the device that created it (PAG-10) */
	vmm_existing_queue_release(a, &d->departing);
	vmm_deallocation_note(d, ref);
	if (is_unused(ref, d)) {
		vmm_residency_list_left(ref);
		a->references = 0;
		finish_allocation(memory, a);
		vmm_list_push_back(&d->unused, &ref->zombie_link);
	} else {
		vmm_list_push_back(&memory->closed, &ref->zombie_link);
		atomic_fetch_add(&memory->adapter->zombies, 1);
	}
	vmm_tally_add(&memory->statistics.tallies.destroyed, a);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DESTROY, process->id, ref->handle, 0,
		  a->size_bytes, 0, 0, 0);
}

/*
 * Ends a resource: its handle, its reference to the share and its reference to the miniport's
 * resource. Takes the locks.
 */
static void release_resource(struct vmm_resource *resource)
{
	struct vmm_adapter *adapter = resource->device->adapter;
	struct vmm_world *world = resource->device->process->world;
	struct vmm_share *share = resource->share;
	struct vmm_kmd_resource *kmd = resource->kmd;
	bool by_nt_handle = share && !share->global_handle;

	vmm_resource_detach(resource);
	if (share)
		vmm_share_put(world, share);
	free_kmd_resource(adapter, kmd);
	if (by_nt_handle)
		vmm_nt_collect(world); /* */
}

static NTSTATUS deallocate_resource(struct vmm_device *device, void *runtime_resource,
				    struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_resource *resource;

	vmm_paging_lock(adapter);
	vmm_process_lock(device->process);
	resource = vmm_resource_find_locked(device, runtime_resource);
	bool busy = resource && resource->busy;
	if (busy)
		resource = NULL;
	if (resource)
		resource->busy = true; /* never cleared: the resource ends */
	while (resource && !vmm_list_empty(&resource->refs))
		retire_ref_locked(
			adapter->memory,
			vmm_container_of(resource->refs.next, struct vmm_ref, resource_link), d);
	vmm_paging_queues_forget_retired(device);
	vmm_process_unlock(device->process);
	vmm_paging_commit(adapter);
	if (!resource)
		return vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "ALF-36", device->process->id,
			0, "deallocate: %s",
			busy ? "another thread is creating or ending the resource"
			     : "the device has no resource with that runtime handle");
	close_unused(adapter->memory, d);
	vmm_memory_reap(adapter);
	release_resource(resource);
	return STATUS_SUCCESS;
}

/*
 * Among many allocations no cache holds this one. Its end reads most of its cache lines, and each
 * would be a miss after the other; fetched together they cost about one.
 */
static void prefetch_record(const struct vmm_device *device, uint32_t handle)
	VMM_REQUIRES(vmm_process_lock_class)
{
	uintptr_t record = (uintptr_t)vmm_handle_lookup(&device->process->handles, handle,
							VMM_HANDLE_ALLOCATION);

	vmm_assert_held(&device->process->lock);
	for (size_t at = 0; at < sizeof(struct vmm_allocation); at += VMM_CACHE_LINE)
		vmm_prefetch(record + at);
}

/* The same for the neighbors in the lists that it leaves. */
static void prefetch_neighbors(const struct vmm_ref *ref) VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_allocation *a = ref->allocation;

	vmm_assert_held(&a->adapter->paging_lock);
	vmm_prefetch((uintptr_t)ref->device_link.next);
	vmm_prefetch((uintptr_t)ref->device_link.prev);
	vmm_prefetch((uintptr_t)a->all.next);
	vmm_prefetch((uintptr_t)a->all.prev);
}

static struct vmm_ref *checked_ref_locked(struct vmm_device *device, const uint32_t *handles,
					  uint32_t index)
	VMM_REQUIRES(vmm_paging_lock_class, vmm_process_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	vmm_assert_held(&device->process->lock);
	prefetch_record(device, handles[index]);
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, handles[index]);

	if (!ref) {
		vmm_ref_report(device, handles[index], "ALF-36", "deallocate");
		return NULL;
	}
	if (ref->times_listed) {
		uint32_t first = 0;

		while (handles[first] != handles[index])
			first++;
		vmm_finding(device->adapter->observe, "ALF-36", device->process->id, handles[index],
			    "deallocate: handle 0x%08x is listed twice (entries %u and %u)",
			    handles[index], first, index);
		return NULL;
	}
	ref->times_listed = 1;
	return ref;
}

static void release_empty_opened_resources(struct vmm_device *device)
{
	struct vmm_list empty, *link, *next;

	vmm_list_init(&empty);
	vmm_process_lock(device->process);
	vmm_list_for_each (link, &device->resources) {
		struct vmm_resource *r = vmm_container_of(link, struct vmm_resource, link);

		if (!r->opened || r->busy || !vmm_list_empty(&r->refs))
			continue;
		r->busy = true;
		vmm_list_push_back(empty.next, &r->end_link); /* in front: the newest ends first */
	}
	vmm_process_unlock(device->process);
	vmm_list_for_each_safe (link, next, &empty)
		release_resource(vmm_container_of(link, struct vmm_resource, end_link));
}

static NTSTATUS deallocate_list(struct vmm_device *device, const uint32_t *handles, uint32_t count,
				struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;
	uint32_t passed = 0;
	bool opened = false;

	vmm_paging_lock(adapter);
	vmm_process_lock(device->process);
	while (passed < count && checked_ref_locked(device, handles, passed))
		passed++;
	if (passed < count)
		status = STATUS_INVALID_PARAMETER;
	for (uint32_t i = 0; i < passed && !NT_SUCCESS(status); i++)
		vmm_ref_lookup_locked(device, handles[i])->times_listed = 0;
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		struct vmm_ref *ref = vmm_ref_lookup_locked(device, handles[i]);

		if (!ref)
			continue; /* an instance of an allocation that an earlier entry ended */
		ref = owning_ref_locked(ref);
		prefetch_neighbors(ref);
		opened |= ref->resource && ref->resource->opened;
		retire_ref_locked(adapter->memory, ref, d);
	}
	vmm_paging_queues_forget_retired(device);
	vmm_process_unlock(device->process);
	if (NT_SUCCESS(status))
		vmm_backing_collect(adapter->memory);
	vmm_paging_commit(adapter);
	close_unused(adapter->memory, d);
	if (NT_SUCCESS(status)) {
		if (atomic_load(&adapter->zombies))
			vmm_memory_reap(adapter);
		if (opened)
			release_empty_opened_resources(device);
	}
	return status;
}

/*
 * Closes all deferred refs of a device that ends. The work of that device is complete, so its opens
 * can be closed even if other devices still use a shared allocation.
 */
static void close_device_refs(struct vmm_device *device)
{
	struct vmm_memory *memory = device->adapter->memory;
	struct vmm_list ready, *link, *next;

	vmm_list_init(&ready);
	vmm_paging_lock(device->adapter);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		if (vmm_container_of(link, struct vmm_ref, zombie_link)->device != device)
			continue;
		vmm_list_remove(link);
		atomic_fetch_sub(&device->adapter->zombies, 1);
		vmm_list_push_back(&ready, link);
	}
	vmm_paging_commit(device->adapter);
	vmm_list_for_each_safe (link, next, &ready)
		close_ref(memory, vmm_container_of(link, struct vmm_ref, zombie_link));
}

/* When it returns, the owners of that memory may free it. */
static void release_existing(struct vmm_memory *memory, struct vmm_list *departing)
{
	struct vmm_allocation *allocation;

	while ((allocation = vmm_existing_release_next(memory, departing)))
		vmm_allocation_put(memory, allocation);
}

NTSTATUS vmm_memory_deallocate(struct vmm_device *device, void *runtime_resource,
			       const uint32_t *handles, uint32_t count, uint32_t flags)
{
	struct vmm_deallocation d = {.flags = flags};

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = vmm_deallocation_check(device, flags);
	if (!NT_SUCCESS(status))
		return status;
	vmm_list_init(&d.departing);
	vmm_list_init(&d.unused);
	/*
	 * A submission holds the submit lock from the lookup of its allocations until they are
	 * marked as used. No allocation may end in between.
	 */
	vmm_submit_lock(device->adapter);
	/* With a resource the handle list is ignored (ALF-36). */
	status = runtime_resource ? deallocate_resource(device, runtime_resource, &d)
				  : deallocate_list(device, handles, count, &d);
	if (NT_SUCCESS(status))
		vmm_deallocation_destroy_early(device->adapter->memory, &d);
	vmm_submit_unlock(device->adapter);
	release_existing(device->adapter->memory, &d.departing);
	if (NT_SUCCESS(status))
		vmm_deallocation_wait(device, &d);
	return status;
}

void vmm_memory_close_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_deallocation d = {0};

	vmm_assert(vmm_device_is_valid(device));
	vmm_trims_end(device);
	vmm_list_init(&d.departing);
	vmm_list_init(&d.unused);
	vmm_paging_lock(adapter);
	vmm_process_lock(device->process);
	while (!vmm_list_empty(&device->refs))
		retire_ref_locked(adapter->memory,
				  owning_ref_locked(vmm_container_of(device->refs.next,
								     struct vmm_ref, device_link)),
				  &d);
	vmm_paging_queues_forget_retired(device);
	vmm_process_unlock(device->process);
	vmm_paging_queues_end(device);
	vmm_residency_list_device_end(device);
	vmm_paging_commit(adapter);
	close_unused(adapter->memory, &d);
	close_device_refs(device);
	release_existing(adapter->memory, &d.departing);
	while (!vmm_list_empty(&device->resources))
		release_resource(
			vmm_container_of(device->resources.next, struct vmm_resource, link));
	vmm_fast_lock_table_free(device);
}
