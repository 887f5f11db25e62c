/* SPDX-License-Identifier: MIT */
/*
 * Synchronization mutexes and semaphores: objects with units, of which a wait takes one and a signal gives one back. A mutex has one,
 * and knows the context that has it: who does not hold it cannot free it (MTX-05), and with its context it is free again (MTX-06,
 * TDRS-13). What is taken of a semaphore stays taken. A mutex that is held keeps itself: its handles may all be gone.
 */
#include "sync/type.h"

/* SYN-30: a value, if there is one, is not looked at. */
static vmm_status check_units(const struct vmm_sync *sync, const struct vmm_sync_use *use)
{
	(void)sync, (void)use;
	return VMM_OK;
}

/* ---- mutexes ---- */

static void hold(struct vmm_sync_object *object, struct vmm_sync_owner *owner)
{
	if (vmm_list_empty(&owner->link))
		vmm_list_push_back(&owner->device->sync_owners, &owner->link);
	object->units = 0;
	object->owner = owner;
	vmm_list_push_back(&owner->held, &object->held);
	vmm_sync_get(object);
}

/* Never the last reference: the caller has one. */
static void let_go(struct vmm_sync_object *object)
{
	object->units = 1;
	if (!object->owner)
		return;
	object->owner = NULL;
	vmm_list_remove(&object->held);
	vmm_list_init(&object->held);
	vmm_sync_put(object);
}

static bool take_mutex(struct vmm_sync_node *node)
{
	struct vmm_sync_owner *owner = vmm_sync_owner_of(node);

	if (!node->object->units || vmm_device_lost(owner->device))
		return false;
	hold(node->object, owner);
	return true;
}

static void put_back_mutex(struct vmm_sync_node *node)
{
	let_go(node->object);
}

/* MTX-04: what nobody has taken yet was made as its process's. */
static bool may_free(const struct vmm_sync_object *object, const struct vmm_sync_queuer *by)
{
	if (object->units)
		return false;
	return object->owner ? object->owner->number == by->owner : object->process == by->process;
}

/* MTX-02, MTX-03 */
static void signal_mutex(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
			 uint32_t flags)
{
	struct vmm_sync_object *object = node->object;
	struct vmm_world *world = object->world;

	(void)flags;
	vmm_os_mutex_lock(&world->sync_lock);
	bool frees = may_free(object, by), was_free = object->units;
	if (frees)
		let_go(object);
	vmm_os_mutex_unlock(&world->sync_lock);
	if (frees)
		vmm_sync_deliver(object);
	else
		vmm_finding(
			world->observe, "MTX-05", by->process, 0,
			"signal of a mutex by a context of device 0x%08x: %s, so nothing happens",
			by->device, was_free ? "it is free" : "another context holds it");
}

const struct vmm_sync_class vmm_sync_mutex = {
	.check = check_units,
	.take = take_mutex,
	.put_back = put_back_mutex,
	.signal = signal_mutex,
	.owner_ends = let_go,
};

/* ---- semaphores ---- */

/* SEM-03 */
static bool take_unit(struct vmm_sync_node *node)
{
	if (!node->object->units || vmm_device_lost(vmm_sync_owner_of(node)->device))
		return false;
	node->object->units--;
	return true;
}

static void put_back_unit(struct vmm_sync_node *node)
{
	node->object->units++;
}

/* SEM-04, SEM-06: one packet, one unit, however many contexts it was in. */
static void signal_semaphore(struct vmm_sync_node *node, const struct vmm_sync_queuer *by,
			     uint32_t flags)
{
	struct vmm_sync_object *object = node->object;
	struct vmm_world *world = object->world;

	(void)flags;
	vmm_os_mutex_lock(&world->sync_lock);
	bool room = object->units < object->units_max;
	object->units += room;
	vmm_os_mutex_unlock(&world->sync_lock);
	if (room)
		vmm_sync_deliver(object); /* SEM-05 */
	else
		vmm_finding(world->observe, "SEM-04", by->process, 0,
			    "signal of a semaphore that has its %u units: dropped",
			    object->units_max);
}

const struct vmm_sync_class vmm_sync_semaphore = {
	.check = check_units,
	.take = take_unit,
	.put_back = put_back_unit,
	.signal = signal_semaphore,
};
