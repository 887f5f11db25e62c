/* SPDX-License-Identifier: MIT */
/* What each type does with packets (type.h), and the queues of those whose waits are not by value. */
#include "sync/type.h"

const struct vmm_sync_class *const vmm_sync_classes[VMM_SYNC_TYPE_LIMIT] = {
	[VMM_SYNC_MONITORED_FENCE] = &vmm_sync_monitored_fence,
};

/* ---- queues; sync lock held ---- */

/* All that the wait names, or nothing (MTX-08). */
static bool take_all(struct vmm_sync_wait *wait)
{
	for (uint32_t i = 0; i < wait->count; i++) {
		if (vmm_sync_class_of(wait->nodes[i].object)->take(&wait->nodes[i]))
			continue;
		while (i-- > 0)
			vmm_sync_class_of(wait->nodes[i].object)->put_back(&wait->nodes[i]);
		return false;
	}
	return true;
}

bool vmm_sync_queue_begin_locked(struct vmm_sync_wait *wait)
{
	wait->done = take_all(wait);
	wait->queued = !wait->done;
	for (uint32_t i = 0; i < wait->count && wait->queued; i++)
		vmm_list_push_back(&wait->nodes[i].object->queue, &wait->nodes[i].link);
	return wait->done;
}

void vmm_sync_queue_leave_locked(struct vmm_sync_wait *wait)
{
	for (uint32_t i = 0; i < wait->count; i++)
		vmm_list_remove(&wait->nodes[i].link);
	wait->queued = false;
}

struct vmm_sync_wait *vmm_sync_queue_next_locked(struct vmm_sync_object *object)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &object->queue) {
		struct vmm_sync_wait *wait =
			vmm_container_of(link, struct vmm_sync_node, link)->wait;

		if (take_all(wait))
			return wait;
	}
	return NULL;
}

void vmm_sync_owner_end(struct vmm_world *world, struct vmm_sync_owner *owner)
{
	for (;;) {
		struct vmm_sync_object *object = NULL;

		vmm_os_mutex_lock(&world->sync_lock);
		if (!vmm_list_empty(&owner->held)) {
			object = vmm_container_of(owner->held.next, struct vmm_sync_object, held);
			vmm_sync_get(object);
			vmm_sync_class_of(object)->owner_ends(object);
		}
		vmm_os_mutex_unlock(&world->sync_lock);
		if (!object)
			return;
		vmm_sync_deliver(object);
		vmm_sync_put(object);
	}
}

/* ---- monitored fences ---- */

static vmm_status check_monitored(const struct vmm_sync *sync, const struct vmm_sync_use *use)
{
	struct vmm_observe *observe = sync->process->world->observe;

	if (use->form == VMM_SYNC_FORM_1) {
		vmm_finding(observe, "FEN-05", sync->process->id, sync->handle,
			    "%s: 0x%08x is a monitored fence, and the call has no value", use->what,
			    sync->handle);
		return VMM_INVALID_PARAMETER;
	}
	if (vmm_sync_in_range(sync->object, use->value,
			      use->signal && (use->flags & VMM_SYNC_ALLOW_REWIND)))
		return VMM_OK;
	vmm_finding(observe, "MFN-08", sync->process->id, sync->handle,
		    "%s: the value %llu of 0x%08x is more than 2^31 - 1 away from %llu, and its "
		    "storage has 32 bits",
		    use->what, (unsigned long long)use->value, sync->handle,
		    (unsigned long long)vmm_sync_value(sync->object));
	return VMM_INVALID_PARAMETER;
}

static void signal_monitored(struct vmm_sync_node *node, struct vmm_sync_owner *owner,
			     uint32_t flags)
{
	(void)owner;
	if (vmm_sync_raise(node->object, node->value, flags & VMM_SYNC_ALLOW_REWIND))
		vmm_sync_deliver(node->object);
}

const struct vmm_sync_class vmm_sync_monitored_fence = {
	.by_value = true,
	.check = check_monitored,
	.signal = signal_monitored,
};
