/* SPDX-License-Identifier: MIT */
/* What becomes of the fences of a device that is lost with a reset (TDRS). */
#include "sync/sync_private.h"

/* SFL-18, SFL-19, TDRS-04: could the lost device have signalled it, and does it want others to know? */
static bool is_poisoned(const struct vmm_sync *sync)
{
	return sync->object->type == VMM_SYNC_MONITORED_FENCE && !sync->owned &&
	       !(sync->flags & (VMM_SYNC_NO_SIGNAL | VMM_SYNC_NO_MAX_ON_TDR));
}

static uint32_t count_locked(const struct vmm_device *device)
{
	const struct vmm_list *link;
	uint32_t count = 0;

	vmm_list_for_each (link, &device->syncs)
		count++;
	return count;
}

/* One after the other, each going to the end of the list; those that come or go meanwhile do so at a lost device. */
void vmm_sync_lose_device(struct vmm_device *device)
{
	struct vmm_process *process = device->process;

	vmm_os_mutex_lock(&process->lock);
	for (uint32_t left = count_locked(device); left && !vmm_list_empty(&device->syncs);
	     left--) {
		struct vmm_list *link = device->syncs.next;
		struct vmm_sync_object *object =
			vmm_container_of(link, struct vmm_sync, link)->object;
		bool poisoned = is_poisoned(vmm_container_of(link, struct vmm_sync, link));

		vmm_list_remove(link);
		vmm_list_push_back(&device->syncs, link);
		if (!poisoned || !vmm_sync_raise_to_maximum(object))
			continue;
		vmm_sync_get(object);
		vmm_os_mutex_unlock(&process->lock);
		vmm_sync_deliver(object);
		vmm_sync_put(object);
		vmm_os_mutex_lock(&process->lock);
	}
	vmm_os_mutex_unlock(&process->lock);
	vmm_device_disturb(device);
}
