/* SPDX-License-Identifier: MIT */
/* GPU virtual addresses for a D3DKMT client (VA). The rules are those of the device callbacks. */
#include "kmt_calls.h"

#include <string.h>

/* The first member names a paging queue or, as in the form without paging queues, the adapter. */
static bool is_queue(struct vmm_process *process, D3DKMT_HANDLE handle)
{
	vmm_process_lock(process);
	bool queue = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_PAGING_QUEUE) != NULL;
	vmm_process_unlock(process);
	return queue;
}

static NTSTATUS reserve_on_adapter(const struct vmm_door_call *call, D3DKMT_HANDLE handle,
				   struct vmm_va_reserve_request *request)
{
	struct vmm_adapter *adapter = vmm_kmt_adapter(call->process, handle);
	NTSTATUS status = adapter ? vmm_va_reserve_on(adapter, call->process, request)
				  : STATUS_INVALID_PARAMETER;

	vmm_adapter_put(adapter);
	return status;
}

NTSTATUS vmm_kmt_reserve_address(struct vmm_door_call *call,
				 const D3DDDI_RESERVEGPUVIRTUALADDRESS *args,
				 struct vmm_va_reserve_request *request)
{
	if (!is_queue(call->process, args->hPagingQueue))
		return reserve_on_adapter(call, args->hAdapter, request);
	NTSTATUS status = vmm_kmt_enter_hazard(
		call, vmm_paging_queue_device(call->process, args->hPagingQueue), false);
	return NT_SUCCESS(status) ? vmm_va_reserve(call->device, request) : status;
}

NTSTATUS vmm_kmt_check_update(const struct vmm_door_call *call, D3DKMT_HANDLE device,
			      D3DKMT_HANDLE context)
{
	if (call->device->handle == device)
		return STATUS_SUCCESS;
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "VA-10", call->process->id,
			       context,
			       "update GPU virtual address: the context belongs to device 0x%08x, "
			       "not to 0x%08x",
			       call->device->handle, device);
}

/* ---- commands with GPU virtual addresses ---- */

NTSTATUS vmm_kmt_check_submit(const struct vmm_door_call *call, NTSTATUS status, uint32_t contexts)
{
	if (!call->process)
		return status;
	NTSTATUS counted =
		vmm_sched_check_command_contexts(call->observe, call->process->id, 0, contexts);
	return NT_SUCCESS(counted) ? status : counted;
}

NTSTATUS vmm_kmt_submit_command(struct vmm_door_call *call, struct vmm_context *context,
				const D3DKMT_SUBMITCOMMAND *args,
				struct vmm_command_request *request)
{
	/* vmm_kmt_check_submit has checked the count. */
	const struct vmm_broadcast_names others = {.first = 1,
						   .count = args->BroadcastContextCount - 1,
						   .number = args->BroadcastContext + 1};

	(void)call;
	memcpy(request->primaries, args->WrittenPrimaries, sizeof(request->primaries));
	return vmm_sched_submit_command(context, &others, request);
}
