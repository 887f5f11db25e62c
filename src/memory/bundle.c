/* SPDX-License-Identifier: MIT */
/*
 * What NT handles of resources name: a resource alone, or with a keyed mutex and a synchronization object (SHR-07), all three
 * of which it keeps (SHR-29). The last of those handles may go when nobody is inside any device of the adapter, so what it
 * kept of the resource is left to the adapter's worker; an adapter that stops takes its resources out of all of them.
 */
#include "memory/memory_private.h"
#include "sync/sync.h"

struct vmm_bundle {
	struct vmm_world *world;
	_Atomic uint32_t references;
	struct vmm_list link; /* in world->bundles; guarded by the shared lock, like the next one */
	struct vmm_share *share; /* NULL: its adapter has stopped */
	struct vmm_keyed *keyed; /* NULL: the resource came alone, and there is no sync either */
	struct vmm_sync_object *sync;
};

struct vmm_share *vmm_bundle_share_locked(const struct vmm_bundle *bundle)
{
	return bundle->share;
}

static void get_bundle(void *object)
{
	struct vmm_bundle *bundle = object;

	atomic_fetch_add_explicit(&bundle->references, 1, memory_order_relaxed);
}

/* Lets go of the share. The adapter, to be put, if its worker is to be told; one that stops does the work itself. */
static struct vmm_adapter *leave_share(struct vmm_bundle *bundle)
{
	struct vmm_os_mutex *lock = &bundle->world->shared_lock;
	struct vmm_adapter *adapter = NULL;

	vmm_os_mutex_lock(lock);
	struct vmm_share *share = bundle->share;
	vmm_list_remove(&bundle->link);
	bundle->share = NULL;
	if (share) {
		adapter = share->adapter;
		if (!vmm_share_put_later_locked(share) || vmm_list_empty(&adapter->world_link))
			adapter = NULL;
		else
			adapter->visitors++; /* vmm_adapter_put */
	}
	vmm_os_mutex_unlock(lock);
	return adapter;
}

void vmm_bundle_put(struct vmm_bundle *bundle)
{
	if (atomic_fetch_sub_explicit(&bundle->references, 1, memory_order_acq_rel) != 1)
		return;
	struct vmm_adapter *adapter = leave_share(bundle);
	if (adapter)
		adapter->memory->engine->wake(adapter);
	vmm_adapter_put(adapter);
	if (bundle->keyed)
		vmm_keyed_put(bundle->keyed);
	if (bundle->sync)
		vmm_sync_put(bundle->sync);
	vmm_free(bundle);
}

static void put_bundle(void *object)
{
	vmm_bundle_put(object);
}

/* A reference to what is shared of the device's resource; NULL and a finding: nothing is, or not so. */
static struct vmm_share *hold_share(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_world *world = process->world;
	struct vmm_share *share = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_resource *r =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_RESOURCE);
	if (r && r->device == device && r->share) {
		vmm_os_mutex_lock(&world->shared_lock);
		if (!r->share->global_handle) {
			share = r->share;
			share->references++;
		}
		vmm_os_mutex_unlock(&world->shared_lock);
	}
	if (!share)
		vmm_finding(world->observe, "SHR-06", process->id, handle,
			    "share objects: 0x%08x is %s", handle,
			    !r ? vmm_handle_explain(&process->handles, handle, VMM_HANDLE_RESOURCE)
			    : !r->share ? "a resource that is not shared, or without allocations"
					: "a resource made without NtSecuritySharing");
	vmm_os_mutex_unlock(&process->lock);
	return share;
}

NTSTATUS vmm_bundle_target(struct vmm_device *device, const uint32_t *handles, uint32_t count,
			   struct vmm_nt_target *target)
{
	struct vmm_world *world = device->process->world;
	struct vmm_bundle *bundle = vmm_calloc(1, sizeof(*bundle));

	if (!bundle)
		return STATUS_NO_MEMORY;
	bundle->world = world;
	atomic_init(&bundle->references, 1);
	vmm_list_init(&bundle->link);
	bundle->share = hold_share(device, handles[0]);
	bool whole = bundle->share;
	if (whole && count == VMM_BUNDLE_MAX) {
		bundle->sync = vmm_sync_hold(device->process, handles[2]);
		if (bundle->sync)
			bundle->keyed = vmm_keyed_hold(device, handles[1]);
		whole = bundle->keyed;
	}
	if (!whole) {
		vmm_bundle_put(bundle);
		return STATUS_INVALID_PARAMETER;
	}
	vmm_os_mutex_lock(&world->shared_lock);
	vmm_list_push_back(&world->bundles, &bundle->link);
	vmm_os_mutex_unlock(&world->shared_lock);
	*target = (struct vmm_nt_target){VMM_NT_RESOURCE, bundle, get_bundle, put_bundle};
	return STATUS_SUCCESS;
}

NTSTATUS vmm_bundle_find(struct vmm_process *process, uint64_t handle, struct vmm_bundle **bundle)
{
	uint32_t access;
	void *object;
	NTSTATUS status = vmm_nt_find(process, handle, VMM_NT_RESOURCE, &object, &access);

	if (NT_SUCCESS(status))
		*bundle = object;
	return status;
}

NTSTATUS vmm_bundle_open(struct vmm_process *process, struct vmm_device *device,
			 struct vmm_bundle *bundle, struct vmm_keyed_open *keyed, uint32_t *sync)
{
	keyed->handle = *sync = 0; /* SHR-28; from then on each is on its own (SHR-30) */
	if (!bundle->keyed) {
		if (device)
			return STATUS_SUCCESS;
		vmm_finding(process->world->observe, "KMX-10", process->id, 0,
			    "open keyed mutex: the NT handle is of a resource alone");
		return STATUS_INVALID_PARAMETER;
	}
	NTSTATUS status = vmm_keyed_open_held(process, device, bundle->keyed, keyed);
	if (!NT_SUCCESS(status) || !device)
		return status;
	status = vmm_sync_open_held(process, device, bundle->sync, sync);
	if (!NT_SUCCESS(status))
		(void)!vmm_keyed_destroy(process, keyed->handle);
	return status;
}

void vmm_bundles_end_adapter(struct vmm_adapter *adapter)
{
	struct vmm_world *world = adapter->world;
	struct vmm_list *link;

	vmm_os_mutex_lock(&world->shared_lock);
	vmm_list_for_each (link, &world->bundles) {
		struct vmm_bundle *bundle = vmm_container_of(link, struct vmm_bundle, link);

		if (!bundle->share || bundle->share->adapter != adapter)
			continue;
		(void)!vmm_share_put_later_locked(bundle->share);
		bundle->share = NULL;
	}
	vmm_os_mutex_unlock(&world->shared_lock);
}
