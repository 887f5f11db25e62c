/* SPDX-License-Identifier: MIT */
/*
 * CPU notifications that only the miniport signals (CPN-05 to CPN-08, CPN-10, SFL-24). The miniport
 * has an object for each, from the creation until the handle or the device ends, whichever is
 * first.
 */
#include "sync/sync_private.h"

vmm_status vmm_sync_begin_driver(struct vmm_sync *sync)
{
	vmm_assert(vmm_sync_is_valid(sync) && vmm_sync_is_drivers(sync->object));
	vmm_assert(sync->device && !sync->driver_event);
	return sync->device->adapter->sync_driver->create_event(sync->device, sync->object->event,
								&sync->driver_event);
}

void vmm_sync_end_driver(struct vmm_sync *sync)
{
	const struct vmm_adapter *adapter = sync->device->adapter;

	for (;;) {
		uint32_t users = atomic_load(&sync->driver_users);

		if (!users || vmm_os_wait(adapter->os, &sync->driver_users, users, VMM_OS_FOREVER,
					  "calls of the miniport about an event",
					  sync->handle) == VMM_UNSUCCESSFUL)
			break;
	}
	adapter->sync_driver->destroy_event(sync->device->adapter, sync->driver_event);
	sync->driver_event = NULL;
}

void *vmm_sync_driver_device(struct vmm_process *process, uint32_t handle)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	const struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	if (sync && vmm_sync_is_drivers(sync->object))
		hazard = sync->device->hazard;
	vmm_process_unlock(process);
	return hazard;
}

vmm_status vmm_sync_pass_record(struct vmm_device *inside, uint32_t handle, uint32_t flags,
				void *record)
{
	struct vmm_process *process = inside->process;

	vmm_assert(vmm_device_is_valid(inside));
	vmm_process_lock(process);
	struct vmm_sync *sync = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_SYNC);
	if (sync && (!vmm_sync_is_drivers(sync->object) || sync->device != inside))
		sync = NULL;
	vmm_assert(!sync || (vmm_sync_is_valid(sync) && sync->driver_event));
	if (sync)
		atomic_fetch_add(&sync->driver_users, 1);
	vmm_process_unlock(process);
	if (!sync)
		return vmm_refuse_rule(
			process->world->observe, VMM_INVALID_PARAMETER, "CPN-10", process->id,
			handle, "escape: the handle has ended, or belongs to another device");
	vmm_status status = inside->adapter->sync_driver->pass_record(inside, sync->driver_event,
								      flags, record);
	if (atomic_fetch_sub(&sync->driver_users, 1) == 1)
		vmm_os_wake(inside->adapter->os, &sync->driver_users, UINT32_MAX);
	return status;
}
