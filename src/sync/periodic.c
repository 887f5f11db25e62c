/* SPDX-License-Identifier: MIT */
/*
 * Periodic monitored fences (PMF-03, PMF-05): monitored fences that nobody signals. Their values rise by one at each beat, which the
 * miniport gives so long before each vertical sync of a target (PMF-07); sched passes it on. The beat is the object's, not an
 * opening's: it ends with the object, whoever has that last, or with the adapter, after which the value stays.
 */
#include "sync/sync_private.h"

/* The device's own: no other one's targets are followed. */
static vmm_status check_adapter(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_observe *observe = process->world->observe;

	vmm_os_mutex_lock(&process->lock);
	uint32_t luid = (uint32_t)(uintptr_t)vmm_handle_lookup(&process->handles, handle,
							       VMM_HANDLE_ADAPTER);
	if (!luid)
		vmm_finding(observe, "PMF-01", process->id, handle,
			    "create periodic fence: 0x%08x is not a live adapter handle (%s)",
			    handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_os_mutex_unlock(&process->lock);
	if (!luid)
		return VMM_INVALID_PARAMETER;
	if (luid == device->adapter->luid)
		return VMM_OK;
	vmm_reason(observe, VMM_NOT_SUPPORTED, process->id, handle,
		   "create periodic fence: one that follows the display of another adapter than "
		   "its device's is not built");
	return VMM_NOT_SUPPORTED;
}

vmm_status vmm_sync_check_periodic(const struct vmm_device *device,
				   const struct vmm_sync_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	vmm_status status = check_adapter(device, request->adapter);

	if (!vmm_ok(status))
		return status;
	uint32_t targets = adapter->sync_driver->target_count(adapter);
	if (!targets) {
		vmm_reason(adapter->observe, VMM_NOT_SUPPORTED, device->process->id,
			   request->adapter,
			   "PMF-06: create periodic fence: the adapter has no display targets");
		return VMM_NOT_SUPPORTED;
	}
	if (request->target < targets)
		return VMM_OK;
	vmm_finding(adapter->observe, "PMF-01", device->process->id, request->adapter,
		    "create periodic fence: target %u, and the adapter has %u", request->target,
		    targets);
	return VMM_INVALID_PARAMETER;
}

vmm_status vmm_sync_begin_periodic(struct vmm_device *device, struct vmm_sync_object *object,
				   const struct vmm_sync_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_sync_beat *beat;
	vmm_status status = adapter->sync_driver->begin_beat(adapter, request->target,
							     request->time_100ns, &beat);

	if (status == VMM_INVALID_PARAMETER)
		vmm_finding(adapter->observe, "PMF-02", device->process->id, request->adapter,
			    "create periodic fence: the miniport refuses a time of %llu * 100 ns "
			    "before the vertical syncs of target %u",
			    (unsigned long long)request->time_100ns, request->target);
	if (!vmm_ok(status))
		return status;
	vmm_os_mutex_lock(&object->world->sync_lock);
	beat->object = object;
	object->beat = beat;
	vmm_os_mutex_unlock(&object->world->sync_lock);
	return VMM_OK;
}

void vmm_sync_end_periodic(struct vmm_sync_object *object)
{
	vmm_os_mutex_lock(&object->world->sync_lock);
	if (object->beat) {
		object->beat->object = NULL;
		object->beat->ended(object->beat);
	}
	object->beat = NULL;
	vmm_os_mutex_unlock(&object->world->sync_lock);
}

void vmm_sync_end_beat(struct vmm_world *world, struct vmm_sync_beat *beat)
{
	vmm_os_mutex_lock(&world->sync_lock);
	if (beat->object)
		beat->object->beat = NULL;
	beat->object = NULL;
	vmm_os_mutex_unlock(&world->sync_lock);
}

/* With the sync lock the object stays: whoever has its last reference takes the beat away first. */
void vmm_sync_give_beat(struct vmm_world *world, struct vmm_sync_beat *beat, uint32_t count)
{
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_batch_init(&batch, world->os);
	do {
		all = true;
		vmm_os_mutex_lock(&world->sync_lock);
		struct vmm_sync_object *object = beat->object;
		if (object) {
			vmm_sync_raise_by_locked(object, count);
			all = vmm_sync_deliver_locked(object, &batch);
		}
		vmm_os_mutex_unlock(&world->sync_lock);
		vmm_sync_batch_flush(&batch);
		count = 0;
	} while (!all);
}

const char *vmm_sync_no_signal(const struct vmm_sync *sync, const char **what)
{
	if (sync->owned) {
		*what = "is the fence of a paging queue";
		return "MFN-35";
	}
	if (sync->object->type == VMM_SYNC_PERIODIC_MONITORED_FENCE) {
		*what = "is a periodic fence: only the display signals it";
		return "PMF-04";
	}
	if (sync->denied & VMM_SYNC_NO_SIGNAL) {
		*what = "was opened from an NT handle without the right to signal";
		return "SHR-10";
	}
	*what = "was made or opened with NoSignal";
	return "SFL-15";
}
