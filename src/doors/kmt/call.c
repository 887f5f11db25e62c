/* SPDX-License-Identifier: MIT */
/* What every D3DKMT function does first and last: who calls, on what, what came of it. */
#include "doors/kmt/kmt_private.h"

enum { PROCESS_SLOT = 5 }; /* of the thread; see os.h */

static _Atomic(struct vmm_process *) attached;
static _Thread_local struct vmm_process *served;

void vmm_kmt_attach(struct vmm_process *process)
{
	atomic_store(&attached, process);
}

void vmm_kmt_forget(struct vmm_process *process)
{
	struct vmm_process *expected = process;

	atomic_compare_exchange_strong(&attached, &expected, NULL);
}

static uint64_t *own_slot(struct vmm_os *os)
{
	return &vmm_os_own_slots(os)[PROCESS_SLOT];
}

struct vmm_process *vmm_kmt_enter(struct vmm_process *process)
{
	struct vmm_process *known = process ? process : atomic_load(&attached);

	if (!known)
		return NULL;
	uint64_t *slot = own_slot(known->world->os);
	struct vmm_process *before = (struct vmm_process *)(uintptr_t)*slot;
	*slot = (uint64_t)(uintptr_t)process;
	return before;
}

struct vmm_process *vmm_kmt_step(struct vmm_os *os, struct vmm_process *process)
{
	uint64_t *slot = own_slot(os);
	struct vmm_process *before = (struct vmm_process *)(uintptr_t)*slot;

	*slot = (uint64_t)(uintptr_t)process;
	return before;
}

struct vmm_process *vmm_kmt_serve(struct vmm_process *process)
{
	struct vmm_process *before = served;

	served = process;
	return before;
}

struct vmm_process *vmm_kmt_process(void)
{
	struct vmm_process *process = served;

	if (process)
		return process;
	process = atomic_load(&attached);

	if (!process)
		return NULL;
	struct vmm_process *entered =
		(struct vmm_process *)(uintptr_t)*own_slot(process->world->os);
	return entered ? entered : process;
}

NTSTATUS vmm_kmt_refuse(const char *function, const char *why)
{
	struct vmm_process *process = vmm_kmt_process();

	if (!process)
		return STATUS_UNSUCCESSFUL;
	vmm_finding(process->world->observe, "HND-11", process->id, 0, "%s: %s", function, why);
	return STATUS_INVALID_PARAMETER;
}

static void report_handle(const struct vmm_process *process, uint32_t handle,
			  enum vmm_handle_type type, const char *what)
{
	vmm_finding(process->world->observe, "HND-07", process->id, handle,
		    "0x%08x is not a live %s handle of process %u (%s)", handle, what, process->id,
		    vmm_handle_explain(&process->handles, handle, type));
}

NTSTATUS vmm_kmt_begin(struct vmm_kmt_call *call, uint32_t door)
{
	*call = (struct vmm_kmt_call){.process = vmm_kmt_process(), .door = door};
	if (!call->process)
		return STATUS_UNSUCCESSFUL;
	call->began = vmm_observe_begin(call->process->world->observe, VIDMM_EVENT_DOOR);
	return STATUS_SUCCESS;
}

NTSTATUS vmm_kmt_enter_live(struct vmm_kmt_call *call, void *device, bool cleaning)
{
	call->device = vmm_live_enter(&call->visit, VMM_LIVE_DEVICE, device);
	if (!call->device)
		return STATUS_INVALID_PARAMETER;
	return cleaning ? STATUS_SUCCESS : vmm_kmt_check_alive(call->device);
}

void *vmm_kmt_live_device(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	void *live = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_device *device =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_DEVICE);
	if (device)
		live = device->live;
	else
		report_handle(process, handle, VMM_HANDLE_DEVICE, "device");
	if (live)
		vmm_device_set_name_locked(process, handle, live);
	vmm_os_mutex_unlock(&process->lock);
	return live;
}

void *vmm_kmt_live_context(struct vmm_process *process, D3DKMT_HANDLE handle, void **device)
{
	void *live = NULL;

	vmm_os_mutex_lock(&process->lock);
	const struct vmm_context *context =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_CONTEXT);
	if (context) {
		live = vmm_sched_context_live(context);
		*device = vmm_sched_context_device(context)->live;
	} else {
		report_handle(process, handle, VMM_HANDLE_CONTEXT, "context");
	}
	vmm_os_mutex_unlock(&process->lock);
	return live;
}

NTSTATUS vmm_kmt_enter_device(struct vmm_kmt_call *call, D3DKMT_HANDLE device, uint32_t door,
			      bool cleaning)
{
	return vmm_kmt_enter_device_often(call, device, door, cleaning);
}

NTSTATUS vmm_kmt_enter_context(struct vmm_kmt_call *call, D3DKMT_HANDLE handle, uint32_t door,
			       struct vmm_context **context)
{
	NTSTATUS status = vmm_kmt_begin(call, door);
	void *device = NULL;

	*context = NULL;
	if (!NT_SUCCESS(status))
		return status;
	void *live = vmm_kmt_live_context(call->process, handle, &device);
	*context = vmm_sched_enter_context(&call->visit, device, live);
	if (!*context)
		return STATUS_INVALID_PARAMETER;
	call->device = vmm_sched_context_device(*context);
	return vmm_kmt_check_alive(call->device);
}

NTSTATUS vmm_kmt_leave(const struct vmm_kmt_call *call, NTSTATUS status, uint32_t object,
		       uint64_t count, uint64_t flags)
{
	return vmm_kmt_leave_often(call, status, object, count, flags);
}

NTSTATUS vmm_kmt_resource_key(const struct vmm_kmt_call *call, D3DKMT_HANDLE handle, void **key)
{
	struct vmm_resource *resource;

	*key = NULL;
	if (!handle)
		return STATUS_SUCCESS;
	vmm_os_mutex_lock(&call->process->lock);
	resource = vmm_handle_lookup(&call->process->handles, handle, VMM_HANDLE_RESOURCE);
	if (resource && resource->device == call->device)
		*key = resource->runtime_handle;
	else
		report_handle(call->process, handle, VMM_HANDLE_RESOURCE, "resource");
	vmm_os_mutex_unlock(&call->process->lock);
	return *key ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}
