/* SPDX-License-Identifier: MIT */
/*
 * Synchronization mutexes and semaphores: objects with units. A wait takes one unit, and a signal
 * returns one.
 *
 * A mutex has one unit and knows the context that holds it. Only that context can free it (MTX-05).
 * When the context ends the mutex is free again (MTX-06, TDRS-13). A held mutex has a reference to
 * itself: all its handles may be gone.
 *
 * Units taken from a semaphore stay taken when a context ends.
 */
#include "sync/type.h"

/* A value, if the call has one, is ignored. (SYN-30) */
static vmm_status check_units(const struct vmm_sync *sync, const struct vmm_sync_use *use)
{
	(void)sync, (void)use;
	return VMM_OK;
}

/* ---- mutexes ---- */

static void hold_mutex(struct vmm_sync_object *object, struct vmm_sync_owner *owner)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&object->world->sync_lock);
	vmm_assert(object->units && !object->owner);
	if (vmm_list_empty(&owner->link))
		vmm_list_push_back(&owner->device->sync_owners, &owner->link);
	object->units = 0;
	object->owner = owner;
	vmm_list_push_back(&owner->held, &object->held);
	vmm_sync_get(object);
}

/* Does not put the last reference: the caller has one. */
static void free_mutex(struct vmm_sync_object *object) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&object->world->sync_lock);
	vmm_assert(!object->units);
	object->units = 1;
	if (!object->owner)
		return;
	object->owner = NULL;
	vmm_list_remove(&object->held);
	vmm_list_init(&object->held);
	vmm_sync_put(object);
}

static bool take_mutex(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	struct vmm_sync_owner *owner = vmm_sync_owner_of(node);

	vmm_assert_held(&node->object->world->sync_lock);
	if (!node->object->units || vmm_device_lost(owner->device))
		return false;
	hold_mutex(node->object, owner);
	return true;
}

static void put_back_mutex(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&node->object->world->sync_lock);
	free_mutex(node->object);
}

/*
 * A mutex that was created as held, and not taken since, can be freed by its creator's process.
 * (MTX-04)
 */
static bool may_free(const struct vmm_sync_object *object, const struct vmm_sync_queuer *by)
	VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&object->world->sync_lock);
	if (object->units)
		return false;
	return object->owner ? object->owner->number == by->owner : object->process == by->process;
}

/* Frees the mutex, or emits a finding. (MTX-02, MTX-03) */
static void signal_mutex(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
			 uint32_t flags)
{
	struct vmm_sync_object *object = node->object;
	struct vmm_world *world = object->world;

	(void)flags;
	vmm_sync_lock(world);
	vmm_assert(vmm_sync_object_is_consistent_locked(object));
	bool frees = may_free(object, by), was_free = object->units;
	if (frees)
		free_mutex(object);
	vmm_sync_unlock(world);
	if (frees)
		vmm_sync_deliver(object);
	else
		vmm_finding(world->observe, "MTX-05", by->process, 0,
			    "signal of a mutex by a context of device 0x%08x: %s; ignored",
			    by->device, was_free ? "it is free" : "another context holds it");
}

const struct vmm_sync_class vmm_sync_mutex = {
	.check = check_units,
	.take = take_mutex,
	.put_back = put_back_mutex,
	.signal = signal_mutex,
	.owner_ends = free_mutex,
};

/* ---- semaphores ---- */

/* A semaphore without units, or a lost device, takes nothing. (SEM-03) */
static bool take_unit(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&node->object->world->sync_lock);
	if (!node->object->units || vmm_device_lost(vmm_sync_owner_of(node)->device))
		return false;
	node->object->units--;
	return true;
}

static void put_back_unit(struct vmm_sync_node *node) VMM_REQUIRES(vmm_sync_lock_class)
{
	vmm_assert_held(&node->object->world->sync_lock);
	vmm_assert(node->object->units < node->object->units_max);
	node->object->units++;
}

/* One packet returns one unit, in however many contexts it was queued. (SEM-04, SEM-06) */
static void signal_semaphore(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
			     uint32_t flags)
{
	struct vmm_sync_object *object = node->object;
	struct vmm_world *world = object->world;

	(void)flags;
	vmm_sync_lock(world);
	vmm_assert(vmm_sync_object_is_consistent_locked(object));
	bool below_maximum = object->units < object->units_max;
	object->units += below_maximum;
	vmm_sync_unlock(world);
	if (below_maximum)
		vmm_sync_deliver(object); /* SEM-05 */
	else
		vmm_finding(world->observe, "SEM-04", by->process, 0,
			    "signal of a semaphore that has its maximum of %u units: ignored",
			    object->units_max);
}

const struct vmm_sync_class vmm_sync_semaphore = {
	.check = check_units,
	.take = take_unit,
	.put_back = put_back_unit,
	.signal = signal_semaphore,
};
