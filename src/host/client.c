/* SPDX-License-Identifier: MIT */
/* Processes, devices and what the runtime does for a user-mode driver. */
#include "host/host_private.h"

vidmm_status vidmm_process_open(struct vidmm_host *host, const char *name,
				struct vidmm_process **process)
{
	struct vmm_process *core;

	if (!host || !process)
		return VMM_INVALID_PARAMETER;
	vmm_status status = vmm_process_create(&host->world, name, &core);
	if (vmm_ok(status))
		*process = (struct vidmm_process *)core;
	return status;
}

void vidmm_process_close(struct vidmm_process *process)
{
	if (!process)
		return;
	struct vmm_process *core = vidmm_core_process(process);

	while (!vmm_list_empty(&core->devices))
		vmm_sched_destroy_device(
			vmm_container_of(core->devices.next, struct vmm_device, process_link));
	vmm_kmt_forget(core);
	vmm_process_destroy(core);
}

uint32_t vidmm_process_id(const struct vidmm_process *process)
{
	return vidmm_core_process(process)->id;
}

void vidmm_d3dkmt_attach(struct vidmm_process *process)
{
	vmm_kmt_attach(vidmm_core_process(process));
}

struct vidmm_process *vidmm_d3dkmt_enter(struct vidmm_process *process)
{
	return (struct vidmm_process *)vmm_kmt_enter(vidmm_core_process(process));
}

static void door_event(const struct vmm_process *process, const struct vmm_adapter *adapter,
		       uint32_t door, vmm_status status, uint32_t object)
{
	vmm_event(adapter->observe, VIDMM_EVENT_DOOR, process->id, object, door, (uint32_t)status,
		  1, 0, 0);
}

vidmm_status vidmm_device_create(struct vidmm_process *process, struct vidmm_adapter *adapter,
				 struct vidmm_device **device)
{
	struct vmm_device *core = NULL;
	vmm_status status;

	if (!process || !adapter || !device)
		return VMM_INVALID_PARAMETER;
	if (atomic_load(&adapter->core.removed))
		status = VMM_DEVICE_REMOVED;
	else
		status =
			vmm_sched_create_device(vidmm_core_process(process), &adapter->core, &core);
	door_event(vidmm_core_process(process), &adapter->core, VIDMM_DOOR_CREATE_DEVICE, status,
		   core ? core->handle : 0);
	if (vmm_ok(status))
		*device = (struct vidmm_device *)core;
	return status;
}

void vidmm_device_destroy(struct vidmm_device *device)
{
	if (!device)
		return;
	struct vmm_device *core = vidmm_core_device(device);
	struct vmm_process *process = core->process;
	struct vmm_adapter *adapter = core->adapter;
	uint32_t handle = core->handle;

	vmm_sched_destroy_device(core);
	door_event(process, adapter, VIDMM_DOOR_DESTROY_DEVICE, VMM_OK, handle);
}

const struct _D3DDDI_DEVICECALLBACKS *vidmm_device_callbacks(struct vidmm_device *device)
{
	(void)device;
	return vmm_umd_callbacks();
}

void *vidmm_device_handle(struct vidmm_device *device)
{
	return vidmm_core_device(device);
}

static vmm_status usable(const struct vidmm_device *device)
{
	const struct vmm_device *core = vidmm_core_device(device);

	if (!core || core->magic != VMM_DEVICE_MAGIC)
		return VMM_INVALID_PARAMETER;
	return atomic_load(&core->adapter->removed) ? VMM_DEVICE_REMOVED : VMM_OK;
}

vidmm_status vidmm_resource_set_shared(struct vidmm_device *device, void *runtime_resource)
{
	vmm_status status = usable(device);

	return vmm_ok(status)
		       ? vmm_resource_mark_shared(vidmm_core_device(device), runtime_resource)
		       : status;
}

vidmm_status vidmm_resource_share(struct vidmm_device *device, uint32_t km_resource,
				  uint32_t *global_handle)
{
	vmm_status status = global_handle ? usable(device) : VMM_INVALID_PARAMETER;

	return vmm_ok(status) ? vmm_resource_global_handle(vidmm_core_device(device), km_resource,
							   global_handle)
			      : status;
}

vidmm_status vidmm_resource_open(struct vidmm_device *device, uint32_t global_handle,
				 uint32_t *km_resource, uint32_t *allocations,
				 uint32_t *allocation_count)
{
	vmm_status status = km_resource && allocations && allocation_count ? usable(device)
									   : VMM_INVALID_PARAMETER;

	if (!vmm_ok(status))
		return status;
	status = vmm_resource_open(vidmm_core_device(device), global_handle, km_resource,
				   allocations, allocation_count);
	const struct vmm_device *core = vidmm_core_device(device);
	door_event(core->process, core->adapter, VIDMM_DOOR_OPEN_RESOURCE, status,
		   vmm_ok(status) ? *km_resource : 0);
	return status;
}
