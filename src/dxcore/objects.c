/* SPDX-License-Identifier: MIT */
/*
 * The live adapter objects. A client compares pointers to find out whether two of them are the same
 * adapter, so an adapter has one object as long as a reference to it exists (DXC-06). An object
 * whose last reference is gone is never found again, also before it has left the list.
 */
#include "dxcore/dxcore_private.h"

struct vmm_dxcore_mutex vmm_dxcore_objects = {.mutex = PTHREAD_MUTEX_INITIALIZER};
struct vmm_lock_class vmm_dxcore_class;
static struct vmm_list live = {&live, &live};

/* A reference can be added only to an object that still has one. */
static bool try_reference(struct vmm_dxcore_adapter *adapter)
{
	uint32_t count = atomic_load(&adapter->references);

	while (count && !atomic_compare_exchange_weak(&adapter->references, &count, count + 1))
		;
	return count != 0;
}

static struct vmm_dxcore_adapter *find_locked(const void *system, LUID luid)
	VMM_REQUIRES(vmm_dxcore_class)
{
	struct vmm_list *at;

	vmm_assert_owned(&vmm_dxcore_objects.owner);
	vmm_list_for_each (at, &live) {
		struct vmm_dxcore_adapter *adapter =
			vmm_container_of(at, struct vmm_dxcore_adapter, link);

		if (adapter->system == system && vmm_dxcore_same_luid(adapter->facts.luid, luid) &&
		    try_reference(adapter))
			return adapter;
	}
	return NULL;
}

struct vmm_dxcore_adapter *vmm_dxcore_adapter_get(const void *system, LUID luid,
						  const struct vmm_dxcore_facts *now)
{
	struct vmm_dxcore_adapter *created = now ? vmm_calloc(1, sizeof(*created)) : NULL;

	vmm_dxcore_lock();
	struct vmm_dxcore_adapter *found = find_locked(system, luid);
	if (!found && created) {
		created->interface.lpVtbl = &vmm_dxcore_adapter_functions;
		atomic_init(&created->references, 1);
		created->system = system;
		created->facts = *now;
		vmm_list_push_back(&live, &created->link);
		found = created;
		created = NULL;
	}
	vmm_dxcore_unlock();
	vmm_free(created);
	return found;
}

ULONG vmm_dxcore_adapter_release(struct vmm_dxcore_adapter *adapter)
{
	uint32_t left = atomic_fetch_sub(&adapter->references, 1) - 1;

	if (left)
		return left;
	vmm_dxcore_object_ends(adapter);
	vmm_dxcore_lock();
	vmm_list_remove(&adapter->link);
	vmm_dxcore_unlock();
	vmm_free(adapter);
	return 0;
}

struct vmm_dxcore_adapter *vmm_dxcore_adapter_of(const struct vmm_dxcore_adapters *adapters,
						 uint32_t index, HRESULT *result)
{
	const D3DKMT_ADAPTERINFO *info = &adapters->info[index];
	struct vmm_dxcore_adapter *adapter =
		vmm_dxcore_adapter_get(adapters->system, info->AdapterLuid, NULL);
	struct vmm_dxcore_facts facts;

	*result = S_OK;
	if (adapter)
		return adapter;
	*result = vmm_dxcore_read(info, &facts);
	if (*result != S_OK)
		return NULL;
	adapter = vmm_dxcore_adapter_get(adapters->system, info->AdapterLuid, &facts);
	*result = adapter ? S_OK : E_OUTOFMEMORY;
	return adapter;
}
