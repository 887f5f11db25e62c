/* SPDX-License-Identifier: MIT */
/*
 * Objects: the end of the last reference and of the last opening, and the look-up of handles
 * (SYN-13). opening.c makes them.
 */
#include "object/stopped.h"
#include "sync/sync_private.h"

/* ---- the end ---- */

/* Detaches the source of a periodic fence, which then ends. */
static void end_periodic_source(struct vmm_sync_object *object)
{
	vmm_sync_lock(object->world);
	if (object->periodic_source) {
		object->periodic_source->object = NULL;
		object->periodic_source->ended(object->periodic_source);
	}
	object->periodic_source = NULL;
	vmm_sync_unlock(object->world);
}

/* Ends the use of the page by clients that sleep on it (words.c). */
static void end_sleepers(struct vmm_sync_object *object)
{
	if (atomic_load(&object->page))
		vmm_world_remove_sleepers(object->world, &object->sleepers);
}

void vmm_sync_put(struct vmm_sync_object *object)
{
	uint32_t before = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);

	vmm_assert(before > 0);
	if (before != 1)
		return;
	vmm_assert(!object->heap && vmm_list_empty(&object->queue));
	vmm_assert(!object->openings && !object->global_handle);
	if (object->type == VMM_SYNC_PERIODIC_MONITORED_FENCE)
		end_periodic_source(object);
	end_sleepers(object);
	vmm_sync_slot_give(object->world, &object->slot);
	if (object->event >= 0)
		vmm_os_event_close(object->event);
	vmm_free(object);
}

/* The last opening ends the global handle, in whichever process it is. (SHR-03, SHR-04) */
bool vmm_sync_uncount_locked(struct vmm_sync_object *object)
{
	struct vmm_world *world = object->world;

	vmm_assert_held(&object->world->sync_lock);
	vmm_assert(object->openings > 0);
	if (--object->openings)
		return false;
	if (object->global_handle) {
		vmm_shared_lock(world);
		vmm_handle_destroy(&world->shared, object->global_handle);
		vmm_shared_unlock(world);
		object->global_handle = 0;
	}
	return true;
}

/* ---- look-ups ---- */

const char *vmm_sync_cpu_rule(const struct vmm_sync_object *object, bool wait)
{
	if (object->type == VMM_SYNC_MUTEX)
		return "MTX-07";
	if (vmm_sync_is_drivers(object))
		return "CPN-05";
	return wait && object->type == VMM_SYNC_CPU_NOTIFICATION ? "CPN-04" : "MFN-22";
}

/* Returns the opening of a handle of the process; NULL with a finding: there is none. (SYN-13) */
struct vmm_sync *vmm_sync_find_locked(struct vmm_process *process, uint32_t handle,
				      const char *what)
{
	struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);

	vmm_assert_held(&process->lock);
	vmm_assert(!sync || vmm_sync_is_valid(sync));
	if (vmm_unlikely(!sync))
		vmm_finding(process->world->observe, "SYN-22", process->id, handle,
			    "%s: 0x%08x is not a live synchronization object of process %u (%s)",
			    what, handle, process->id,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_SYNC));
	return sync;
}

vmm_status vmm_sync_find_device_locked(const struct vmm_sync_caller *caller,
				       struct vmm_device **device)
{
	struct vmm_process *process = caller->process;

	vmm_assert_held(&process->lock);
	vmm_assert(vmm_sync_caller_is_valid(caller));
	*device = caller->device;
	if (!*device) {
		*device = vmm_handle_lookup(&process->handles, caller->device_handle,
					    VMM_HANDLE_DEVICE);
		if (vmm_unlikely(!*device) &&
		    vmm_stopped_device_find_locked(process, caller->device_handle))
			return VMM_DEVICE_REMOVED;
		if (vmm_unlikely(!*device))
			return vmm_refuse_rule(
				process->world->observe, VMM_INVALID_PARAMETER, "HND-07",
				process->id, caller->device_handle,
				"0x%08x is not a live device handle of process %u (%s)",
				caller->device_handle, process->id,
				vmm_handle_explain(&process->handles, caller->device_handle,
						   VMM_HANDLE_DEVICE));
		if (vmm_unlikely(vmm_hazard_is_paused((*device)->hazard)))
			return VMM_PENDING;
	}
	if (vmm_unlikely(atomic_load_explicit(&(*device)->adapter->closed, memory_order_relaxed) ||
			 atomic_load_explicit(&(*device)->error, memory_order_relaxed) !=
				 VMM_DEVICE_OK))
		return VMM_DEVICE_REMOVED; /* TDRS-06 */
	return VMM_OK;
}
