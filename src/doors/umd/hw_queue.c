/* SPDX-License-Identifier: MIT */
/*
 * Hardware contexts and hardware queues of a user-mode driver (SUB-27, SCH-10). Their HANDLEs have
 * the numbers of D3DKMT handles.
 */
#include "umd_calls.h"

NTSTATUS vmm_umd_refuse_hw_flags(const struct vmm_door_call *call, uint32_t queue, uint32_t flags)
{
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, "Q-60", call->process->id,
			       queue, "pfnSubmitCommandToHwQueueCb: flags 0x%x are reserved",
			       flags);
}

NTSTATUS vmm_umd_copy_queues(const struct vmm_hw_sync_request *request, const HANDLE *given,
			     uint32_t queues[VMM_HW_BROADCAST_MAX])
{
	if (request->queue_count <= VMM_HW_BROADCAST_MAX)
		for (uint32_t i = 0; i < request->queue_count; i++)
			queues[i] = vmm_umd_number(given[i]);
	return STATUS_SUCCESS;
}
