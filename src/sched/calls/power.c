/* SPDX-License-Identifier: MIT */
/*
 * Leaving full power and coming back to it (PNP-05). SetPowerState is a level three call (PAG-28):
 * no other thread may be inside the miniport, and new callers wait. The GPU must be idle, and
 * content that would be lost must have left its segments. Power-down therefore has these steps:
 *
 * 1. Pause the devices.
 * 2. Halt preparation.
 * 3. Wait until all prepared packets are complete.
 * 4. Evict memory.
 * 5. Call the miniport.
 *
 * Power-up calls the miniport first. It then restores paging buffers, page tables and content that
 * must be resident, and resumes preparation and the devices. Packets that are not prepared keep
 * their positions in the prepare queue. Other evicted content is paged in when a packet needs it.
 */
#include "sched/calls/calls.h"

/*
 * The creator counts itself and then reads the halt flag; the power change sets the flag and then
 * reads the count. So one of the two sees the other.
 */
vmm_status vmm_power_begin_device(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (vmm_likely(!atomic_load(&sched->devices_halted))) {
			atomic_fetch_add(&sched->creating_devices, 1);
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

	if (atomic_fetch_sub(&sched->creating_devices, 1) == 1 &&
	    vmm_unlikely(atomic_load(&sched->devices_halted)))
		vmm_progress_signal(adapter);
}

/* Refuses new devices. On VMM_OK no thread is creating one. */
static vmm_status halt_making_devices(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	atomic_store(&sched->devices_halted, true);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&sched->creating_devices))
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

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (!device->paused && !handle)
			handle = device->hazard;
	}
	vmm_state_unlock(adapter);
	return handle;
}

static struct vmm_device *device_of(struct vmm_adapter *adapter, const void *handle)
{
	struct vmm_list *link;
	struct vmm_device *found = NULL;

	vmm_state_lock(adapter);
	vmm_list_for_each (link, &adapter->devices) {
		struct vmm_device *device = vmm_container_of(link, struct vmm_device, adapter_link);

		if (device->hazard == handle)
			found = device;
	}
	vmm_state_unlock(adapter);
	return found;
}

/* No thread is inside the device, so none creates or destroys contexts of it. */
static void pause_contexts(struct vmm_device *device)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &device->contexts) {
		bool paused =
			vmm_hazard_pause(VMM_HAZARD_CONTEXT,
					 vmm_container_of(link, struct vmm_context, link)->hazard);

		vmm_assert(paused);
	}
}

static void pause_devices(struct vmm_adapter *adapter)
{
	const void *handle;

	while ((handle = next_to_pause(adapter)) != NULL) {
		if (!vmm_hazard_pause_begin(VMM_HAZARD_DEVICE, handle)) {
			/* its client is destroying it */
			vmm_hazard_await_retired(adapter->os, handle);
			continue;
		}
		struct vmm_device *device = device_of(adapter, handle);

		vmm_assert(device);
		vmm_world_next_epoch(adapter->world);
		vmm_device_disturb(device);   /* waiters of its fences return */
		vmm_progress_signal(adapter); /* CPU locks that wait for the GPU return */
		vmm_hazard_pause_finish(handle);
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
		vmm_state_lock(adapter);
		vmm_list_for_each (link, &adapter->devices) {
			struct vmm_device *d =
				vmm_container_of(link, struct vmm_device, adapter_link);

			if (d->paused)
				device = d;
		}
		vmm_state_unlock(adapter);
		if (!device)
			break;
		device->paused = false; /* its own handle last: the device may end right after */
		vmm_list_for_each (link, &device->contexts)
			vmm_hazard_resume(vmm_container_of(link, struct vmm_context, link)->hazard);
		vmm_hazard_resume(device->hazard);
	} while (device);
	vmm_progress_signal(adapter);
}

/* Returns whether all prepared packets are complete. Paging lock held. */
static bool is_drained(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool drained;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	drained = !sched->hardware_total && !atomic_load(&sched->ready_count);
	if (!vmm_list_empty(&sched->prepare))
		drained &=
			!vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link)->split;
	vmm_state_unlock(adapter);
	return drained;
}

static vmm_status await_drained(struct vmm_adapter *adapter)
{
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_paging_lock(adapter);
		vmm_memory_flush_locked(adapter);
		vmm_queue_drain_locked(adapter->sched);
		bool drained = vmm_hw_halt_locked(adapter->sched) && is_drained(adapter->sched);
		vmm_paging_commit(adapter);
		if (atomic_load(&adapter->removed))
			return VMM_DEVICE_REMOVED;
		if (drained)
			return VMM_OK;
		vmm_status status = vmm_wait_progress(adapter, seen, VIDMM_WAIT_POWER);
		if (!vmm_ok(status))
			return status;
	}
}

/*
 * The worker reads `halted` after it has taken the submit lock. Once this function has had that
 * lock, the worker closes nothing in the miniport.
 */
static void halt_preparation(struct vmm_adapter *adapter)
{
	atomic_store(&adapter->sched->halted, true);
	vmm_submit_lock(adapter);
	vmm_submit_unlock(adapter);
	/* the worker may be waiting for the GPU for the first packet */
	vmm_progress_signal(adapter);
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
	bool left;

	vmm_paging_lock(adapter);
	(void)vmm_dma_unmap_unpinned(adapter, &left);
	vmm_display_forget_locked(adapter->sched);
	vmm_paging_commit(adapter);
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
		status = await_drained(adapter);
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
