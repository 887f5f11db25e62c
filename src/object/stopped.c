/* SPDX-License-Identifier: MIT */
/*
 * Retains the handles of devices whose adapter has stopped, until the client destroys them
 * (stopped.h). (PNP-03)
 */
#include "object/stopped.h"
#include "object/hazard.h"

bool vmm_device_handle_destroy_locked(struct vmm_device *device, uint32_t handle)
{
	struct vmm_handle_table *handles = &device->process->handles;

	vmm_assert_held(&device->process->lock);
	return device->stopped ? vmm_handle_stop(handles, handle, device)
			       : vmm_handle_destroy(handles, handle);
}

void *vmm_stopped_device_find_locked(const struct vmm_process *process, uint32_t handle)
{
	const struct vmm_device *device =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_STOPPED);

	vmm_assert_held(&process->lock);
	return device ? device->hazard : NULL;
}

void vmm_stopped_device_keep(struct vmm_device *device)
{
	void *hazard = device->hazard;

	vmm_process_lock(device->process);
	vmm_list_push_back(&device->process->stopped_devices, &device->process_link);
	vmm_process_unlock(device->process);
	/* From here on the client may end it. */
	vmm_hazard_retired_stopped(hazard);
}

struct sweep {
	struct vmm_handle_table *handles;
	const struct vmm_device *device;
};

static void destroy_handle_of(void *context, uint32_t handle, void *object)
{
	const struct sweep *sweep = context;

	if (object == sweep->device)
		vmm_handle_destroy(sweep->handles, handle);
}

bool vmm_stopped_device_end(const void *hazard)
{
	struct vmm_device *device = vmm_hazard_end_stopped(VMM_HAZARD_DEVICE, hazard);

	if (!device)
		return false;
	struct vmm_process *process = device->process;
	struct sweep sweep = {&process->handles, device};
	vmm_process_lock(process);
	vmm_list_remove(&device->process_link);
	vmm_handle_for_each(&process->handles, destroy_handle_of, &sweep);
	vmm_process_unlock(process);
	vmm_free(device);
	return true;
}

static void *first_stopped(struct vmm_process *process)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	if (!vmm_list_empty(&process->stopped_devices))
		hazard = vmm_container_of(process->stopped_devices.next, struct vmm_device,
					  process_link)
				 ->hazard;
	vmm_process_unlock(process);
	return hazard;
}

void vmm_stopped_devices_end(struct vmm_process *process)
{
	void *hazard;

	while ((hazard = first_stopped(process)) != NULL)
		(void)vmm_stopped_device_end(hazard);
}
