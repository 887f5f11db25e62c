/* SPDX-License-Identifier: MIT */
/*
 * The tables of fences and CPU notifications (type.h), and the end of the owners of mutexes.
 */
#include "sync/type.h"

const struct vmm_sync_class *const vmm_sync_classes[VMM_SYNC_TYPE_LIMIT] = {
	[VMM_SYNC_MUTEX] = &vmm_sync_mutex,
	[VMM_SYNC_SEMAPHORE] = &vmm_sync_semaphore,
	[VMM_SYNC_FENCE] = &vmm_sync_fence,
	[VMM_SYNC_CPU_NOTIFICATION] = &vmm_sync_notification,
	[VMM_SYNC_MONITORED_FENCE] = &vmm_sync_monitored_fence,
	[VMM_SYNC_PERIODIC_MONITORED_FENCE] = &vmm_sync_monitored_fence, /* PMF-05 */
};

/* ---- owners ---- */

/*
 * Frees one object of the owner and returns it with a reference. NULL: there is none left, and the
 * owner is in no list anymore.
 */
static struct vmm_sync_object *free_one_locked(const struct vmm_world *world,
					       struct vmm_sync_owner *owner)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&world->sync_lock);
	vmm_assert(vmm_sync_owner_is_valid_locked(owner));
	if (vmm_list_empty(&owner->held)) {
		vmm_list_remove(&owner->link);
		vmm_list_init(&owner->link);
		return NULL;
	}
	struct vmm_sync_object *object =
		vmm_container_of(owner->held.next, struct vmm_sync_object, held);

	vmm_sync_get(object);
	object->type_class->owner_ends(object);
	return object;
}

/* Offers a freed object to its waiters and puts it. Returns false for NULL. */
static bool deliver_freed(struct vmm_sync_object *object)
{
	if (!object)
		return false;
	vmm_sync_deliver(object);
	vmm_sync_put(object);
	return true;
}

void vmm_sync_owner_end(struct vmm_world *world, struct vmm_sync_owner *owner)
{
	struct vmm_sync_object *object;

	do {
		vmm_sync_lock(world);
		object = free_one_locked(world, owner);
		vmm_sync_unlock(world);
	} while (deliver_freed(object));
}

/* A lost device takes no more objects, so the list becomes empty. */
void vmm_sync_lose_owners(struct vmm_device *device)
{
	struct vmm_world *world = device->process->world;
	struct vmm_sync_object *object;

	vmm_assert(vmm_device_is_valid(device));
	do {
		object = NULL;
		vmm_sync_lock(world);
		while (!object && !vmm_list_empty(&device->sync_owners))
			object = free_one_locked(world,
						 vmm_container_of(device->sync_owners.next,
								  struct vmm_sync_owner, link));
		vmm_sync_unlock(world);
	} while (deliver_freed(object));
}

/* ---- monitored fences ---- */

/* Refuses a call in the form without a value, for a fence of this kind. */
static vmm_status refuse_no_value(const struct vmm_sync *sync, const struct vmm_sync_use *use,
				  const char *kind)
{
	return vmm_refuse_rule(sync->process->world->observe, VMM_INVALID_PARAMETER, "FEN-05",
			       sync->process->id, sync->handle,
			       "%s: 0x%08x is a %s, and the call has no value", use->what,
			       sync->handle, kind);
}

static vmm_status check_monitored(const struct vmm_sync *sync, const struct vmm_sync_use *use)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_observe *observe = sync->process->world->observe;

	vmm_assert_held(&sync->process->lock);
	if (use->form == VMM_SYNC_FORM_1)
		return refuse_no_value(sync, use, "monitored fence"); /* FEN-05 */
	if (vmm_sync_in_range(sync->object, use->value,
			      use->signal && (use->flags & VMM_SYNC_ALLOW_REWIND)))
		return VMM_OK;
	return vmm_refuse_rule(
		observe, VMM_INVALID_PARAMETER, "MFN-08", sync->process->id, sync->handle,
		"%s: the value %llu of 0x%08x is more than 2^31 - 1 away from %llu, and its "
		"storage has 32 bits",
		use->what, (unsigned long long)use->value, sync->handle,
		(unsigned long long)vmm_sync_value(sync->object));
}

/* Raises the value. A lower one is stored only with AllowFenceRewind. (FEN-06) */
static void signal_monitored(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
			     uint32_t flags)
{
	(void)by;
	if (vmm_sync_raise(node->object, node->value, flags & VMM_SYNC_ALLOW_REWIND))
		vmm_sync_deliver(node->object);
}

const struct vmm_sync_class vmm_sync_monitored_fence = {
	.by_value = true,
	.check = check_monitored,
	.signal = signal_monitored,
};

/* ---- fences of WDDM 1.1 ---- */

static vmm_status check_fence(const struct vmm_sync *sync, const struct vmm_sync_use *use)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_observe *observe = sync->process->world->observe;

	vmm_assert_held(&sync->process->lock);
	if (use->form == VMM_SYNC_FORM_1)
		return refuse_no_value(sync, use, "fence"); /* FEN-05 */
	if (use->count == 1)
		return VMM_OK;
	return vmm_refuse_rule(observe, VMM_INVALID_PARAMETER, "FEN-02", sync->process->id,
			       sync->handle,
			       "%s: 0x%08x is a fence, which must be the only object; there are %u",
			       use->what, sync->handle, use->count);
}

/* FEN-07 */
const struct vmm_sync_class vmm_sync_fence = {
	.by_value = true,
	.check = check_fence,
	.signal = signal_monitored,
};

/* ---- CPU notifications ---- */

/* A client can never wait for a notification, nor signal one that has SignalByKmd. (SFL-24) */
static vmm_status check_notification(const struct vmm_sync *sync, const struct vmm_sync_use *use)
	VMM_REQUIRES(vmm_process_lock_class)
{
	bool drivers = vmm_sync_is_drivers(sync->object);

	vmm_assert_held(&sync->process->lock);
	if (use->signal && !drivers)
		return VMM_OK;
	return vmm_refuse_rule(sync->process->world->observe, VMM_INVALID_PARAMETER,
			       drivers ? "CPN-05" : "CPN-04", sync->process->id, sync->handle,
			       "%s: 0x%08x is a CPU notification %s", use->what, sync->handle,
			       drivers ? "that only the miniport signals"
				       : "and cannot be waited for");
}

/* CPN-03, CPN-09 */
static void signal_notification(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
				uint32_t flags)
{
	(void)by, (void)flags;
	vmm_os_event_set(node->object->event);
}

const struct vmm_sync_class vmm_sync_notification = {
	.check = check_notification,
	.signal = signal_notification,
};
