/* SPDX-License-Identifier: MIT */
/*
 * Runtime resources and sharing. The runtime identifies a resource by its own hResource. All
 * openers of a shared resource have one vmm_share in common, which a global handle names.
 */
#include "memory/calls/calls.h"
#include "memory/calls/creation.h"
#include "memory/store/store.h"

#include <string.h>

struct vmm_resource *vmm_resource_find_locked(struct vmm_device *device,
					      const void *runtime_resource)
{
	struct vmm_list *link;

	vmm_assert_held(&device->process->lock);
	vmm_list_for_each (link, &device->resources) {
		struct vmm_resource *r = vmm_container_of(link, struct vmm_resource, link);

		if (r->runtime_handle == runtime_resource)
			return r;
	}
	return NULL;
}

/* Creates a resource in the busy state; the caller clears `busy` when it is complete. (HND-08) */
static NTSTATUS resource_create(struct vmm_device *device, void *runtime_resource,
				struct vmm_resource **resource)
{
	struct vmm_resource *r = vmm_calloc(1, sizeof(*r));

	if (!r)
		return STATUS_NO_MEMORY;
	r->device = device;
	r->runtime_handle = runtime_resource;
	r->busy = true;
	vmm_list_init(&r->refs);
	vmm_list_init(&r->link);
	vmm_process_lock(device->process);
	bool exists = runtime_resource && vmm_resource_find_locked(device, runtime_resource);
	if (exists)
		vmm_finding(device->adapter->observe, "ALF-35", device->process->id, 0,
			    "create resource: a concurrent call is creating the same hResource");
	else
		r->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_RESOURCE, r);
	if (r->handle)
		vmm_list_push_back(&device->resources, &r->link);
	vmm_process_unlock(device->process);
	if (!r->handle) {
		vmm_free(r);
		return exists ? STATUS_INVALID_PARAMETER : STATUS_NO_MEMORY;
	}
	*resource = r;
	return STATUS_SUCCESS;
}

static void set_busy(struct vmm_resource *resource, bool busy)
{
	vmm_process_lock(resource->device->process);
	resource->busy = busy;
	vmm_process_unlock(resource->device->process);
}

void vmm_resource_unprepare(struct vmm_resource *resource, bool created)
{
	if (created)
		vmm_resource_detach(resource);
	else if (resource)
		set_busy(resource, false);
}

void vmm_resource_detach(struct vmm_resource *resource)
{
	struct vmm_process *process = resource->device->process;

	vmm_process_lock(process);
	vmm_assert(vmm_list_empty(&resource->refs));
	vmm_list_remove(&resource->link);
	vmm_handle_destroy(&process->handles, resource->handle);
	vmm_process_unlock(process);
	vmm_free(resource);
}

NTSTATUS vmm_resource_mark_shared(struct vmm_device *device, void *runtime_resource)
{
	struct vmm_resource *r;
	uint32_t existing;
	NTSTATUS status;

	vmm_assert(vmm_device_is_valid(device));
	if (!runtime_resource)
		return STATUS_INVALID_PARAMETER;
	vmm_process_lock(device->process);
	r = vmm_resource_find_locked(device, runtime_resource);
	existing = r ? r->handle : 0;
	vmm_process_unlock(device->process);
	if (existing)
		return vmm_refuse_rule(
			device->adapter->observe, STATUS_INVALID_PARAMETER, "ALF-35",
			device->process->id, existing,
			"mark resource shared: it exists already; sharing is decided at creation");
	status = resource_create(device, runtime_resource, &r);
	if (!NT_SUCCESS(status))
		return status;
	r->shared = true;
	set_busy(r, false);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_resource_create(struct vmm_device *device, bool shared, void **key)
{
	struct vmm_resource *r;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = resource_create(device, NULL, &r);
	if (!NT_SUCCESS(status))
		return status;
	vmm_process_lock(device->process);
	r->shared = shared;
	r->runtime_handle = r;
	r->busy = false;
	vmm_process_unlock(device->process);
	*key = r;
	return STATUS_SUCCESS;
}

/* Checks whether a call may add `count` allocations. Caller holds the process lock. */
static NTSTATUS may_extend_locked(struct vmm_device *device, const struct vmm_resource *r,
				  uint32_t count) VMM_REQUIRES(vmm_process_lock_class)
{
	const char *why = r->busy ? "a concurrent call is creating or destroying it"
			  : r->shared && r->share && count
				  ? "a shared resource cannot be extended (SHR-34)"
				  : NULL;

	vmm_assert_held(&device->process->lock);
	if (!why)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, "ALF-35", device->process->id,
		r->handle, "cannot add allocations to the resource: %s (%u asked for)", why, count);
}

NTSTATUS vmm_resource_prepare(struct vmm_device *device, void *runtime_resource, uint32_t count,
			      struct vmm_resource **resource, bool *created)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_process_lock(device->process);
	struct vmm_resource *r = vmm_resource_find_locked(device, runtime_resource);
	if (r)
		status = may_extend_locked(device, r, count);
	if (r && NT_SUCCESS(status))
		r->busy = true;
	vmm_process_unlock(device->process);
	*created = !r;
	if (!r)
		status = resource_create(device, runtime_resource, &r);
	*resource = NT_SUCCESS(status) ? r : NULL;
	return status;
}

static void share_free(struct vmm_share *share)
{
	for (uint32_t i = 0; share->item_private_data && i < share->count; i++)
		vmm_free(share->item_private_data[i]);
	vmm_free(share->item_private_data);
	vmm_free(share->item_private_bytes);
	vmm_free(share->private_data);
	vmm_free(share->runtime_data);
	vmm_free(share->allocations);
	vmm_section_put(share->section);
	vmm_free(share);
}

static void *duplicate(const void *data, uint32_t size, bool *failed)
{
	void *copy;

	if (!size)
		return NULL;
	copy = vmm_calloc(1, size);
	if (copy)
		memcpy(copy, data, size);
	else
		*failed = true;
	return copy;
}

static void mark_replaced(struct vmm_allocation *allocation)
{
	atomic_store(&allocation->replaced, true);
	vmm_allocation_mark(allocation, VMM_MARK_REPLACED, true);
}

/*
 * Each source has one shared primary (DMA-36). When a new one is created, as a mode change does on
 * Windows, every holder of the old one must open the new one (condition inferred).
 */
static void share_primaries(struct vmm_share *share)
{
	struct vmm_adapter *adapter = share->adapter;
	struct vmm_world *world = adapter->world;

	vmm_shared_lock(world);
	for (uint32_t i = 0; i < share->count; i++) {
		const struct vmm_allocation *a = share->allocations[i];

		if (!a->primary || a->source_id >= VMM_SOURCES_MAX ||
		    adapter->shared_primary[a->source_id] == share->global_handle)
			continue;
		const struct vmm_share *before = vmm_handle_lookup(
			&world->shared, adapter->shared_primary[a->source_id], VMM_HANDLE_SHARED);
		for (uint32_t b = 0; before && b < before->count; b++)
			if (before->allocations[b]->primary &&
			    before->allocations[b]->source_id == a->source_id)
				mark_replaced(before->allocations[b]);
		adapter->shared_primary[a->source_id] = share->global_handle;
	}
	vmm_shared_unlock(world);
}

NTSTATUS vmm_share_create(struct vmm_resource *resource, const struct vmm_allocate_request *request,
			  struct vmm_allocation *const *allocations)
{
	struct vmm_world *world = resource->device->process->world;
	struct vmm_share *share = vmm_calloc(1, sizeof(*share));
	bool failed = false;

	if (!share)
		return STATUS_NO_MEMORY;
	share->adapter = resource->device->adapter;
	share->count = request->count;
	share->references = 1;
	vmm_list_init(&share->orphan_link);
	share->allocations = vmm_calloc(request->count, sizeof(*share->allocations));
	share->item_private_data = vmm_calloc(request->count, sizeof(*share->item_private_data));
	share->item_private_bytes = vmm_calloc(request->count, sizeof(*share->item_private_bytes));
	share->private_data = duplicate(request->private_data, request->private_bytes, &failed);
	share->private_bytes = request->private_bytes;
	/* The content has no meaning to the library (ALC-08, ROP-08). */
	share->runtime_data = duplicate(request->runtime_data, request->runtime_bytes, &failed);
	share->runtime_bytes = request->runtime_bytes;
	share->standard = request->standard;
	if (request->cross_adapter)
		share->section = vmm_section_get(request->section);
	failed |= !share->allocations || !share->item_private_data || !share->item_private_bytes;
	for (uint32_t i = 0; !failed && i < request->count; i++) {
		share->allocations[i] = allocations[i];
		share->item_private_data[i] = duplicate(request->items[i].private_data,
							request->items[i].private_bytes, &failed);
		share->item_private_bytes[i] = request->items[i].private_bytes;
	}
	if (!failed && !request->nt_security) {
		/* Without NtSecuritySharing it has a global handle (ALC-04). */
		vmm_shared_lock(world);
		share->global_handle = vmm_handle_create(&world->shared, VMM_HANDLE_SHARED, share);
		vmm_shared_unlock(world);
		failed = !share->global_handle;
	}
	if (failed) {
		share_free(share);
		return STATUS_NO_MEMORY;
	}
	/*
	 * The share references the allocations, so they live until the last opener is gone,
	 * whatever the creator frees (ROP-06).
	 */
	vmm_paging_lock(share->adapter);
	for (uint32_t i = 0; i < share->count; i++)
		share->allocations[i]->references++;
	vmm_paging_commit(share->adapter);
	if (share->global_handle) /* shared primaries are recorded by global handle */
		share_primaries(share);
	vmm_process_lock(resource->device->process);
	resource->share = share;
	vmm_process_unlock(resource->device->process);
	return STATUS_SUCCESS;
}

uint32_t vmm_share_primary(const struct vmm_adapter *adapter, uint32_t source_id)
{
	struct vmm_world *world = adapter->world;

	vmm_shared_lock(world);
	uint32_t handle = source_id < VMM_SOURCES_MAX ? adapter->shared_primary[source_id] : 0;
	if (handle && !vmm_handle_lookup(&world->shared, handle, VMM_HANDLE_SHARED))
		handle = 0; /* every opener is gone */
	vmm_shared_unlock(world);
	return handle;
}

/* Ends a share that has no more references. */
static void share_end(struct vmm_share *share)
{
	for (uint32_t i = 0; i < share->count; i++)
		vmm_allocation_put(share->adapter->memory, share->allocations[i]);
	share_free(share);
}

static bool drop_locked(struct vmm_share *share) VMM_REQUIRES(vmm_shared_lock_class)
{
	vmm_assert_held(&share->adapter->world->shared_lock);
	bool last = --share->references == 0;
	if (last && share->global_handle)
		vmm_handle_destroy(&share->adapter->world->shared, share->global_handle);
	return last;
}

void vmm_share_put(struct vmm_world *world, struct vmm_share *share)
{
	vmm_shared_lock(world);
	bool last = drop_locked(share);
	vmm_shared_unlock(world);
	if (last)
		share_end(share);
}

bool vmm_share_put_later_locked(struct vmm_share *share)
{
	vmm_assert_held(&share->adapter->world->shared_lock);
	if (!drop_locked(share))
		return false;
	vmm_list_push_back(&share->adapter->memory->orphans, &share->orphan_link);
	atomic_fetch_add(&share->adapter->memory->orphan_count, 1);
	atomic_fetch_add(&share->adapter->zombies, 1);
	return true;
}

void vmm_shares_reap(struct vmm_memory *memory)
{
	struct vmm_world *world = memory->adapter->world;

	while (vmm_unlikely(atomic_load_explicit(&memory->orphan_count, memory_order_relaxed))) {
		struct vmm_share *share = NULL;

		vmm_shared_lock(world);
		if (!vmm_list_empty(&memory->orphans)) {
			atomic_fetch_sub(&memory->orphan_count, 1);
			share = vmm_container_of(memory->orphans.next, struct vmm_share,
						 orphan_link);
			vmm_list_remove(&share->orphan_link);
		}
		vmm_shared_unlock(world);
		if (!share)
			return;
		atomic_fetch_sub(&memory->adapter->zombies, 1);
		share_end(share);
	}
}

NTSTATUS vmm_resource_global_handle(struct vmm_device *device, uint32_t resource, uint32_t *global)
{
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	vmm_process_lock(device->process);
	struct vmm_resource *r =
		vmm_handle_lookup(&device->process->handles, resource, VMM_HANDLE_RESOURCE);
	if (r && r->device == device && r->share) {
		*global = r->share->global_handle;
		status = STATUS_SUCCESS;
	}
	vmm_process_unlock(device->process);
	return status;
}

/* Every open creates a new handle (ROP-05). */
static struct vmm_ref *opened_ref(struct vmm_device *device, struct vmm_resource *resource,
				  struct vmm_allocation *allocation)
{
	struct vmm_ref *ref = vmm_calloc(1, sizeof(*ref));

	if (!ref)
		return NULL;
	ref->allocation = allocation;
	ref->instance = &allocation->first;
	ref->resource = resource;
	vmm_list_init(&ref->device_link);
	vmm_list_init(&ref->resource_link);
	vmm_list_init(&ref->zombie_link);
	vmm_list_init(&ref->residency_link);
	vmm_list_init(&ref->leaving_link);
	vmm_list_init(&ref->departure_link);
	vmm_process_lock(device->process);
	ref->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_ALLOCATION, ref);
	vmm_process_unlock(device->process);
	if (!ref->handle) {
		vmm_free(ref);
		return NULL;
	}
	return ref;
}

/*
 * Passes copies of the creation-time private data to the miniport, so that the next opener finds it
 * unchanged.
 */
static NTSTATUS ask_miniport_to_open(struct vmm_device *device, const struct vmm_share *share,
				     uint32_t index, DXGK_OPENALLOCATIONINFO *info)
{
	const void *item = share->item_private_data[index];
	uint32_t item_bytes = share->item_private_bytes[index];
	bool failed = false;
	DXGKARG_OPENALLOCATION args = {
		.NumAllocations = 1,
		.pOpenAllocation = info,
		.pPrivateDriverData = duplicate(share->private_data, share->private_bytes, &failed),
		.PrivateDriverSize = share->private_bytes,
	};
	NTSTATUS status = STATUS_NO_MEMORY;

	void *item_copy = duplicate(item, item_bytes, &failed);

	info->pPrivateDriverData = item_copy;
	info->PrivateDriverDataSize = item_bytes;
	if (!failed) {
		struct vmm_process *before =
			vmm_calling_process_set(device->adapter->os, device->process);

		status = vmm_port_open_allocation(device->adapter->port, device->kmd_device, &args);
		vmm_calling_process_set(device->adapter->os, before);
		if ((item_bytes && memcmp(item_copy, item, item_bytes)) ||
		    (share->private_bytes &&
		     memcmp(args.pPrivateDriverData, share->private_data, share->private_bytes)))
			vmm_finding(device->adapter->observe, "ALF-34", device->process->id,
				    info->hAllocation,
				    "DxgkDdiOpenAllocation without Create changed private data "
				    "(%u and %u bytes), which it may only read",
				    item_bytes, share->private_bytes);
	}
	vmm_free(item_copy);
	vmm_free((void *)(uintptr_t)args.pPrivateDriverData);
	return status;
}

/* Links an opened ref into its device and resource. */
static NTSTATUS link_ref(struct vmm_device *device, struct vmm_resource *resource,
			 struct vmm_ref *ref)
{
	struct vmm_adapter *adapter = device->adapter;

	vmm_paging_lock(adapter);
	bool opened = vmm_existing_open_locked(ref->allocation);
	if (opened) {
		ref->allocation->references++;
		vmm_process_lock(device->process);
		ref->device = device;
		vmm_list_push_back(&device->refs, &ref->device_link);
		vmm_list_push_back(&resource->refs, &ref->resource_link);
		vmm_process_unlock(device->process);
	}
	vmm_paging_commit(adapter);
	if (opened)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		adapter->observe, STATUS_INVALID_PARAMETER, "ALF-40", device->process->id, 0,
		"open resource: every handle of its existing memory is closed, so the "
		"memory is its owner's again");
}

/*
 * Opens one allocation of a shared resource for a further device; only DxgkDdiOpenAllocation is
 * called (ALF-34).
 */
static NTSTATUS open_one(struct vmm_device *device, struct vmm_resource *resource, uint32_t index)
{
	struct vmm_share *share = resource->share;
	struct vmm_adapter *adapter = device->adapter;
	DXGK_OPENALLOCATIONINFO info = {0};
	struct vmm_ref *ref = opened_ref(device, resource, share->allocations[index]);

	if (!ref)
		return STATUS_NO_MEMORY;
	info.hAllocation = ref->handle;
	NTSTATUS status = ask_miniport_to_open(device, share, index, &info);
	if (NT_SUCCESS(status) && !info.hDeviceSpecificAllocation)
		status = vmm_refuse_rule(
			adapter->observe, STATUS_INVALID_PARAMETER, "ALF-34", device->process->id,
			ref->handle,
			"DxgkDdiOpenAllocation succeeded and left hDeviceSpecificAllocation NULL");
	if (NT_SUCCESS(status)) {
		ref->kmd_open = info.hDeviceSpecificAllocation;
		status = link_ref(device, resource, ref);
		if (!NT_SUCCESS(status))
			vmm_port_close_allocation(adapter->port, device->kmd_device, &ref->kmd_open,
						  1);
	}
	if (!NT_SUCCESS(status)) {
		vmm_process_lock(device->process);
		vmm_handle_destroy(&device->process->handles, ref->handle);
		vmm_process_unlock(device->process);
		vmm_free(ref);
	}
	return status;
}

/* Returns NULL if the key names no share. Caller holds the shared lock. */
static struct vmm_share *share_of_key_locked(struct vmm_world *world,
					     const struct vmm_share_key *key)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	vmm_assert_held(&world->shared_lock);
	if (key->bundle)
		return vmm_bundle_share_locked(key->bundle);
	return vmm_handle_lookup(&world->shared, key->global, VMM_HANDLE_SHARED);
}

static void refuse_key(const struct vmm_world *world, const struct vmm_process *process,
		       const struct vmm_share_key *key, bool other_adapter)
{
	if (key->bundle)
		vmm_finding(world->observe, "ROP-07", process->id, 0,
			    "the resource of the NT handle belongs to another adapter%s",
			    other_adapter ? " and was created without CrossAdapter"
					  : ", which has stopped");
	else
		vmm_finding(world->observe, other_adapter ? "ROP-07" : "ROP-01", process->id,
			    key->global, "0x%08x is not the global handle of a resource%s (%s)",
			    key->global, other_adapter ? " of this adapter" : "",
			    vmm_handle_explain(&world->shared, key->global, VMM_HANDLE_SHARED));
}

/*
 * References the share. For a device of another adapter it references the section of a
 * cross-adapter resource instead (ROP-07).
 */
static NTSTATUS share_get(struct vmm_device *device, const struct vmm_share_key *key,
			  uint32_t capacity, struct vmm_share **share, struct vmm_section **section)
{
	struct vmm_world *world = device->process->world;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_shared_lock(world);
	struct vmm_share *s = share_of_key_locked(world, key);
	if (!s || (s->adapter != device->adapter && !s->section))
		status = STATUS_INVALID_PARAMETER;
	else if (capacity < s->count)
		status = STATUS_BUFFER_TOO_SMALL;
	else if (s->adapter != device->adapter)
		*section = vmm_section_get(s->section);
	else
		s->references++;
	vmm_shared_unlock(world);
	*share = s;
	return status;
}

static struct vmm_share *find_share_locked(struct vmm_device *device,
					   const struct vmm_share_key *key)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	struct vmm_world *world = device->process->world;
	struct vmm_share *share = share_of_key_locked(world, key);

	vmm_assert_held(&device->process->world->shared_lock);
	if (share && (share->adapter == device->adapter || share->section))
		return share;
	refuse_key(world, device->process, key, share != NULL);
	return NULL;
}

NTSTATUS vmm_share_luid(struct vmm_process *process, const struct vmm_share_key *key,
			uint32_t *luid)
{
	struct vmm_world *world = process->world;

	vmm_shared_lock(world);
	const struct vmm_share *share = share_of_key_locked(world, key);
	if (share)
		*luid = share->adapter->luid;
	else
		refuse_key(world, process, key, false);
	vmm_shared_unlock(world);
	return share ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static struct vmm_share_sizes sizes_of(const struct vmm_share *share)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	struct vmm_share_sizes sizes = {.count = share->count,
					.runtime_bytes = share->runtime_bytes,
					.private_bytes = share->private_bytes};

	vmm_assert_held(&share->adapter->world->shared_lock);
	if (share->standard)
		/* Of the answer, clients get the part of the allocation only (ROP-03). */
		sizes.private_bytes = 0;
	for (uint32_t i = 0; i < share->count; i++)
		sizes.total_item_bytes += share->item_private_bytes[i];
	return sizes;
}

NTSTATUS vmm_share_sizes(struct vmm_device *device, const struct vmm_share_key *key,
			 struct vmm_share_sizes *sizes)
{
	struct vmm_world *world = device->process->world;

	vmm_assert(vmm_device_is_valid(device));
	vmm_shared_lock(world);
	const struct vmm_share *share = find_share_locked(device, key);
	if (share)
		*sizes = sizes_of(share);
	vmm_shared_unlock(world);
	return share ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static void copy_bytes(void *to, const void *from, uint32_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static void read_locked(const struct vmm_share *share, const struct vmm_share_data *data)
	VMM_REQUIRES(vmm_shared_lock_class)
{
	char *item = data->items;

	vmm_assert_held(&share->adapter->world->shared_lock);
	copy_bytes(data->runtime_data, share->runtime_data, share->runtime_bytes);
	if (!share->standard)
		copy_bytes(data->private_data, share->private_data, share->private_bytes);
	for (uint32_t i = 0; item && i < share->count; i++) {
		copy_bytes(item, share->item_private_data[i], share->item_private_bytes[i]);
		item += share->item_private_bytes[i];
		data->item_bytes[i] = share->item_private_bytes[i];
	}
}

NTSTATUS vmm_share_read(struct vmm_device *device, const struct vmm_share_key *key,
			const struct vmm_share_sizes *sizes, const struct vmm_share_data *data)
{
	struct vmm_world *world = device->process->world;
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	vmm_shared_lock(world);
	const struct vmm_share *share = find_share_locked(device, key);
	/* The handle may name another resource since its sizes were queried. */
	if (share) {
		struct vmm_share_sizes now = sizes_of(share);

		if (!memcmp(&now, sizes, sizeof(now))) {
			read_locked(share, data);
			status = STATUS_SUCCESS;
		}
	}
	vmm_shared_unlock(world);
	return status;
}

/* Opens all allocations of the share, or fails. The handles are those of the resource's list. */
static NTSTATUS open_all(struct vmm_device *device, struct vmm_resource *resource)
{
	NTSTATUS status = STATUS_SUCCESS;

	for (uint32_t i = 0; i < resource->share->count && NT_SUCCESS(status); i++)
		status = open_one(device, resource, i);
	return status;
}

/* Stores the handles of the resource's allocations in their order. Returns their number. */
static uint32_t list_handles(const struct vmm_resource *resource, uint32_t *handles)
{
	const struct vmm_list *link;
	uint32_t count = 0;

	vmm_process_lock(resource->device->process);
	vmm_list_for_each (link, &resource->refs)
		handles[count++] = vmm_container_of(link, struct vmm_ref, resource_link)->handle;
	vmm_process_unlock(resource->device->process);
	return count;
}

NTSTATUS vmm_resource_open(struct vmm_device *device, const struct vmm_share_key *key,
			   uint32_t *resource, uint32_t *allocations, uint32_t *count)
{
	struct vmm_section *section = NULL;
	struct vmm_share *share;
	struct vmm_resource *r;

	vmm_assert(vmm_device_is_valid(device));
	NTSTATUS status = share_get(device, key, *count, &share, &section);
	if (!NT_SUCCESS(status))
		return status;
	if (section) {
		status = vmm_cross_adapter_open(device, section, resource, allocations);
		vmm_section_put(section);
		*count = NT_SUCCESS(status) ? 1 : *count;
		return status;
	}
	status = resource_create(device, NULL, &r);
	if (!NT_SUCCESS(status)) {
		vmm_share_put(device->process->world, share);
		return status;
	}
	r->shared = true;
	/*
	 * No runtime handle names it. It is released with its last allocation
	 * (vmm_memory_deallocate).
	 */
	vmm_process_lock(device->process);
	r->share = share;
	r->runtime_handle = r;
	r->opened = true;
	vmm_process_unlock(device->process);
	status = open_all(device, r);
	if (NT_SUCCESS(status)) {
		/* While the resource is busy no other call ends it. */
		*count = list_handles(r, allocations);
		*resource = r->handle;
	}
	set_busy(r, false);
	if (!NT_SUCCESS(status))
		(void)!vmm_memory_deallocate(device, r, NULL, 0, 0);
	return status;
}
