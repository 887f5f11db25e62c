/* SPDX-License-Identifier: MIT */
/*
 * Fences in the hands of clients (base/fence_word.h, docs/adr/0003-fences-without-a-message.md): who may have the page of one that can be shared,
 * and what the host does for those who sleep in it. What it finds there steers nothing but whether somebody is woken.
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

void vmm_sync_tell_clients(struct vmm_sync_object *object)
{
	struct vmm_fence_page *page = atomic_load(&object->page);

	if (vmm_likely(!page) || !atomic_load(&page->sleepers))
		return;
	atomic_fetch_add(&page->turns, 1);
	vmm_os_wake_elsewhere(&page->turns);
}

void vmm_sync_shut_words(struct vmm_sync_object *object)
{
	vmm_os_mutex_lock(&object->world->sync_lock);
	object->seen_by_gpu = true;
	struct vmm_fence_page *page = atomic_load(&object->page);
	if (page)
		atomic_store(&page->shut, 1);
	vmm_os_mutex_unlock(&object->world->sync_lock);
	vmm_sync_tell_clients(object);
}

void vmm_sync_end_opening_words(const struct vmm_sync *sync, bool unwait)
{
	struct vmm_sync_object *object = sync->object;
	struct vmm_fence_page *page = atomic_load(&object->page);

	if (vmm_likely(!page))
		return;
	/* Who waits through that adapter is told so, whichever of both he hears of first (LOCK-33). */
	bool closed = sync->device && atomic_load(&sync->device->adapter->closed);
	atomic_store(&page->removed, closed ? sync->device->adapter->luid : 0);
	if (unwait)
		atomic_fetch_add(&page->cancels, 1);
	/* Whoever ended between its store and what comes after it. */
	vmm_sync_deliver(object);
}

void vmm_sync_end_words(struct vmm_sync_object *object)
{
	if (atomic_load(&object->page))
		vmm_world_remove_sleepers(object->world, &object->sleepers);
}

/* ---- giving it away ---- */

/* Not one that a GPU raises unheard. From here on signals of ours look whether clients sleep. */
static bool share_locked(struct vmm_sync_object *object)
{
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
			struct vmm_sync_words *words)
{
	const struct vmm_device *device =
		vmm_handle_lookup(&process->handles, device_handle, VMM_HANDLE_DEVICE);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	const uint32_t both = VMM_SYNC_QUICK_SIGNAL | VMM_SYNC_QUICK_WAIT;

	if (!device || !sync || sync->device != device || (sync->quick & both) != both ||
	    sync->owned || !process->viewer || !(sync->object->flags & VMM_SYNC_SHARED) ||
	    !vmm_device_may_go_unseen(device, VIDMM_EVENT_WAIT, VIDMM_EVENT_SYNC) ||
	    !vmm_ok(vmm_os_memory_writable(&sync->object->slot.page->memory, &words->fd)))
		return false;
	words->adapter = device->adapter->luid;
	vmm_os_mutex_lock(&process->world->sync_lock);
	bool shared = share_locked(sync->object);
	vmm_os_mutex_unlock(&process->world->sync_lock);
	return shared;
}

bool vmm_sync_give_words(struct vmm_process *process, uint32_t device, uint32_t handle,
			 struct vmm_sync_words *words)
{
	*words = (struct vmm_sync_words){.epoch = vmm_world_epoch(process->world), .fd = -1};
	vmm_os_mutex_lock(&process->lock);
	bool given = give_locked(process, device, handle, words);
	vmm_os_mutex_unlock(&process->lock);
	if (!given && words->fd >= 0)
		vmm_os_event_close(words->fd);
	return given;
}

void vmm_sync_told(struct vmm_process *process, uint32_t handle)
{
	struct vmm_sync_object *object = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	if (sync && atomic_load(&sync->object->page)) {
		object = sync->object;
		vmm_sync_get(object);
	}
	vmm_os_mutex_unlock(&process->lock);
	if (!object)
		return;
	vmm_sync_deliver(object);
	vmm_sync_put(object);
}
