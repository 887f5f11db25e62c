/* SPDX-License-Identifier: MIT */
/*
 * Processes and devices of clients, and the services that the runtime provides to a user-mode
 * driver.
 */
#include "host/kmt_route.h"
#include "host/host_private.h"
#include "object/nt_handle.h"
#include "object/stopped.h"

static void report_process(const struct vmm_process *process, enum vidmm_process_reason reason)
{
	struct vidmm_event event = {
		.type = VIDMM_EVENT_PROCESS, .process = process->id, .reason = (uint16_t)reason};

	vmm_observe_emit(process->world->observe, &event,
			 reason == VIDMM_PROCESS_OPENED ? process->name : NULL);
}

vidmm_status vidmm_process_open(struct vidmm_host *host, const char *name,
				struct vidmm_process **process)
{
	struct vmm_process *core;

	if (!host || !process)
		return VMM_INVALID_PARAMETER;
	vmm_nt_collect(&host->world); /* */
	vmm_status status = vmm_process_create(&host->world, name, &core);
	if (!vmm_ok(status))
		return status;
	report_process(core, VIDMM_PROCESS_OPENED);
	*process = (struct vidmm_process *)core;
	return VMM_OK;
}

vmm_status vmm_host_process_open_client(struct vidmm_host *host, const char *name,
					struct vmm_os_viewer *viewer,
					struct vidmm_process **process)
{
	vmm_assert(viewer && viewer->ops);
	vmm_status status = vidmm_process_open(host, name, process);

	if (vmm_ok(status))
		vidmm_core_process(*process)->viewer = viewer;
	return status;
}

void vmm_process_abandon(struct vidmm_process *process)
{
	struct vmm_process *core = vidmm_core_process(process);

	vmm_process_disturb(core);
	vmm_keyed_disturb(core);
}

static void *first_device(struct vmm_process *process)
{
	void *handle = NULL;

	vmm_process_lock(process);
	if (!vmm_list_empty(&process->devices))
		handle = vmm_container_of(process->devices.next, struct vmm_device, process_link)
				 ->hazard;
	vmm_process_unlock(process);
	return handle;
}

/*
 * Ends the process on each adapter: its budget reservation (PRI-14), its GPU virtual addresses
 * (VA-01), its viewer (memory that other processes opened is no longer mapped there) and its peak
 * statistics.
 */
static void leave_adapters(struct vmm_process *core)
{
	struct vmm_adapter *adapter;

	if (!atomic_load(&core->reserves) && !atomic_load(&core->addresses) && !core->viewer)
		return;
	for (uint32_t i = 0; (adapter = vmm_adapter_nth(core->world, i)) != NULL; i++) {
		vmm_budget_release(adapter, core);
		vmm_va_end_process(adapter, core);
		if (core->viewer)
			vmm_memory_end_viewer(adapter, core->viewer);
		vmm_memory_forget_peak_reader(adapter, core->id);
		vmm_adapter_put(adapter);
	}
}

void vidmm_process_close(struct vidmm_process *process)
{
	if (!process)
		return;
	struct vmm_process *core = vidmm_core_process(process);

	void *handle;

	vmm_world_process_ends(core->world, core);
	while ((handle = first_device(core)) != NULL) {
		struct vmm_device *device = vmm_device_end(handle);

		if (device)
			vmm_sched_destroy_device(device);
		else
			vmm_hazard_await_retired(core->world->os, handle);
	}
	vmm_stopped_devices_end(core);
	vmm_kmt_forget(core);
	leave_adapters(core);
	vmm_sync_end_process(core);
	vmm_nt_collect(core->world); /* */
	report_process(core, VIDMM_PROCESS_CLOSED);
	vmm_process_destroy(core);
}

vidmm_status vidmm_process_set_budget(struct vidmm_process *process, struct vidmm_adapter *adapter,
				      uint32_t group, uint64_t bytes)
{
	if (!process || !adapter)
		return VMM_INVALID_PARAMETER;
	if (atomic_load(&adapter->core.closed))
		return VMM_DEVICE_REMOVED;
	return vmm_budget_set(&adapter->core, vidmm_core_process(process), group, bytes);
}

void vidmm_process_set_may_raise_priority(struct vidmm_process *process, bool may)
{
	atomic_store(&vidmm_core_process(process)->may_raise, may);
}

uint32_t vidmm_process_id(const struct vidmm_process *process)
{
	return vidmm_core_process(process)->id;
}

void vidmm_d3dkmt_attach(struct vidmm_process *process)
{
	vmm_kmt_route_attach_here();
	vmm_kmt_attach(vidmm_core_process(process));
}

struct vidmm_process *vidmm_d3dkmt_enter(struct vidmm_process *process)
{
	vmm_kmt_route_enter_here(process != NULL);
	return (struct vidmm_process *)vmm_kmt_enter(vidmm_core_process(process));
}

static void door_event(uint32_t process, const struct vmm_adapter *adapter, uint32_t door,
		       vmm_status status, uint32_t object)
{
	vmm_event(adapter->observe, VIDMM_EVENT_DOOR, process, object, door, (uint32_t)status, 1, 0,
		  0);
}

vidmm_status vidmm_device_create(struct vidmm_process *process, struct vidmm_adapter *adapter,
				 struct vidmm_device **device)
{
	struct vmm_device *core = NULL;
	vmm_status status;

	if (!process || !adapter || !device)
		return VMM_INVALID_PARAMETER;
	if (atomic_load(&adapter->core.closed))
		status = VMM_DEVICE_REMOVED;
	else
		status =
			vmm_sched_create_device(vidmm_core_process(process), &adapter->core, &core);
	door_event(vidmm_process_id(process), &adapter->core, VIDMM_DOOR_CREATE_DEVICE, status,
		   core ? core->handle : 0);
	if (vmm_ok(status))
		*device = core->hazard;
	return status;
}

void vidmm_device_destroy(struct vidmm_device *device)
{
	struct vmm_device *core = vmm_device_end(device);

	if (!core) {
		/* If it is no stopped one: destroyed, or another thread is destroying it. */
		(void)vmm_stopped_device_end(device);
		return;
	}
	uint32_t process = core->process->id, handle = core->handle;
	struct vmm_adapter *adapter = core->adapter;

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
	return device;
}

/*
 * Enters a device. Returns VMM_OK if it is usable. *device stays valid until leave(), whatever is
 * returned.
 */
static vmm_status enter(struct vmm_hazard_guard *guard, struct vidmm_device *handle,
			struct vmm_device **device)
{
	*device = vmm_hazard_enter(guard, VMM_HAZARD_DEVICE, handle);
	if (!*device)
		return vmm_hazard_is_stopped(handle) ? VMM_DEVICE_REMOVED : VMM_INVALID_PARAMETER;
	return atomic_load(&(*device)->adapter->closed) ? VMM_DEVICE_REMOVED : VMM_OK;
}

static vmm_status leave(const struct vmm_hazard_guard *guard, const struct vmm_device *device,
			vmm_status status)
{
	if (device)
		vmm_hazard_leave(guard);
	return status;
}

uint32_t vidmm_device_d3dkmt_handle(struct vidmm_device *device)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *core;
	uint32_t handle = vmm_ok(enter(&guard, device, &core)) ? core->handle : 0;

	(void)leave(&guard, core, VMM_OK);
	return handle;
}

uint32_t vidmm_context_d3dkmt_handle(struct vidmm_device *device, void *context)
{
	struct vmm_hazard_guard guard;
	const struct vmm_context *core = vmm_sched_enter_context(&guard, device, context);

	if (!core)
		return 0;
	uint32_t handle = atomic_load(&vmm_sched_context_device(core)->adapter->closed)
				  ? 0
				  : vmm_sched_context_number(core);
	vmm_hazard_leave(&guard);
	return handle;
}

vidmm_status vidmm_device_set_trim(struct vidmm_device *device, void *umd_device,
				   vidmm_trim_residency_set_fn *function)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *core;
	vmm_status status = enter(&guard, device, &core);

	if (vmm_ok(status))
		status = vmm_umd_set_trim(&core, &guard, umd_device, function);
	return leave(&guard, core, status);
}

vidmm_status vidmm_resource_set_shared(struct vidmm_device *device, void *runtime_resource)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *core;
	vmm_status status = enter(&guard, device, &core);

	if (vmm_ok(status))
		status = vmm_resource_mark_shared(core, runtime_resource);
	return leave(&guard, core, status);
}

vidmm_status vidmm_resource_share(struct vidmm_device *device, uint32_t km_resource,
				  uint32_t *global_handle)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *core;
	vmm_status status = enter(&guard, device, &core);

	if (vmm_ok(status))
		status = global_handle
				 ? vmm_resource_global_handle(core, km_resource, global_handle)
				 : VMM_INVALID_PARAMETER;
	return leave(&guard, core, status);
}

vidmm_status vidmm_resource_open(struct vidmm_device *device, uint32_t global_handle,
				 uint32_t *km_resource, uint32_t *allocations,
				 uint32_t *allocation_count)
{
	struct vmm_hazard_guard guard;
	struct vmm_device *core;
	vmm_status status;

	if (!km_resource || !allocations || !allocation_count)
		return VMM_INVALID_PARAMETER;
	status = enter(&guard, device, &core);
	if (vmm_ok(status)) {
		const struct vmm_share_key key = {.global = global_handle};

		status = vmm_resource_open(core, &key, km_resource, allocations, allocation_count);
		door_event(core->process->id, core->adapter, VIDMM_DOOR_OPEN_RESOURCE, status,
			   vmm_ok(status) ? *km_resource : 0);
	}
	return leave(&guard, core, status);
}
