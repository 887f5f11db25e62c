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

enum { LOOKS_A_CLOCK = 8 };

/*
 * What will be over in a moment is not worth a sleep. The clock is read between looks and not after the last, so that
 * the time that is told is that of the last but a few.
 */
static bool over_in_a_moment(const struct vmm_adapter *adapter, uint32_t timeline,
			     uint64_t sequence, uint64_t *waited_ns)
{
	uint64_t began = vmm_os_now_ns(adapter->os), waited = 1;

	for (unsigned looks = 1; !vmm_timeline_done(adapter, timeline, sequence); looks++) {
		if (waited >= adapter->spin_ns || atomic_load(&adapter->removed))
			return false;
		if (looks % LOOKS_A_CLOCK == 0)
			waited = vmm_max_u64(vmm_os_now_ns(adapter->os) - began, 1);
		vmm_os_pause();
	}
	*waited_ns = waited;
	return true;
}

/* A removed adapter's packets count as complete, but its waiters are told. */
static bool waits_shortly(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			  uint64_t *waited_ns)
{
	uint64_t waited;

	if (!adapter->spin_ns || !over_in_a_moment(adapter, timeline, sequence, &waited) ||
	    atomic_load(&adapter->removed))
		return false;
	if (waited_ns)
		*waited_ns += waited;
	vmm_event_often(adapter->observe, VIDMM_EVENT_WAIT, caller(adapter), 0, VIDMM_WAIT_LOCK,
			waited, timeline, sequence, 0);
	return true;
}

vmm_status vmm_wait_timeline(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			     uint32_t reason, uint64_t *waited_ns)
{
	if (reason == VIDMM_WAIT_LOCK && waits_shortly(adapter, timeline, sequence, waited_ns))
		return VMM_OK;
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
	struct vmm_os_mutex *lock = &device->process->world->sync_lock;
	struct vmm_list *link;

	vmm_os_mutex_lock(lock);
	vmm_list_for_each (link, &device->sleepers) {
		struct vmm_sleeper *sleeper = vmm_container_of(link, struct vmm_sleeper, link);

		atomic_fetch_or(&sleeper->state, VMM_SLEEPER_DISTURBED);
		vmm_os_wake(device->adapter->os, &sleeper->state, UINT32_MAX);
	}
	vmm_os_mutex_unlock(lock);
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
