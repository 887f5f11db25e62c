/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a GPU. All waiters of an adapter sleep on one word that moves at every completion; a waiter that
 * wakes for another's packet sleeps again. vmm_progress_signal makes no system call when nobody sleeps.
 */
#include "object/live.h"
#include "object/object.h"

bool vmm_instance_busy(const struct vmm_instance *instance, enum vmm_use use, uint32_t *timeline,
		       uint64_t *sequence)
{
	const struct vmm_adapter *adapter = instance->allocation->adapter;
	const _Atomic uint64_t *last = use == VMM_USE_WRITE    ? instance->written
				       : use == VMM_USE_ACTIVE ? instance->active
							       : instance->queued;

	for (uint32_t t = 0; t <= adapter->node_count; t++) {
		uint64_t s = atomic_load_explicit(&last[t], memory_order_relaxed);

		if (!vmm_timeline_done(adapter, t, s)) {
			if (timeline)
				*timeline = t;
			if (sequence)
				*sequence = s;
			return true;
		}
	}
	return false;
}

/* 0: nobody's but our own. */
static uint32_t caller(struct vmm_adapter *adapter)
{
	const struct vmm_process *process = vmm_calling_process(adapter->os);

	return process ? process->id : 0;
}

vmm_status vmm_wait_timeline(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint32_t reason, uint64_t *waited_ns)
{
	uint64_t began = vmm_os_now_ns(adapter->os);
	vmm_status status = VMM_OK;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);
		bool done = vmm_timeline_done(adapter, timeline, sequence);

		/* LOCK-33: a waiter is released at once. In this order: an abandoned packet counts as done, too. */
		if (atomic_load(&adapter->removed)) {
			status = VMM_DEVICE_REMOVED;
			break;
		}
		if (done)
			break;
		status = vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				     "completion of a packet", sequence);
		if (!vmm_ok(status))
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
	uint64_t waited = vmm_os_now_ns(adapter->os) - began;
	if (waited_ns)
		*waited_ns += waited;
	vmm_event(adapter->observe, VIDMM_EVENT_WAIT, caller(adapter), 0, reason, waited, timeline,
		  sequence, 0);
	return vmm_ok(status) ? VMM_OK : status;
}

vmm_status vmm_wait_progress(struct vmm_adapter *adapter, uint32_t seen, uint32_t reason)
{
	uint64_t began = vmm_os_now_ns(adapter->os);
	vmm_status status = VMM_OK;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	while (atomic_load(&adapter->progress) == seen && !atomic_load(&adapter->removed)) {
		status = vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				     "progress of a GPU", seen);
		if (!vmm_ok(status))
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
	vmm_event(adapter->observe, VIDMM_EVENT_WAIT, caller(adapter), 0, reason,
		  vmm_os_now_ns(adapter->os) - began, 0, 0, 0);
	if (atomic_load(&adapter->removed))
		return VMM_DEVICE_REMOVED;
	return vmm_ok(status) ? VMM_OK : status;
}

void vmm_await_recovery(struct vmm_adapter *adapter)
{
	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&adapter->recovering) ||
		    vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				"the reset of an adapter", 0) == VMM_UNSUCCESSFUL)
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
}

void vmm_progress_signal(struct vmm_adapter *adapter)
{
	atomic_fetch_add(&adapter->progress, 1);
	if (atomic_load(&adapter->progress_waiters))
		vmm_os_wake(adapter->os, &adapter->progress, UINT32_MAX);
}

void vmm_device_disturb(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_os_mutex_lock(&device->process->lock);
	vmm_list_for_each (link, &device->sleepers) {
		struct vmm_sleeper *sleeper = vmm_container_of(link, struct vmm_sleeper, link);

		atomic_fetch_or(&sleeper->state, VMM_SLEEPER_DISTURBED);
		vmm_os_wake(device->adapter->os, &sleeper->state, UINT32_MAX);
	}
	vmm_os_mutex_unlock(&device->process->lock);
}

void vmm_adapter_disturb(struct vmm_adapter *adapter)
{
	struct vmm_list *link;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices)
		vmm_device_disturb(vmm_container_of(link, struct vmm_device, adapter_link));
	vmm_os_mutex_unlock(&adapter->state_lock);
}

struct vmm_device *vmm_device_end(const void *handle)
{
	struct vmm_visit visit;
	struct vmm_device *device = vmm_live_enter(&visit, VMM_LIVE_DEVICE, handle);

	if (device) {
		atomic_store(&device->ending, true);
		vmm_device_disturb(device);
		vmm_live_leave(&visit);
	}
	return vmm_live_end(VMM_LIVE_DEVICE, handle);
}
