/* SPDX-License-Identifier: MIT */
/*
 * Runtime resources and their sharing. A runtime resource is known by the runtime's own hResource; what several
 * openers have in common is a vmm_share, named by a global handle.
 */
#include "memory/memory_private.h"

#include <string.h>

struct vmm_resource *vmm_resource_find_locked(struct vmm_device *device,
					      const void *runtime_resource)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->resources) {
		struct vmm_resource *r = vmm_container_of(link, struct vmm_resource, link);

		if (r->runtime_handle == runtime_resource)
			return r;
	}
	return NULL;
}

/* In the making (busy) until the caller says otherwise. */
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
	vmm_os_mutex_lock(&device->process->lock);
	bool exists = runtime_resource && vmm_resource_find_locked(device, runtime_resource);
	if (exists)
		vmm_finding(device->adapter->observe, "ALF-35", device->process->id, 0,
			    "another thread's call is creating the resource, too");
	else
		r->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_RESOURCE, r);
	if (r->handle)
		vmm_list_push_back(&device->resources, &r->link);
	vmm_os_mutex_unlock(&device->process->lock);
	if (!r->handle) {
		vmm_free(r);
		return exists ? STATUS_INVALID_PARAMETER : STATUS_NO_MEMORY;
	}
	*resource = r;
	return STATUS_SUCCESS;
}

static void set_busy(struct vmm_resource *resource, bool busy)
{
	vmm_os_mutex_lock(&resource->device->process->lock);
	resource->busy = busy;
	vmm_os_mutex_unlock(&resource->device->process->lock);
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

	vmm_os_mutex_lock(&process->lock);
	vmm_assert(vmm_list_empty(&resource->refs));
	vmm_list_remove(&resource->link);
	vmm_handle_destroy(&process->handles, resource->handle);
	vmm_os_mutex_unlock(&process->lock);
	vmm_free(resource);
}

NTSTATUS vmm_resource_mark_shared(struct vmm_device *device, void *runtime_resource)
{
	struct vmm_resource *r;
	uint32_t existing;
	NTSTATUS status;

	if (!runtime_resource)
		return STATUS_INVALID_PARAMETER;
	vmm_os_mutex_lock(&device->process->lock);
	r = vmm_resource_find_locked(device, runtime_resource);
	existing = r ? r->handle : 0;
	vmm_os_mutex_unlock(&device->process->lock);
	if (existing) {
		vmm_finding(device->adapter->observe, "ALF-35", device->process->id, existing,
			    "a resource is shared from its creation on; this one exists");
		return STATUS_INVALID_PARAMETER;
	}
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
	NTSTATUS status = resource_create(device, NULL, &r);

	if (!NT_SUCCESS(status))
		return status;
	vmm_os_mutex_lock(&device->process->lock);
	r->shared = shared;
	r->runtime_handle = r;
	r->busy = false;
	vmm_os_mutex_unlock(&device->process->lock);
	*key = r;
	return STATUS_SUCCESS;
}

/* Process lock held: may a call add `count` allocations to it? */
static NTSTATUS may_extend_locked(struct vmm_device *device, const struct vmm_resource *r,
				  uint32_t count)
{
	const char *why = r->busy ? "another thread's call is creating or ending it"
			  : r->shared && r->share && count
				  ? "a shared resource cannot be extended (SHR-34)"
				  : NULL;

	if (!why)
		return STATUS_SUCCESS;
	vmm_finding(device->adapter->observe, "ALF-35", device->process->id, r->handle,
		    "%s (%u allocations more)", why, count);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_resource_prepare(struct vmm_device *device, void *runtime_resource, uint32_t count,
			      struct vmm_resource **resource, bool *created)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_os_mutex_lock(&device->process->lock);
	struct vmm_resource *r = vmm_resource_find_locked(device, runtime_resource);
	if (r)
		status = may_extend_locked(device, r, count);
	if (r && NT_SUCCESS(status))
		r->busy = true;
	vmm_os_mutex_unlock(&device->process->lock);
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

static void *copy_of(const void *data, uint32_t size, bool *failed)
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

static void replace(struct vmm_allocation *allocation)
{
	atomic_store(&allocation->replaced, true);
	vmm_allocation_mark(allocation, VMM_MARK_REPLACED, true);
}

/*
 * DMA-36: a source has one shared primary. When another is made, which on Windows a mode change does, whoever holds the
 * one before opens this one (condition inferred).
 */
static void share_primaries(struct vmm_share *share)
{
	struct vmm_adapter *adapter = share->adapter;
	struct vmm_world *world = adapter->world;

	vmm_os_mutex_lock(&world->shared_lock);
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
				replace(before->allocations[b]);
		adapter->shared_primary[a->source_id] = share->global_handle;
	}
	vmm_os_mutex_unlock(&world->shared_lock);
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
	share->private_data = copy_of(request->private_data, request->private_bytes, &failed);
	share->private_bytes = request->private_bytes;
	/* ALC-08, ROP-08: bytes that mean nothing here. */
	share->runtime_data = copy_of(request->runtime_data, request->runtime_bytes, &failed);
	share->runtime_bytes = request->runtime_bytes;
	share->standard = request->standard;
	if (request->cross_adapter)
		share->section = vmm_section_get(request->section);
	failed |= !share->allocations || !share->item_private_data || !share->item_private_bytes;
	for (uint32_t i = 0; !failed && i < request->count; i++) {
		share->allocations[i] = allocations[i];
		share->item_private_data[i] = copy_of(request->items[i].private_data,
						      request->items[i].private_bytes, &failed);
		share->item_private_bytes[i] = request->items[i].private_bytes;
	}
	if (!failed && !request->nt_security) { /* ALC-04 */
		vmm_os_mutex_lock(&world->shared_lock);
		share->global_handle = vmm_handle_create(&world->shared, VMM_HANDLE_SHARED, share);
		vmm_os_mutex_unlock(&world->shared_lock);
		failed = !share->global_handle;
	}
	if (failed) {
		share_free(share);
		return STATUS_NO_MEMORY;
	}
	/* ROP-06. The share holds the allocations: they live until its last opener is gone, whatever the creator frees. */
	vmm_os_mutex_lock(&share->adapter->paging_lock);
	for (uint32_t i = 0; i < share->count; i++)
		share->allocations[i]->references++;
	vmm_paging_unlock(share->adapter);
	if (share->global_handle) /* that is how primaries are known */
		share_primaries(share);
	vmm_os_mutex_lock(&resource->device->process->lock);
	resource->share = share;
	vmm_os_mutex_unlock(&resource->device->process->lock);
	return STATUS_SUCCESS;
}

uint32_t vmm_share_primary(const struct vmm_adapter *adapter, uint32_t source_id)
{
	struct vmm_world *world = adapter->world;

	vmm_os_mutex_lock(&world->shared_lock);
	uint32_t handle = source_id < VMM_SOURCES_MAX ? adapter->shared_primary[source_id] : 0;
	if (handle && !vmm_handle_lookup(&world->shared, handle, VMM_HANDLE_SHARED))
		handle = 0; /* all who had it open are gone */
	vmm_os_mutex_unlock(&world->shared_lock);
	return handle;
}

/* Nothing names it any more. */
static void share_end(struct vmm_share *share)
{
	for (uint32_t i = 0; i < share->count; i++)
		vmm_allocation_put(share->adapter->memory, share->allocations[i]);
	share_free(share);
}

static bool drop_locked(struct vmm_share *share)
{
	bool last = --share->references == 0;

	if (last && share->global_handle)
		vmm_handle_destroy(&share->adapter->world->shared, share->global_handle);
	return last;
}

void vmm_share_put(struct vmm_world *world, struct vmm_share *share)
{
	vmm_os_mutex_lock(&world->shared_lock);
	bool last = drop_locked(share);
	vmm_os_mutex_unlock(&world->shared_lock);
	if (last)
		share_end(share);
}

bool vmm_share_put_later_locked(struct vmm_share *share)
{
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

		vmm_os_mutex_lock(&world->shared_lock);
		if (!vmm_list_empty(&memory->orphans)) {
			atomic_fetch_sub(&memory->orphan_count, 1);
			share = vmm_container_of(memory->orphans.next, struct vmm_share,
						 orphan_link);
			vmm_list_remove(&share->orphan_link);
		}
		vmm_os_mutex_unlock(&world->shared_lock);
		if (!share)
			return;
		atomic_fetch_sub(&memory->adapter->zombies, 1);
		share_end(share);
	}
}

NTSTATUS vmm_resource_global_handle(struct vmm_device *device, uint32_t resource, uint32_t *global)
{
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	vmm_os_mutex_lock(&device->process->lock);
	struct vmm_resource *r =
		vmm_handle_lookup(&device->process->handles, resource, VMM_HANDLE_RESOURCE);
	if (r && r->device == device && r->share) {
		*global = r->share->global_handle;
		status = STATUS_SUCCESS;
	}
	vmm_os_mutex_unlock(&device->process->lock);
	return status;
}

/* ROP-05: a handle of its own for every open. */
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
	vmm_list_init(&ref->departure_link);
	vmm_os_mutex_lock(&device->process->lock);
	ref->handle = vmm_handle_create(&device->process->handles, VMM_HANDLE_ALLOCATION, ref);
	vmm_os_mutex_unlock(&device->process->lock);
	if (!ref->handle) {
		vmm_free(ref);
		return NULL;
	}
	return ref;
}

/* What was said at creation, for the miniport to read; the next opener is to find it as it was. */
static NTSTATUS ask_miniport_to_open(struct vmm_device *device, const struct vmm_share *share,
				     uint32_t index, DXGK_OPENALLOCATIONINFO *info)
{
	const void *item = share->item_private_data[index];
	uint32_t item_bytes = share->item_private_bytes[index];
	bool failed = false;
	DXGKARG_OPENALLOCATION args = {
		.NumAllocations = 1,
		.pOpenAllocation = info,
		.pPrivateDriverData = copy_of(share->private_data, share->private_bytes, &failed),
		.PrivateDriverSize = share->private_bytes,
	};
	NTSTATUS status = STATUS_NO_MEMORY;

	void *item_copy = copy_of(item, item_bytes, &failed);

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
			vmm_finding(
				device->adapter->observe, "ALF-34", device->process->id,
				info->hAllocation,
				"DxgkDdiOpenAllocation without Create wrote into private data (%u and %u "
				"bytes), which it may only read",
				item_bytes, share->private_bytes);
	}
	vmm_free(item_copy);
	vmm_free((void *)(uintptr_t)args.pPrivateDriverData);
	return status;
}

/* One allocation of a shared resource, opened by a further device: DxgkDdiOpenAllocation alone (ALF-34). */
static NTSTATUS open_one(struct vmm_device *device, struct vmm_resource *resource, uint32_t index,
			 uint32_t *handle)
{
	struct vmm_share *share = resource->share;
	struct vmm_adapter *adapter = device->adapter;
	DXGK_OPENALLOCATIONINFO info = {0};
	struct vmm_ref *ref = opened_ref(device, resource, share->allocations[index]);

	if (!ref)
		return STATUS_NO_MEMORY;
	info.hAllocation = ref->handle;
	NTSTATUS status = ask_miniport_to_open(device, share, index, &info);
	if (NT_SUCCESS(status) && !info.hDeviceSpecificAllocation) {
		vmm_finding(
			adapter->observe, "ALF-34", device->process->id, ref->handle,
			"DxgkDdiOpenAllocation succeeded and left hDeviceSpecificAllocation NULL");
		status = STATUS_INVALID_PARAMETER;
	}
	if (!NT_SUCCESS(status)) {
		vmm_os_mutex_lock(&device->process->lock);
		vmm_handle_destroy(&device->process->handles, ref->handle);
		vmm_os_mutex_unlock(&device->process->lock);
		vmm_free(ref);
		return status;
	}
	ref->kmd_open = info.hDeviceSpecificAllocation;
	vmm_os_mutex_lock(&adapter->paging_lock);
	ref->allocation->references++;
	vmm_os_mutex_lock(&device->process->lock);
	ref->device = device;
	vmm_list_push_back(&device->refs, &ref->device_link);
	vmm_list_push_back(&resource->refs, &ref->resource_link);
	*handle = ref->handle;
	vmm_os_mutex_unlock(&device->process->lock);
	vmm_paging_unlock(adapter);
	return STATUS_SUCCESS;
}

/* NULL: it names none. Shared lock held. */
static struct vmm_share *of_key_locked(struct vmm_world *world, const struct vmm_share_key *key)
{
	if (key->bundle)
		return vmm_bundle_share_locked(key->bundle);
	return vmm_handle_lookup(&world->shared, key->global, VMM_HANDLE_SHARED);
}

static void refuse_key(const struct vmm_world *world, const struct vmm_process *process,
		       const struct vmm_share_key *key, bool elsewhere)
{
	if (key->bundle)
		vmm_finding(world->observe, "ROP-07", process->id, 0,
			    "the resource of the NT handle is another adapter's%s",
			    elsewhere ? " and was made without CrossAdapter"
				      : ", which has stopped");
	else
		vmm_finding(world->observe, elsewhere ? "ROP-07" : "ROP-01", process->id,
			    key->global, "0x%08x is not the global handle of a resource%s (%s)",
			    key->global, elsewhere ? " of this adapter" : "",
			    vmm_handle_explain(&world->shared, key->global, VMM_HANDLE_SHARED));
}

/* A hold on the share; or, for a device of another adapter, on the section of a cross-adapter resource (ROP-07). */
static NTSTATUS share_get(struct vmm_device *device, const struct vmm_share_key *key, uint32_t room,
			  struct vmm_share **share, struct vmm_section **section)
{
	struct vmm_world *world = device->process->world;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_os_mutex_lock(&world->shared_lock);
	struct vmm_share *s = of_key_locked(world, key);
	if (!s || (s->adapter != device->adapter && !s->section))
		status = STATUS_INVALID_PARAMETER;
	else if (room < s->count)
		status = STATUS_BUFFER_TOO_SMALL;
	else if (s->adapter != device->adapter)
		*section = vmm_section_get(s->section);
	else
		s->references++;
	vmm_os_mutex_unlock(&world->shared_lock);
	*share = s;
	return status;
}

static struct vmm_share *find_share_locked(struct vmm_device *device,
					   const struct vmm_share_key *key)
{
	struct vmm_world *world = device->process->world;
	struct vmm_share *share = of_key_locked(world, key);

	if (share && (share->adapter == device->adapter || share->section))
		return share;
	refuse_key(world, device->process, key, share != NULL);
	return NULL;
}

NTSTATUS vmm_share_luid(struct vmm_process *process, const struct vmm_share_key *key,
			uint32_t *luid)
{
	struct vmm_world *world = process->world;

	vmm_os_mutex_lock(&world->shared_lock);
	const struct vmm_share *share = of_key_locked(world, key);
	if (share)
		*luid = share->adapter->luid;
	else
		refuse_key(world, process, key, false);
	vmm_os_mutex_unlock(&world->shared_lock);
	return share ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static struct vmm_share_sizes sizes_of(const struct vmm_share *share)
{
	struct vmm_share_sizes sizes = {.count = share->count,
					.runtime_bytes = share->runtime_bytes,
					.private_bytes = share->private_bytes};

	if (share->standard) /* ROP-03 */
		sizes.private_bytes = 0;
	for (uint32_t i = 0; i < share->count && !share->standard; i++)
		sizes.total_item_bytes += share->item_private_bytes[i];
	return sizes;
}

NTSTATUS vmm_share_sizes(struct vmm_device *device, const struct vmm_share_key *key,
			 struct vmm_share_sizes *sizes)
{
	struct vmm_world *world = device->process->world;

	vmm_os_mutex_lock(&world->shared_lock);
	const struct vmm_share *share = find_share_locked(device, key);
	if (share)
		*sizes = sizes_of(share);
	vmm_os_mutex_unlock(&world->shared_lock);
	return share ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static void copy_bytes(void *to, const void *from, uint32_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static void read_locked(const struct vmm_share *share, const struct vmm_share_data *data)
{
	char *item = data->items;

	copy_bytes(data->runtime_data, share->runtime_data, share->runtime_bytes);
	if (share->standard)
		return;
	copy_bytes(data->private_data, share->private_data, share->private_bytes);
	for (uint32_t i = 0; i < share->count; i++) {
		copy_bytes(item, share->item_private_data[i], share->item_private_bytes[i]);
		if (item)
			item += share->item_private_bytes[i];
		data->item_bytes[i] = share->item_private_bytes[i];
	}
}

NTSTATUS vmm_share_read(struct vmm_device *device, const struct vmm_share_key *key,
			const struct vmm_share_sizes *sizes, const struct vmm_share_data *data)
{
	struct vmm_world *world = device->process->world;
	NTSTATUS status = STATUS_INVALID_PARAMETER;

	vmm_os_mutex_lock(&world->shared_lock);
	const struct vmm_share *share = find_share_locked(device, key);
	/* Another one may have come under the handle since its sizes were asked. */
	if (share) {
		struct vmm_share_sizes now = sizes_of(share);

		if (!memcmp(&now, sizes, sizeof(now))) {
			read_locked(share, data);
			status = STATUS_SUCCESS;
		}
	}
	vmm_os_mutex_unlock(&world->shared_lock);
	return status;
}

NTSTATUS vmm_resource_open(struct vmm_device *device, const struct vmm_share_key *key,
			   uint32_t *resource, uint32_t *allocations, uint32_t *count)
{
	struct vmm_section *section = NULL;
	struct vmm_share *share;
	struct vmm_resource *r;
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
	/* No runtime handle names it: it is released with its last allocation (vmm_memory_deallocate). */
	vmm_os_mutex_lock(&device->process->lock);
	r->share = share;
	r->runtime_handle = r;
	r->opened = true;
	vmm_os_mutex_unlock(&device->process->lock);
	for (uint32_t i = 0; i < share->count && NT_SUCCESS(status); i++)
		status = open_one(device, r, i, &allocations[i]);
	uint32_t handle = r->handle, opened = share->count;
	set_busy(r, false);
	if (!NT_SUCCESS(status)) {
		(void)!vmm_memory_deallocate(device, r, NULL, 0, 0);
		return status;
	}
	*resource = handle;
	*count = opened;
	return STATUS_SUCCESS;
}
