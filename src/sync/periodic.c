/* SPDX-License-Identifier: MIT */
/*
 * Periodic monitored fences (PMF-03, PMF-05): monitored fences that only the display signals. The
 * value rises by one at each notification of the miniport, which comes a fixed time before each
 * vertical sync of a target (PMF-07). sched passes the notifications on.
 *
 * The source of the notifications belongs to the object, not to an opening. It ends with the
 * object, in whichever process the last reference is, or with the adapter. After the latter the
 * value stays.
 */
#include "sync/sync_private.h"

/*
 * Checks that the handle is of the device's adapter. Displays of other adapters are not supported.
 */
static vmm_status check_adapter(const struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;
	struct vmm_observe *observe = process->world->observe;

	vmm_process_lock(process);
	uint32_t luid = (uint32_t)(uintptr_t)vmm_handle_lookup(&process->handles, handle,
							       VMM_HANDLE_ADAPTER);
	if (!luid)
		vmm_finding(observe, "PMF-01", process->id, handle,
			    "create periodic fence: 0x%08x is not a live adapter handle (%s)",
			    handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_ADAPTER));
	vmm_process_unlock(process);
	if (!luid)
		return VMM_INVALID_PARAMETER;
	if (luid == device->adapter->luid)
		return VMM_OK;
	return vmm_refuse_reason(
		observe, VMM_NOT_SUPPORTED, process->id, handle,
		"create periodic fence: to follow the display of another adapter than "
		"the device's is not implemented");
}

vmm_status vmm_sync_check_periodic(const struct vmm_device *device,
				   const struct vmm_sync_request *request)
{
	const struct vmm_adapter *adapter = device->adapter;
	vmm_status status = check_adapter(device, request->adapter);

	if (!vmm_ok(status))
		return status;
	uint32_t targets = adapter->sync_driver->target_count(adapter);
	if (!targets)
		return vmm_refuse_reason(
			adapter->observe, VMM_NOT_SUPPORTED, device->process->id, request->adapter,
			"PMF-06: create periodic fence: the adapter has no display targets");
	if (request->target < targets)
		return VMM_OK;
	return vmm_refuse_rule(
		adapter->observe, VMM_INVALID_PARAMETER, "PMF-01", device->process->id,
		request->adapter,
		"create periodic fence: target %u does not exist; the adapter has %u",
		request->target, targets);
}

/* Makes the display signal a new fence. Waits are those of a monitored fence. (PMF-05) */
vmm_status vmm_sync_begin_periodic(struct vmm_device *device, struct vmm_sync_object *object,
				   const struct vmm_sync_request *request)
{
	struct vmm_adapter *adapter = device->adapter;
	struct vmm_sync_periodic_source *source;
	vmm_status status = adapter->sync_driver->begin_periodic(adapter, request->target,
								 request->time_100ns, &source);

	if (status == VMM_INVALID_PARAMETER)
		vmm_finding(adapter->observe, "PMF-02", device->process->id, request->adapter,
			    "create periodic fence: the miniport refuses a time of %llu * 100 ns "
			    "before the vertical syncs of target %u",
			    (unsigned long long)request->time_100ns, request->target);
	if (!vmm_ok(status))
		return status;
	vmm_assert(object->type == VMM_SYNC_PERIODIC_MONITORED_FENCE);
	vmm_sync_lock(object->world);
	source->object = object;
	object->periodic_source = source;
	vmm_sync_unlock(object->world);
	return VMM_OK;
}

void vmm_sync_end_periodic_source(struct vmm_world *world, struct vmm_sync_periodic_source *source)
{
	vmm_sync_lock(world);
	vmm_assert(!source->object || source->object->periodic_source == source);
	if (source->object)
		source->object->periodic_source = NULL;
	source->object = NULL;
	vmm_sync_unlock(world);
}

/*
 * The sync lock keeps the object alive: vmm_sync_put takes the lock
 * before it frees a periodic fence. (PMF-03)
 */
void vmm_sync_signal_periodic(struct vmm_world *world, struct vmm_sync_periodic_source *source,
			      uint32_t count)
{
	struct vmm_sync_batch batch;
	bool all;

	vmm_sync_batch_init(&batch, world->os);
	do {
		all = true;
		vmm_sync_lock(world);
		struct vmm_sync_object *object = source->object;
		vmm_assert(!object || object->periodic_source == source);
		if (object) {
			vmm_sync_raise_by_locked(object, count);
			all = vmm_sync_deliver_locked(object, &batch);
		}
		vmm_sync_unlock(world);
		vmm_sync_batch_flush(&batch);
		count = 0;
	} while (!all);
}

const char *vmm_sync_no_signal(const struct vmm_sync *sync, const char **what)
{
	vmm_assert_held(&sync->process->lock);
	if (sync->owned) {
		*what = "is the fence of a paging queue or hardware queue";
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
	*what = "was created or opened with NoSignal";
	return "SFL-15";
}
