/* SPDX-License-Identifier: MIT */
/*
 * Destruction. The client's handles die at once; what the GPU may still use waits on memory->closed until every
 * packet that names it is complete (SUB-29), and from 2.0 on every one that its device queued before (ALF-37). Then the
 * miniport hears Close, and with the last reference Destroy (ALF-34). What a client may ask for beside that is in
 * destroy_flags.c.
 */
#include "memory/memory_private.h"
#include "memory/va_private.h"

static bool allocation_idle(const struct vmm_allocation *allocation)
{
	const struct vmm_adapter *adapter = allocation->adapter;
	const struct vmm_list *link;

	if (vmm_allocation_is_shown(allocation))
		return false; /* PRS-06 */
	vmm_list_for_each (link, &allocation->instances) {
		const struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		if (vmm_instance_busy(i, VMM_USE_ANY, NULL, NULL) ||
		    !vmm_timeline_done(adapter, adapter->paging_timeline,
				       atomic_load_explicit(&i->updated, memory_order_relaxed)))
			return false;
	}
	return true;
}

/* Is the GPU done with what that handle named? */
static bool is_done(const struct vmm_ref *ref)
{
	const struct vmm_adapter *adapter = ref->allocation->adapter;

	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		if (!vmm_device_done(ref->device, t, ref->departs_after[t]))
			return false;
	return allocation_idle(ref->allocation);
}

static void free_kmd_resource(struct vmm_adapter *adapter, struct vmm_kmd_resource *kmd)
{
	if (!kmd)
		return;
	vmm_os_mutex_lock(&adapter->paging_lock);
	bool last = --kmd->references == 0;
	vmm_paging_unlock(adapter);
	if (!last)
		return;
	vmm_port_destroy_allocation(adapter->port, kmd->handle, NULL, 0, true);
	vmm_free(kmd);
}

static void finish_instances(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		vmm_assert(vmm_locks(i) == 0); /* its handles are gone, and their locks with them */
		vmm_instance_finish(memory, i);
		if (i != &allocation->first)
			vmm_free(i);
	}
}

/* Nobody finds it any more. Paging lock held. */
static void finish_allocation(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
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
	vmm_paging_unlock(adapter);
	if (!last)
		return;
	if (allocation->pinned)
		vmm_progress_signal(adapter); /* another may wait for its place (PAG-19) */
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
	if (vmm_unlikely(ref->device->va != NULL)) {
		vmm_paging_lock(memory->adapter);
		vmm_va_forget_ref(ref); /* VA-09 */
		vmm_paging_unlock(memory->adapter);
	}
	if (!ref->allocation->gone)
		vmm_port_close_allocation(memory->adapter->port, ref->device->kmd_device,
					  &ref->kmd_open, 1);
	struct vmm_deallocation *ended_by = ref->ended_by;
	bool own = ref == &ref->allocation->own; /* then it may be gone with the allocation */

	vmm_allocation_put(memory, ref->allocation);
	vmm_deallocation_closed(memory, ended_by);
	if (!own)
		vmm_free(ref);
}

/*
 * What never was anywhere and is in nobody's work goes in the hold of the locks in which its handle dies: there is nothing
 * to wait for, no place to give back, and nobody who waits for one.
 */
static bool is_unused(const struct vmm_ref *ref, const struct vmm_deallocation *d)
{
	const struct vmm_allocation *a = ref->allocation;

	return !d->flags && a->closing && a->references == 1 && a->instance_count == 1 &&
	       vmm_list_empty(&a->mappings) && a->first.place == VMM_PLACE_FRESH && !a->pinned &&
	       !vmm_is_shared_with_kmd(a) && is_done(ref);
}

/* No lock held but the submit lock. */
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
	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_backing_collect(memory);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		struct vmm_ref *ref = vmm_container_of(link, struct vmm_ref, zombie_link);

		if (!is_done(ref))
			continue;
		vmm_list_remove(link);
		atomic_fetch_sub(&adapter->zombies, 1);
		vmm_list_push_back(&ready, link);
	}
	vmm_paging_unlock(adapter);
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

	vmm_list_for_each (link, &adapter->memory->closed)
		if (is_done(vmm_container_of(link, struct vmm_ref, zombie_link)))
			return true;
	return false;
}

/* LOCK-30, Q-04: what a handle has locked is let go with it. */
static void drop_locks(struct vmm_ref *ref)
{
	vmm_gate_unbind(ref->instance);
	ref->instance->lock_count -= ref->lock_count;
	ref->lock_count = 0;
	if (ref->device->adapter->wddm2)
		vmm_lock_wddm2_released(ref->instance);
	vmm_kept_unlocked(ref->instance);
}

/* The handles of further instances die with the allocation's own (REN-20). Process lock held. */
static void destroy_extra_refs_locked(struct vmm_ref *ref)
{
	struct vmm_process *process = ref->device->process;
	struct vmm_list *link;

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

/* Whichever instance's handle the client named, the ref that owns the open is the one to close. Process lock held. */
static struct vmm_ref *owning_ref_locked(struct vmm_ref *ref)
{
	if (!ref->extra)
		return ref;
	return vmm_handle_lookup(&ref->device->process->handles, ref->allocation->first.handle,
				 VMM_HANDLE_ALLOCATION);
}

/* Takes the handle away; paging and process lock held. */
static void retire_ref_locked(struct vmm_memory *memory, struct vmm_ref *ref,
			      struct vmm_deallocation *d)
{
	struct vmm_process *process = ref->device->process;
	struct vmm_allocation *a = ref->allocation;

	if (!a->shared) {
		destroy_extra_refs_locked(ref);
		vmm_offer_cancel(a);
	}
	a->closing = !a->shared;
	vmm_handle_destroy(&process->handles, ref->handle);
	vmm_list_remove(&ref->device_link);
	vmm_list_remove(&ref->resource_link);
	drop_locks(ref);
	vmm_resident_forget(ref);
	if (ref->creator && a->shared)
		a->kmd_device = NULL; /* it may outlive the device that created it (PAG-10) */
	vmm_existing_depart(a, &d->departing);
	vmm_deallocation_note(d, ref);
	if (is_unused(ref, d)) {
		a->references = 0;
		finish_allocation(memory, a);
		vmm_list_push_back(&d->unused, &ref->zombie_link);
	} else {
		vmm_list_push_back(&memory->closed, &ref->zombie_link);
		atomic_fetch_add(&memory->adapter->zombies, 1);
	}
	vmm_event(memory->adapter->observe, VIDMM_EVENT_DESTROY, process->id, ref->handle, 0,
		  a->size_bytes, 0, 0, 0);
}

/* A resource whose handle goes: its own hold on the share and on the miniport's resource. No lock held. */
static void release_resource(struct vmm_resource *resource)
{
	struct vmm_adapter *adapter = resource->device->adapter;
	struct vmm_world *world = resource->device->process->world;
	struct vmm_share *share = resource->share;
	struct vmm_kmd_resource *kmd = resource->kmd;

	vmm_resource_detach(resource);
	if (share)
		vmm_share_put(world, share);
	free_kmd_resource(adapter, kmd);
}

static NTSTATUS deallocate_resource(struct vmm_device *device, void *runtime_resource,
				    struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_resource *resource;

	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_os_mutex_lock(&device->process->lock);
	resource = vmm_resource_find_locked(device, runtime_resource);
	bool busy = resource && resource->busy;
	if (busy)
		resource = NULL;
	if (resource)
		resource->busy = true; /* to the end */
	while (resource && !vmm_list_empty(&resource->refs))
		retire_ref_locked(
			adapter->memory,
			vmm_container_of(resource->refs.next, struct vmm_ref, resource_link), d);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_paging_unlock(adapter);
	if (!resource) {
		vmm_finding(adapter->observe, "ALF-36", device->process->id, 0, "deallocate: %s",
			    busy ? "another thread's call is creating or ending the resource"
				 : "the device has no resource with that runtime handle");
		return STATUS_INVALID_PARAMETER;
	}
	close_unused(adapter->memory, d);
	vmm_memory_reap(adapter);
	release_resource(resource);
	return STATUS_SUCCESS;
}

static struct vmm_ref *checked_ref_locked(struct vmm_device *device, const uint32_t *handles,
					  uint32_t index)
{
	struct vmm_ref *ref = vmm_ref_lookup_locked(device, handles[index]);

	if (!ref) {
		vmm_ref_report(device, handles[index], "ALF-36", "deallocate");
		return NULL;
	}
	for (uint32_t i = 0; i < index; i++)
		if (handles[i] == handles[index]) {
			vmm_finding(device->adapter->observe, "ALF-36", device->process->id,
				    handles[index],
				    "deallocate: handle 0x%08x is listed twice (entries %u and %u)",
				    handles[index], i, index);
			return NULL;
		}
	return ref;
}

static void release_empty_opened_resources(struct vmm_device *device)
{
	struct vmm_list *link;
	struct vmm_resource *empty;

	do {
		empty = NULL;
		vmm_os_mutex_lock(&device->process->lock);
		vmm_list_for_each (link, &device->resources) {
			struct vmm_resource *r = vmm_container_of(link, struct vmm_resource, link);

			if (r->opened && !r->busy && vmm_list_empty(&r->refs))
				empty = r;
		}
		if (empty)
			empty->busy = true;
		vmm_os_mutex_unlock(&device->process->lock);
		if (empty)
			release_resource(empty);
	} while (empty);
}

static NTSTATUS deallocate_list(struct vmm_device *device, const uint32_t *handles, uint32_t count,
				struct vmm_deallocation *d)
{
	struct vmm_adapter *adapter = device->adapter;
	NTSTATUS status = STATUS_SUCCESS;
	bool opened = false;

	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_os_mutex_lock(&device->process->lock);
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++)
		if (!checked_ref_locked(device, handles, i))
			status = STATUS_INVALID_PARAMETER;
	for (uint32_t i = 0; i < count && NT_SUCCESS(status); i++) {
		struct vmm_ref *ref = vmm_ref_lookup_locked(device, handles[i]);

		if (!ref)
			continue; /* another instance of an allocation that an earlier entry freed */
		ref = owning_ref_locked(ref);
		opened |= ref->resource && ref->resource->opened;
		retire_ref_locked(adapter->memory, ref, d);
	}
	vmm_os_mutex_unlock(&device->process->lock);
	if (NT_SUCCESS(status))
		vmm_backing_collect(adapter->memory);
	vmm_paging_unlock(adapter);
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
 * The device's own work is complete, so its opens can be closed even while other devices go on using a shared
 * allocation.
 */
static void close_device_refs(struct vmm_device *device)
{
	struct vmm_memory *memory = device->adapter->memory;
	struct vmm_list mine, *link, *next;

	vmm_list_init(&mine);
	vmm_os_mutex_lock(&device->adapter->paging_lock);
	vmm_list_for_each_safe (link, next, &memory->closed) {
		if (vmm_container_of(link, struct vmm_ref, zombie_link)->device != device)
			continue;
		vmm_list_remove(link);
		atomic_fetch_sub(&device->adapter->zombies, 1);
		vmm_list_push_back(&mine, link);
	}
	vmm_paging_unlock(device->adapter);
	vmm_list_for_each_safe (link, next, &mine)
		close_ref(memory, vmm_container_of(link, struct vmm_ref, zombie_link));
}

NTSTATUS vmm_memory_deallocate(struct vmm_device *device, void *runtime_resource,
			       const uint32_t *handles, uint32_t count, uint32_t flags)
{
	struct vmm_deallocation d = {.flags = flags};
	NTSTATUS status = vmm_deallocation_check(device, flags);

	if (!NT_SUCCESS(status))
		return status;
	vmm_list_init(&d.departing);
	vmm_list_init(&d.unused);
	/* A submission holds this lock from looking its allocations up until they count as used: none may go in between. */
	vmm_os_mutex_lock(&device->adapter->submit_lock);
	status = runtime_resource ? deallocate_resource(device, runtime_resource,
							&d) /* ALF-36: the list is ignored */
				  : deallocate_list(device, handles, count, &d);
	if (NT_SUCCESS(status))
		vmm_deallocation_tell(device->adapter->memory, &d);
	vmm_os_mutex_unlock(&device->adapter->submit_lock);
	vmm_existing_let_go(device->adapter->memory, &d.departing);
	if (NT_SUCCESS(status))
		vmm_deallocation_wait(device, &d);
	return status;
}

void vmm_memory_close_device(struct vmm_device *device)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_deallocation d = {0};

	vmm_trims_end(device);
	vmm_list_init(&d.departing);
	vmm_list_init(&d.unused);
	vmm_os_mutex_lock(&adapter->paging_lock);
	vmm_os_mutex_lock(&device->process->lock);
	while (!vmm_list_empty(&device->refs))
		retire_ref_locked(adapter->memory,
				  owning_ref_locked(vmm_container_of(device->refs.next,
								     struct vmm_ref, device_link)),
				  &d);
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_paging_queues_end(device);
	vmm_resident_device_end(device);
	vmm_paging_unlock(adapter);
	close_unused(adapter->memory, &d);
	close_device_refs(device);
	vmm_existing_let_go(adapter->memory, &d.departing);
	while (!vmm_list_empty(&device->resources))
		release_resource(
			vmm_container_of(device->resources.next, struct vmm_resource, link));
	vmm_gates_free(device);
}
