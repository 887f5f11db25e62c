/* SPDX-License-Identifier: MIT */
/*
 * Queues of the objects whose waits are not by value. The caller holds the sync lock. The table of
 * the object's type (type.h) says what a wait takes.
 */
#include "sync/type.h"

/* Takes all objects of the wait, or none (MTX-08). */
static bool take_all(struct vmm_sync_wait *wait) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&wait->world->sync_lock);
	for (uint32_t i = 0; i < wait->count; i++) {
		if (wait->nodes[i].object->type_class->take(&wait->nodes[i]))
			continue;
		while (i-- > 0)
			wait->nodes[i].object->type_class->put_back(&wait->nodes[i]);
		return false;
	}
	return true;
}

bool vmm_sync_queue_begin_locked(struct vmm_sync_wait *wait)
{
	vmm_assert_held(&wait->world->sync_lock);
	vmm_assert(vmm_sync_wait_is_valid_locked(wait) && !wait->done && !wait->queued);
	wait->done = take_all(wait);
	wait->queued = !wait->done;
	for (uint32_t i = 0; i < wait->count && wait->queued; i++)
		vmm_list_push_back(&wait->nodes[i].object->queue, &wait->nodes[i].link);
	return wait->done;
}

void vmm_sync_queue_leave_locked(struct vmm_sync_wait *wait)
{
	vmm_assert_held(&wait->world->sync_lock);
	vmm_assert(wait->queued);
	for (uint32_t i = 0; i < wait->count; i++)
		vmm_list_remove(&wait->nodes[i].link);
	wait->queued = false;
}

struct vmm_sync_wait *vmm_sync_queue_next_locked(struct vmm_sync_object *object)
{
	struct vmm_list *link;

	vmm_assert_held(&object->world->sync_lock);
	if (!object->units) /* nothing can be taken */
		return NULL;
	vmm_list_for_each (link, &object->queue) {
		struct vmm_sync_wait *wait =
			vmm_container_of(link, struct vmm_sync_node, link)->wait;

		if (take_all(wait))
			return wait;
	}
	return NULL;
}
