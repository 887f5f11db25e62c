/* SPDX-License-Identifier: MIT */
/*
 * Common begin and end of every D3DKMT function: the calling process, the device or context, the
 * status and the event.
 */
#include "doors/kmt/kmt_private.h"
#include "object/stopped.h"

NTSTATUS vmm_kmt_refuse_as(uint32_t door, NTSTATUS status, const char *function, const char *why)
{
	struct vmm_door_call call;
	NTSTATUS begun = vmm_kmt_begin(&call, door);

	if (!NT_SUCCESS(begun))
		return begun;
	vmm_finding(call.observe, "HND-11", call.process->id, 0, "%s: %s", function, why);
	return vmm_kmt_leave(&call, status, 0, 0, 0);
}

static void report_handle(const struct vmm_process *process, uint32_t handle,
			  enum vmm_handle_type type, const char *what)
{
	vmm_finding(process->world->observe, "HND-07", process->id, handle,
		    "0x%08x is not a live %s handle of process %u (%s)", handle, what, process->id,
		    vmm_handle_explain(&process->handles, handle, type));
}

NTSTATUS vmm_kmt_begin(struct vmm_door_call *call, uint32_t door)
{
	*call = (struct vmm_door_call){.process = vmm_kmt_process(), .door = door};
	if (!call->process)
		return STATUS_UNSUCCESSFUL;
	call->observe = call->process->world->observe;
	call->began = vmm_observe_begin(call->observe, VIDMM_EVENT_DOOR);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_enter_hazard(struct vmm_door_call *call, void *device, bool cleaning)
{
	call->device = vmm_hazard_enter(&call->guard, VMM_HAZARD_DEVICE, device);
	if (!call->device)
		return vmm_door_no_device(call, device, cleaning);
	return cleaning ? STATUS_SUCCESS : vmm_door_check_alive(call->device);
}

void *vmm_kmt_live_device(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	const struct vmm_device *device =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_DEVICE);
	if (device) {
		hazard = device->hazard;
		vmm_device_cache_add_locked(process, handle, hazard);
	} else {
		hazard = vmm_stopped_device_find_locked(process, handle);
	}
	if (!hazard)
		report_handle(process, handle, VMM_HANDLE_DEVICE, "device");
	vmm_process_unlock(process);
	return hazard;
}

void *vmm_kmt_live_context(struct vmm_process *process, D3DKMT_HANDLE handle, void **device)
{
	void *hazard = NULL;

	vmm_process_lock(process);
	const struct vmm_context *context =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_CONTEXT);
	if (context) {
		hazard = vmm_sched_context_live(context);
		*device = vmm_sched_context_device(context)->hazard;
	} else {
		*device = vmm_stopped_device_find_locked(process, handle);
		if (!*device)
			report_handle(process, handle, VMM_HANDLE_CONTEXT, "context");
	}
	vmm_process_unlock(process);
	return hazard;
}

NTSTATUS vmm_kmt_enter_device(struct vmm_door_call *call, D3DKMT_HANDLE device, uint32_t door,
			      bool cleaning)
{
	return vmm_kmt_enter_device_inline(call, device, door, cleaning);
}

NTSTATUS vmm_kmt_enter_context(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_context **context)
{
	NTSTATUS status = vmm_kmt_begin(call, door);
	void *device = NULL;

	*context = NULL;
	if (!NT_SUCCESS(status))
		return status;
	void *hazard = vmm_kmt_live_context(call->process, handle, &device);
	*context = vmm_sched_enter_context(&call->guard, device, hazard);
	if (!*context)
		return vmm_door_no_device(call, device, false);
	call->device = vmm_sched_context_device(*context);
	return vmm_door_check_alive(call->device);
}

NTSTATUS vmm_kmt_enter_object(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			      void *device_of(struct vmm_process *process, uint32_t handle),
			      bool cleaning)
{
	NTSTATUS status = vmm_kmt_begin(call, door);

	return NT_SUCCESS(status)
		       ? vmm_kmt_enter_hazard(call, device_of(call->process, handle), cleaning)
		       : status;
}

NTSTATUS vmm_kmt_enter_adapter(struct vmm_door_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_adapter **adapter)
{
	NTSTATUS status = vmm_kmt_begin(call, door);

	*adapter = NT_SUCCESS(status) ? vmm_kmt_adapter(call->process, handle) : NULL;
	return NT_SUCCESS(status) && !*adapter ? STATUS_INVALID_PARAMETER : status;
}

NTSTATUS vmm_kmt_leave(const struct vmm_door_call *call, NTSTATUS status, uint32_t object,
		       uint64_t count, uint64_t flags)
{
	return vmm_door_leave_inline(call, status, object, count, flags);
}

NTSTATUS vmm_kmt_resource_key(const struct vmm_door_call *call, D3DKMT_HANDLE handle, void **key)
{
	struct vmm_resource *resource;

	*key = NULL;
	if (!handle)
		return STATUS_SUCCESS;
	vmm_process_lock(call->process);
	resource = vmm_handle_lookup(&call->process->handles, handle, VMM_HANDLE_RESOURCE);
	if (resource && resource->device == call->device)
		*key = resource->runtime_handle;
	else
		report_handle(call->process, handle, VMM_HANDLE_RESOURCE, "resource");
	vmm_process_unlock(call->process);
	return *key ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_kmt_shape(const struct vmm_door_call *call, D3DKMT_HANDLE resource, uint32_t count,
		       struct vmm_shape *shape)
{
	shape->count = count;
	return vmm_kmt_resource_key(call, resource, &shape->resource);
}
