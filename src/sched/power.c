/* SPDX-License-Identifier: MIT */
/*
 * Leaving full power and coming back to it (PNP-05). SetPowerState is a level three call (PAG-28): whoever would enter the
 * miniport waits outside, the GPU has nothing to do, and what would be lost has left its segments. So, in this order:
 * devices are paused, preparation is halted, what is prepared runs out, memory is evicted, the miniport is told. Coming back
 * goes through the same steps from the last to the first. Packets that were not prepared keep their places in the queue.
 */
#include "sched/sched_private.h"

/* Counts itself, then looks; who halts says so, then looks at the count: one of the two sees the other. */
vmm_status vmm_power_begin_device(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (vmm_likely(!atomic_load(&sched->devices_halted))) {
			atomic_fetch_add(&sched->making_devices, 1);
			if (vmm_likely(!atomic_load(&sched->devices_halted)))
				return VMM_OK;
			vmm_power_end_device(adapter);
		}
		vmm_status status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_POWER);
		if (!vmm_ok(status))
			return status;
	}
}

void vmm_power_end_device(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	if (atomic_fetch_sub(&sched->making_devices, 1) == 1 &&
	    vmm_unlikely(atomic_load(&sched->devices_halted)))
		vmm_progress_signal(adapter);
}

/* On return nobody is making one. */
static vmm_status halt_making_devices(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	atomic_store(&sched->devices_halted, true);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&sched->making_devices))
			return VMM_OK;
		vmm_status status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_POWER);
		if (!vmm_ok(status))
			return status;
	}
}

static void *next_to_pause(struct vmm_adapter *adapter)
{
	struct vmm_list *link;
	void *handle = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!device->paused && !handle)
			handle = device->live;
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return handle;
}

static struct vmm_device *device_of(struct vmm_adapter *adapter, const void *handle)
{
	struct vmm_list *link;
	struct vmm_device *found = NULL;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (device->live == handle)
			found = device;
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	return found;
}

/* Nobody is inside the device, so nobody makes or ends contexts of it. */
static void pause_contexts(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->contexts) {
		bool paused = vmm_live_pause(
			VMM_LIVE_CONTEXT, vmm_container_of(link, struct vmm_context, link)->live);

		vmm_assert(paused);
	}
}

static void pause_devices(struct vmm_adapter *adapter)
{
	const void *handle;

	while ((handle = next_to_pause(adapter)) != NULL) {
		if (!vmm_live_pause_begin(VMM_LIVE_DEVICE, handle)) {
			vmm_live_await_end(adapter->os, handle); /* its client is at it */
			continue;
		}
		struct vmm_device *device = device_of(adapter, handle);

		vmm_assert(device);
		vmm_world_next_epoch(adapter->world);
		vmm_device_disturb(device);   /* who waits for a fence comes out; */
		vmm_progress_signal(adapter); /* so does who waits in a lock for the GPU */
		vmm_live_pause_finish(handle);
		device->paused = true;
		pause_contexts(device);
	}
}

static void resume_devices(struct vmm_adapter *adapter)
{
	struct vmm_device *device;

	atomic_store(&adapter->sched->devices_halted, false);
	do {
		struct vmm_list *link;

		device = NULL;
		vmm_os_mutex_lock(&adapter->state_lock);
		vmm_list_for_each (link, &adapter->devices) {
			struct vmm_device *d =
				vmm_container_of(link, struct vmm_device, adapter_link);

			if (d->paused)
				device = d;
		}
		vmm_os_mutex_unlock(&adapter->state_lock);
		if (!device)
			break;
		device->paused = false; /* its own handle last: then it may go at once */
		vmm_list_for_each (link, &device->contexts)
			vmm_live_resume(vmm_container_of(link, struct vmm_context, link)->live);
		vmm_live_resume(device->live);
	} while (device);
	vmm_progress_signal(adapter);
}

/* Is all that was prepared complete? Paging lock held. */
static bool is_settled(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool settled;

	vmm_os_mutex_lock(&adapter->state_lock);
	settled = !sched->hardware_total && !atomic_load(&sched->ready_count);
	if (!vmm_list_empty(&sched->prepare))
		settled &=
			!vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link)->split;
	vmm_os_mutex_unlock(&adapter->state_lock);
	return settled;
}

static vmm_status await_settled(struct vmm_adapter *adapter)
{
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_memory_flush_locked(adapter);
		vmm_queue_drain_locked(adapter->sched);
		bool settled = vmm_hw_halt_locked(adapter->sched) && is_settled(adapter->sched);
		vmm_paging_unlock(adapter);
		if (atomic_load(&adapter->removed))
			return VMM_DEVICE_REMOVED;
		if (settled)
			return VMM_OK;
		vmm_status status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_POWER);
		if (!vmm_ok(status))
			return status;
	}
}

/* The worker looks at it after it has taken the submit lock: from here on it closes nothing. */
static void halt_preparation(struct vmm_adapter *adapter)
{
	atomic_store(&adapter->sched->halted, true);
	vmm_os_mutex_lock(&adapter->submit_lock);
	vmm_os_mutex_unlock(&adapter->submit_lock);
	vmm_progress_signal(adapter); /* the worker may be waiting on behalf of the first packet */
}

static void resume(struct vmm_adapter *adapter)
{
	atomic_store(&adapter->sched->halted, false);
	vmm_worker_wake(adapter->sched);
	resume_devices(adapter);
}

static vmm_status evict(struct vmm_adapter *adapter, POWER_ACTION action)
{
	vmm_status status;

	vmm_paging_lock(adapter);
	vmm_dma_give_up_places(adapter);
	vmm_display_forget_locked(adapter->sched);
	vmm_paging_unlock(adapter);
	status = vmm_memory_power_down(adapter, action == PowerActionHibernate ? VMM_POWER_HIBERNATE
									       : VMM_POWER_STANDBY);
	return atomic_load(&adapter->removed) ? VMM_DEVICE_REMOVED : status;
}

vmm_status vmm_sched_power_down(struct vmm_adapter *adapter, DEVICE_POWER_STATE state,
				POWER_ACTION action)
{
	vmm_status status = halt_making_devices(adapter);

	if (vmm_ok(status))
		pause_devices(adapter);
	halt_preparation(adapter);
	if (vmm_ok(status))
		status = await_settled(adapter);
	if (vmm_ok(status)) {
		status = evict(adapter, action);
		if (!vmm_ok(status))
			vmm_memory_power_up(adapter);
	}
	if (vmm_ok(status))
		vmm_port_set_power_state(adapter->port, state, action);
	else
		resume(adapter);
	return status;
}

void vmm_sched_power_up(struct vmm_adapter *adapter)
{
	vmm_port_set_power_state(adapter->port, PowerDeviceD0, PowerActionNone);
	vmm_memory_power_up(adapter);
	resume(adapter);
}
