/* SPDX-License-Identifier: MIT */
/*
 * words: fences that clients signal and wait for in the fence's page, without a message
 * (base/fence_word.h, docs/adr/0003-fences-without-a-message.md). This file decides which clients
 * may have the page of a fence that can be shared, and wakes clients that sleep on it. Clients can
 * store anything to the page. Its content decides only whether a thread is woken.
 */
#include "sync/sync_private.h"

void vmm_sync_offer(const struct vmm_sync_object *object)
{
	if (object->type == VMM_SYNC_MONITORED_FENCE && (object->flags & VMM_SYNC_SHARED) &&
	    !object->narrow && !(object->flags & VMM_SYNC_UNWAIT_ON_LAST) &&
	    vmm_os_kind(object->world->os) == VMM_OS_LINUX)
		vmm_os_memory_offer(&object->slot.page->memory);
}

void vmm_sync_withdraw(const struct vmm_sync *sync)
{
	if (sync->flags & VMM_SYNC_NO_SIGNAL)
		vmm_os_memory_withdraw(&sync->object->slot.page->memory);
}

void vmm_sync_disable_words(struct vmm_sync_object *object)
{
	vmm_sync_lock(object->world);
	object->seen_by_gpu = true;
	struct vmm_fence_page *page = atomic_load(&object->page);
	if (page)
		atomic_store(&page->shut, 1);
	vmm_sync_unlock(object->world);
	vmm_sync_wake_clients(object);
}

void vmm_sync_end_opening_words(const struct vmm_sync *sync, bool unwait)
{
	struct vmm_sync_object *object = sync->object;
	struct vmm_fence_page *page = atomic_load(&object->page);

	if (vmm_likely(!page))
		return;
	/*
	 * A client that waits through that adapter reports the removal, whichever of the two
	 * changes it sees first (LOCK-33).
	 */
	bool closed = sync->device && atomic_load(&sync->device->adapter->closed);
	atomic_store(&page->removed, closed ? sync->device->adapter->luid : 0);
	if (unwait)
		atomic_fetch_add(&page->cancels, 1);
	/* A client may have ended between its store and its wake-up of the waiters. */
	vmm_sync_deliver(object);
}

/* ---- sharing the page ---- */

/*
 * Refuses a fence that a GPU stores to, because nothing would wake the clients. From here on
 * signals of the host check for sleeping clients.
 */
static bool share_locked(struct vmm_sync_object *object) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&object->world->sync_lock);
	vmm_assert(vmm_sync_object_is_consistent_locked(object) && object->slot.page);
	if (object->seen_by_gpu)
		return false;
	if (atomic_load(&object->page))
		return true;
	struct vmm_fence_page *page = (void *)object->slot.page->memory.base;
	atomic_store(&page->awaited, atomic_load(&object->waiters));
	object->sleepers.turns = &page->turns;
	vmm_world_add_sleepers(object->world, &object->sleepers);
	atomic_store(&object->page, page);
	atomic_fetch_add(&object->waiters, 1);
	return true;
}

static bool give_locked(struct vmm_process *process, uint32_t device_handle, uint32_t handle,
			struct vmm_sync_words *words) VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_device *device =
		vmm_handle_lookup(&process->handles, device_handle, VMM_HANDLE_DEVICE);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	const uint32_t both = VMM_SYNC_QUICK_SIGNAL | VMM_SYNC_QUICK_WAIT;

	vmm_assert_held(&process->lock);
	if (!device || !sync || sync->device != device || (sync->quick & both) != both ||
	    sync->owned || !process->viewer || !(sync->object->flags & VMM_SYNC_SHARED) ||
	    !vmm_device_may_bypass_host(device, VIDMM_EVENT_WAIT, VIDMM_EVENT_SYNC) ||
	    !vmm_ok(vmm_os_memory_writable(&sync->object->slot.page->memory, &words->fd)))
		return false;
	words->adapter = device->adapter->luid;
	vmm_sync_lock(process->world);
	bool shared = share_locked(sync->object);
	vmm_sync_unlock(process->world);
	return shared;
}

bool vmm_sync_share_words(struct vmm_process *process, uint32_t device, uint32_t handle,
			  struct vmm_sync_words *words)
{
	*words = (struct vmm_sync_words){.epoch = vmm_world_epoch(process->world), .fd = -1};
	vmm_process_lock(process);
	bool given = give_locked(process, device, handle, words);
	vmm_process_unlock(process);
	if (!given && words->fd >= 0)
		vmm_os_event_close(words->fd);
	return given;
}

void vmm_sync_client_signaled(struct vmm_process *process, uint32_t handle)
{
	struct vmm_sync_object *object = NULL;

	vmm_process_lock(process);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	if (sync && atomic_load(&sync->object->page)) {
		object = sync->object;
		vmm_sync_get(object);
	}
	vmm_process_unlock(process);
	if (!object)
		return;
	vmm_sync_deliver(object);
	vmm_sync_put(object);
}
