/* SPDX-License-Identifier: MIT */
/*
 * Creates and destroys worlds, processes and the common part of adapters. Also counts the calls
 * inside an adapter (vmm_adapter_get, vmm_adapter_put), caches the devices of a process by handle,
 * and records for which process a thread calls. (ADP, HND)
 */
#include "object/object.h"

#include <stdio.h>

struct vmm_lock_class vmm_submit_lock_class, vmm_paging_lock_class, vmm_process_lock_class;
struct vmm_lock_class vmm_state_lock_class, vmm_sync_lock_class, vmm_shared_lock_class;

vmm_status vmm_world_init(struct vmm_world *world, struct vmm_os *os, struct vmm_nt *nt,
			  struct vmm_observe *observe)
{
	world->os = os;
	world->nt = nt;
	world->observe = observe;
	atomic_init(&world->sync_numbers, 0);
	atomic_init(&world->sync_owner_numbers, 0);
	world->next_process_id = 0;
	world->live_processes = 0;
	vmm_os_mutex_init(&world->shared_lock, os, VMM_RANK_SHARED, "shared handles");
	vmm_handle_table_init(&world->shared, VMM_HANDLE_GLOBAL);
	vmm_os_mutex_init(&world->sync_lock, os, VMM_RANK_SYNC, "synchronization objects");
	vmm_list_init(&world->adapters);
	vmm_list_init(&world->nt_handles);
	vmm_list_init(&world->bundles);
	vmm_list_init(&world->sync_awaited);
	vmm_world_epoch_init(world);
	atomic_init(&world->watcher, NULL);
	atomic_init(&world->changes, 0);
	return VMM_OK;
}

void vmm_world_finish(struct vmm_world *world)
{
	vmm_assert(world->live_processes == 0 && vmm_list_empty(&world->adapters) &&
		   vmm_list_empty(&world->nt_handles) && vmm_list_empty(&world->bundles));
	vmm_handle_table_finish(&world->shared);
	vmm_world_epoch_finish(world);
	vmm_os_mutex_finish(&world->sync_lock);
	vmm_os_mutex_finish(&world->shared_lock);
}

vmm_status vmm_process_create(struct vmm_world *world, const char *name,
			      struct vmm_process **process)
{
	struct vmm_process *p = vmm_calloc(1, sizeof(*p));

	if (!p)
		return VMM_NO_MEMORY;
	p->world = world;
	atomic_store(&p->priority_class, 2); /* D3DKMT_SCHEDULINGPRIORITYCLASS_NORMAL (SCH-04) */
	snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
	vmm_os_mutex_init(&p->lock, world->os, VMM_RANK_PROCESS, "process");
	vmm_handle_table_init(&p->handles, VMM_HANDLE_LOCAL);
	vmm_list_init(&p->devices);
	vmm_list_init(&p->stopped_devices);
	vmm_list_init(&p->syncs);
	vmm_list_init(&p->keyed);
	vmm_shared_lock(world);
	p->id = ++world->next_process_id;
	world->live_processes++;
	vmm_shared_unlock(world);
	*process = p;
	return VMM_OK;
}

/* Frees adapter handles that the process never closed. They have no object to release. */
static void drop_handle(void *table, uint32_t handle, void *object)
{
	(void)object;
	vmm_handle_destroy(table, handle);
}

void vmm_process_destroy(struct vmm_process *process)
{
	struct vmm_world *world = process->world;

	vmm_assert(vmm_list_empty(&process->devices) && vmm_list_empty(&process->stopped_devices) &&
		   vmm_list_empty(&process->syncs) && vmm_list_empty(&process->keyed));
	vmm_shared_lock(world);
	world->live_processes--;
	vmm_shared_unlock(world);
	vmm_handle_for_each(&process->handles, drop_handle, &process->handles);
	vmm_handle_table_finish(&process->handles);
	vmm_os_mutex_finish(&process->lock);
	vmm_account_put(process->account);
	vmm_free(process);
}

void vmm_adapter_init(struct vmm_adapter *adapter, struct vmm_world *world)
{
	adapter->world = world;
	adapter->os = world->os;
	adapter->observe = world->observe;
	adapter->spin_ns = vmm_os_is_parallel(world->os) ? VMM_LOCK_SPIN_NS : 0;
	vmm_os_mutex_init(&adapter->submit_lock, world->os, VMM_RANK_SUBMIT, "submit");
	vmm_os_mutex_init(&adapter->paging_lock, world->os, VMM_RANK_PAGING, "paging");
	vmm_os_mutex_init(&adapter->state_lock, world->os, VMM_RANK_STATE, "adapter state");
	vmm_list_init(&adapter->devices);
	for (uint32_t t = 0; t < VMM_TIMELINES_MAX; t++)
		vmm_list_init(&adapter->timeline[t].work);
	vmm_list_init(&adapter->world_link);
}

void vmm_adapter_publish(struct vmm_adapter *adapter, uint32_t luid)
{
	vmm_shared_lock(adapter->world);
	adapter->luid = luid;
	vmm_list_push_back(&adapter->world->adapters, &adapter->world_link);
	vmm_shared_unlock(adapter->world);
}

void vmm_adapter_withdraw(struct vmm_adapter *adapter)
{
	vmm_shared_lock(adapter->world);
	vmm_list_remove(&adapter->world_link);
	vmm_shared_unlock(adapter->world);
}

void vmm_adapter_await_callers(struct vmm_adapter *adapter)
{
	for (;;) {
		uint32_t seen = atomic_load(&adapter->departures);

		vmm_shared_lock(adapter->world);
		uint32_t inside = adapter->callers_inside;
		vmm_shared_unlock(adapter->world);
		if (!inside ||
		    vmm_os_wait(adapter->os, &adapter->departures, seen, VMM_OS_FOREVER,
				"calls inside an adapter that stops", 0) == VMM_UNSUCCESSFUL)
			return;
	}
}

struct vmm_adapter *vmm_adapter_get(struct vmm_world *world, uint32_t luid)
{
	struct vmm_adapter *found = NULL;
	struct vmm_list *at;

	vmm_shared_lock(world);
	vmm_list_for_each (at, &world->adapters) {
		struct vmm_adapter *adapter = vmm_container_of(at, struct vmm_adapter, world_link);

		if (adapter->luid == luid)
			found = adapter;
	}
	if (found)
		found->callers_inside++;
	vmm_shared_unlock(world);
	return found;
}

struct vmm_adapter *vmm_adapter_nth(struct vmm_world *world, uint32_t index)
{
	struct vmm_adapter *found = NULL;
	struct vmm_list *at;

	vmm_shared_lock(world);
	vmm_list_for_each (at, &world->adapters)
		if (!index--)
			found = vmm_container_of(at, struct vmm_adapter, world_link);
	if (found)
		found->callers_inside++;
	vmm_shared_unlock(world);
	return found;
}

/*
 * Wakes with the lock held: the stopping thread frees the adapter as soon as it sees that no call
 * is inside.
 */
void vmm_adapter_put(struct vmm_adapter *adapter)
{
	if (!adapter)
		return;
	struct vmm_world *world = adapter->world;

	vmm_shared_lock(world);
	adapter->callers_inside--;
	atomic_fetch_add(&adapter->departures, 1);
	vmm_os_wake(world->os, &adapter->departures, UINT32_MAX);
	vmm_shared_unlock(world);
}

void vmm_adapter_finish(struct vmm_adapter *adapter)
{
	vmm_assert(vmm_list_empty(&adapter->devices));
	vmm_assert(adapter->allocation_count == 0);
	vmm_os_mutex_finish(&adapter->state_lock);
	vmm_os_mutex_finish(&adapter->paging_lock);
	vmm_os_mutex_finish(&adapter->submit_lock);
}

static struct vmm_device_cache_entry *cache_entry(struct vmm_process *process, uint32_t handle)
{
	return &process->device_cache[handle >> VMM_HANDLE_INDEX_SHIFT &
				      (VMM_DEVICE_CACHE_SIZE - 1)];
}

void vmm_device_cache_add_locked(struct vmm_process *process, uint32_t handle, void *hazard)
{
	struct vmm_device_cache_entry *entry = cache_entry(process, handle);

	vmm_assert_held(&process->lock);
	atomic_store_explicit(&entry->handle, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->hazard, hazard, memory_order_release);
	atomic_store_explicit(&entry->handle, handle, memory_order_release);
}

void vmm_device_cache_drop_locked(struct vmm_process *process, uint32_t handle)
{
	struct vmm_device_cache_entry *entry = cache_entry(process, handle);

	vmm_assert_held(&process->lock);
	if (atomic_load_explicit(&entry->handle, memory_order_relaxed) == handle)
		atomic_store_explicit(&entry->handle, 0, memory_order_relaxed);
}

enum { PROCESS_SLOT = 4 }; /* index of the thread slot (os.h) */

struct vmm_process *vmm_calling_process(struct vmm_os *os)
{
	return (struct vmm_process *)(uintptr_t)VMM_OS_OWN(os)->slot[PROCESS_SLOT];
}

struct vmm_process *vmm_calling_process_set(struct vmm_os *os, struct vmm_process *process)
{
	uint64_t *slot = &VMM_OS_OWN(os)->slot[PROCESS_SLOT];
	struct vmm_process *before = (struct vmm_process *)(uintptr_t)*slot;

	*slot = (uint64_t)(uintptr_t)process;
	return before;
}
