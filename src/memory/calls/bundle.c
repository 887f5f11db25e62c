/* SPDX-License-Identifier: MIT */
/*
 * Bundles: the objects that NT handles of resources refer to. A bundle holds a resource's share
 * alone, or with a keyed mutex and a synchronization object (SHR-07). It has a reference to each of
 * them (SHR-29).
 *
 * The last NT handle may be closed by a thread that is inside no device of the adapter. So the
 * bundle leaves the end of the share to the adapter's worker. An adapter that stops removes its
 * shares from all bundles.
 */
#include "memory/calls/calls.h"
#include "memory/calls/creation.h"
#include "sync/sync.h"

struct vmm_bundle {
	struct vmm_world *world;
	_Atomic uint32_t references;
	/* Guarded by the world's shared lock: link and share. */
	struct vmm_list link;         /* in world->bundles */
	struct vmm_share *share;      /* NULL: its adapter has stopped */
	struct vmm_keyed *keyed;      /* NULL: the bundle has the resource alone */
	struct vmm_sync_object *sync; /* NULL where `keyed` is */
};

struct vmm_share *vmm_bundle_share_locked(const struct vmm_bundle *bundle)
{
	vmm_assert_held(&bundle->world->shared_lock);
	return bundle->share;
}

static void get_bundle(void *object)
{
	struct vmm_bundle *bundle = object;

	atomic_fetch_add_explicit(&bundle->references, 1, memory_order_relaxed);
}

/*
 * Drops the bundle's reference to the share. Returns the adapter, with a reference for the caller,
 * if its worker must be woken to end the share. Returns NULL otherwise; an adapter that stops ends
 * the share itself.
 */
static struct vmm_adapter *drop_share(struct vmm_bundle *bundle)
{
	struct vmm_adapter *adapter = NULL;

	vmm_shared_lock(bundle->world);
	struct vmm_share *share = bundle->share;
	vmm_list_remove(&bundle->link);
	bundle->share = NULL;
	if (share) {
		adapter = share->adapter;
		if (!vmm_share_put_later_locked(share) || vmm_list_empty(&adapter->world_link))
			adapter = NULL;
		else
			adapter->callers_inside++; /* the caller drops it by vmm_adapter_put */
	}
	vmm_shared_unlock(bundle->world);
	return adapter;
}

void vmm_bundle_put(struct vmm_bundle *bundle)
{
	if (atomic_fetch_sub_explicit(&bundle->references, 1, memory_order_acq_rel) != 1)
		return;
	struct vmm_adapter *adapter = drop_share(bundle);
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

/*
 * Returns a reference to the share of the device's resource. Returns NULL, with a finding, if it
 * cannot have an NT handle.
 */
static struct vmm_share *hold_share(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_world *world = process->world;
	struct vmm_share *share = NULL;

	vmm_process_lock(process);
	const struct vmm_resource *r =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_RESOURCE);
	if (r && r->device == device && r->share) {
		vmm_shared_lock(world);
		if (!r->share->global_handle) {
			share = r->share;
			share->references++;
		}
		vmm_shared_unlock(world);
	}
	if (!share)
		vmm_finding(world->observe, "SHR-06", process->id, handle,
			    "share objects: 0x%08x is %s", handle,
			    !r ? vmm_handle_explain(&process->handles, handle, VMM_HANDLE_RESOURCE)
			    : !r->share ? "a resource that is not shared, or without allocations"
					: "a resource created without NtSecuritySharing");
	vmm_process_unlock(process);
	return share;
}

/* Makes the bundle of an NT handle, with a reference to each of its objects. (SHR-29) */
NTSTATUS vmm_bundle_target(struct vmm_device *device, const uint32_t *handles, uint32_t count,
			   struct vmm_nt_target *target)
{
	struct vmm_world *world = device->process->world;

	vmm_assert(vmm_device_is_valid(device));
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
	vmm_shared_lock(world);
	vmm_list_push_back(&world->bundles, &bundle->link);
	vmm_shared_unlock(world);
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

NTSTATUS vmm_bundle_open(struct vmm_device *device, struct vmm_bundle *bundle,
			 struct vmm_keyed_open *keyed, uint32_t *sync)
{
	/* Each opening gets independent handles of the objects (SHR-28, SHR-30). */
	keyed->handle = *sync = 0;
	if (!bundle->keyed)
		return STATUS_SUCCESS;
	NTSTATUS status = vmm_keyed_open_held(device, bundle->keyed, keyed);
	if (!NT_SUCCESS(status))
		return status;
	status = vmm_sync_open_held(device, bundle->sync, sync);
	if (!NT_SUCCESS(status))
		(void)!vmm_keyed_destroy(device->process, keyed->handle);
	return status;
}

void vmm_bundles_end_adapter(struct vmm_adapter *adapter)
{
	struct vmm_world *world = adapter->world;
	struct vmm_list *link;

	vmm_shared_lock(world);
	vmm_list_for_each (link, &world->bundles) {
		struct vmm_bundle *bundle = vmm_container_of(link, struct vmm_bundle, link);

		if (!bundle->share || bundle->share->adapter != adapter)
			continue;
		(void)!vmm_share_put_later_locked(bundle->share);
		bundle->share = NULL;
	}
	vmm_shared_unlock(world);
}
