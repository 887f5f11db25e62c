/* SPDX-License-Identifier: MIT */
/*
 * valid: the invariants of the structures of this module, as predicates that its functions assert
 * (sync_private.h). Each takes constant time and no lock. One whose name ends in _locked reads
 * members that the sync lock guards. The others read only members that are constant once the object
 * has a handle, and atomic ones.
 */
#include "sync/type.h"

bool vmm_sync_slot_is_valid(const struct vmm_sync_slot *slot)
{
	return slot->page && slot->offset < VMM_SYNC_PAGE_BYTES &&
	       slot->offset % VMM_SYNC_SLOT_BYTES == 0;
}

static bool has_valid_members(const struct vmm_sync_object *object)
{
	bool is_fence = vmm_sync_is_fence(object), is_monitored = vmm_sync_is_monitored(object);

	return object->world && object->type >= VMM_SYNC_MUTEX &&
	       object->type < VMM_SYNC_TYPE_LIMIT && (object->word != NULL) == is_fence &&
	       (is_monitored ? vmm_sync_slot_is_valid(&object->slot) : !object->slot.page) &&
	       (is_monitored || !object->narrow) &&
	       (!is_fence || atomic_load_explicit(&object->step, memory_order_relaxed)) &&
	       (object->event >= 0) == (object->type == VMM_SYNC_CPU_NOTIFICATION);
}

bool vmm_sync_object_is_valid(const struct vmm_sync_object *object)
{
	return has_valid_members(object) && atomic_load(&object->references);
}

/*
 * A periodic source still signals an object whose last reference another thread has just dropped,
 * until that thread gets the sync lock and ends the source.
 */
bool vmm_sync_object_is_consistent_locked(const struct vmm_sync_object *object)
{
	vmm_assert_held(&object->world->sync_lock);
	return has_valid_members(object) &&
	       (atomic_load(&object->references) || object->periodic_source) &&
	       (vmm_sync_is_fence(object) ? vmm_list_empty(&object->queue) : !object->heap) &&
	       !object->heap == vmm_list_empty(&object->awaited) &&
	       (!object->heap || atomic_load(&object->waiters)) &&
	       object->units <= object->units_max &&
	       !object->owner == vmm_list_empty(&object->held) &&
	       (!object->owner || (object->type == VMM_SYNC_MUTEX && !object->units)) &&
	       (!object->global_handle || object->openings) &&
	       (!object->periodic_source || object->periodic_source->object == object);
}

bool vmm_sync_is_valid(const struct vmm_sync *sync)
{
	const struct vmm_sync_object *object = sync->object;
	const uint32_t denials = VMM_SYNC_NO_WAIT | VMM_SYNC_NO_SIGNAL;

	return object && vmm_sync_object_is_valid(object) && sync->process &&
	       sync->process->world == object->world &&
	       (!sync->device ||
		(sync->device->process == sync->process &&
		 (vmm_sync_is_monitored(object) || vmm_sync_is_drivers(object)))) &&
	       !(sync->denied & ~(sync->flags & denials)) &&
	       (!sync->owned ||
		(object->type == VMM_SYNC_MONITORED_FENCE && (sync->flags & VMM_SYNC_NO_SIGNAL))) &&
	       (!sync->quick || vmm_sync_quick_is_valid(sync)) &&
	       (!sync->address || object->slot.page) && (!sync->gpu_address || sync->device) &&
	       (!sync->driver_event || vmm_sync_is_drivers(object));
}

bool vmm_sync_wait_is_valid_locked(const struct vmm_sync_wait *wait)
{
	vmm_assert_held(&wait->world->sync_lock);
	return wait->nodes && wait->count && wait->missing <= wait->count &&
	       !(wait->queued && wait->missing) &&
	       !(wait->done && (wait->queued || (wait->missing && !wait->sleeper))) &&
	       (!wait->any || wait->of_cpu) && !(wait->sleeper && wait->on_end);
}

bool vmm_sync_packet_is_valid(const struct vmm_sync_packet *packet)
{
	const struct vmm_sync_wait *wait = &packet->wait;
	bool local = wait->nodes == packet->local;

	return wait->world && (local || wait->nodes == packet->more) && wait->nodes &&
	       wait->count <= (local ? VMM_SYNC_PACKET_NODES : packet->capacity) && !wait->of_cpu &&
	       !wait->any && !wait->sleeper &&
	       (!packet->has_event ||
		(!wait->count && (packet->flags & VMM_SYNC_ENQUEUE_CPU_EVENT)));
}

bool vmm_sync_owner_is_valid_locked(const struct vmm_sync_owner *owner)
{
	vmm_assert_held(&owner->device->process->world->sync_lock);
	return owner->number && (vmm_list_empty(&owner->held) || !vmm_list_empty(&owner->link));
}

bool vmm_sync_batch_is_valid(const struct vmm_sync_batch *batch)
{
	return batch->os && batch->count <= VMM_SYNC_BATCH &&
	       (batch->count || vmm_list_empty(&batch->completed));
}

bool vmm_sync_caller_is_valid(const struct vmm_sync_caller *caller)
{
	return caller->process && (!caller->device || (vmm_device_is_valid(caller->device) &&
						       caller->device->process == caller->process));
}

bool vmm_sync_list_is_valid(const struct vmm_sync_list *list)
{
	return !list->count || (list->handles && list->values);
}

bool vmm_keyed_is_valid(const struct vmm_keyed *keyed)
{
	return keyed->world && atomic_load(&keyed->references);
}

bool vmm_keyed_is_consistent_locked(const struct vmm_keyed *keyed)
{
	vmm_assert_held(&keyed->world->sync_lock);
	return vmm_keyed_is_valid(keyed) &&
	       (!keyed->holder || (keyed->holder->keyed == keyed && !keyed->abandoned));
}

bool vmm_keyed_opening_is_valid(const struct vmm_keyed_opening *opening)
{
	return opening->keyed && vmm_keyed_is_valid(opening->keyed) && opening->process &&
	       opening->process->world == opening->keyed->world;
}
