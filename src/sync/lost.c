/* SPDX-License-Identifier: MIT */
/*
 * The fences of a lost device: lost by a reset or a page fault (TDR-10, TDRS-01), or marked by its
 * client (TDRS-15). Other openings of the same object, in any process, read the same value
 * (TDRS-05).
 */
#include "sync/sync_private.h"

/*
 * Returns whether the loss of the device raises the fence to its maximum: the device could have
 * signaled it, and did not ask for the opposite. (SFL-18, SFL-19, TDR-10, TDRS-03, TDRS-04,
 * TDRS-16)
 */
static bool is_poisoned(const struct vmm_sync *sync)
{
	return sync->object->type == VMM_SYNC_MONITORED_FENCE && !sync->owned &&
	       !(sync->flags & (VMM_SYNC_NO_SIGNAL | VMM_SYNC_NO_MAX_ON_TDR));
}

/*
 * Waiters are woken without the lock. If a batch gets full, the list is walked again. Fences that
 * are done already have no waiters. (TDRS-05)
 */
void vmm_sync_lose_device(struct vmm_device *device)
{
	struct vmm_world *world = device->process->world;
	struct vmm_sync_batch batch;
	struct vmm_list *link;
	bool all;

	vmm_assert(vmm_device_is_valid(device));
	vmm_sync_batch_init(&batch, world->os);
	do {
		all = true;
		vmm_sync_lock(world);
		vmm_list_for_each (link, &device->syncs) {
			struct vmm_sync *sync = vmm_container_of(link, struct vmm_sync, link);

			if (!all || !is_poisoned(sync))
				continue;
			vmm_sync_raise_to_maximum_locked(sync->object);
			vmm_sync_wake_clients(sync->object);
			all = vmm_sync_deliver_locked(sync->object, &batch);
		}
		vmm_sync_unlock(world);
		vmm_sync_batch_flush(&batch);
	} while (!all);
	vmm_device_disturb(device);
}
