/* SPDX-License-Identifier: MIT */
/*
 * GPU virtual addresses (VA): pfnSubmitCommandCb.
 */
#include "umd_calls.h"

NTSTATUS vmm_umd_refuse_context(const struct vmm_door_call *call, const char *rule, uint32_t object,
				const char *member)
{
	return vmm_refuse_rule(call->observe, STATUS_INVALID_PARAMETER, rule, call->process->id,
			       object, "%s is not a live context of device 0x%08x", member,
			       call->device->handle);
}

/* SUB-26: `count` has been checked. The array is read once, and only the entries in use. */
static NTSTATUS submit_to(struct vmm_context *context, const D3DDDICB_SUBMITCOMMAND *data,
			  uint32_t count, const struct vmm_command_request *request)
{
	HANDLE handles[VMM_BROADCAST_MAX];
	const struct vmm_broadcast_names others = {
		.first = 1, .count = count - 1, .hazard = handles};

	for (uint32_t i = 1; i < count; i++)
		handles[i - 1] = data->BroadcastContext[i];
	return vmm_sched_submit_command(context, &others, request);
}

/* Only the members in use are read, each once. */
static NTSTATUS submit(const struct vmm_door_call *call, struct vmm_context *context,
		       const D3DDDICB_SUBMITCOMMAND *data, uint32_t count)
{
	struct vmm_command_request request = {.commands = data->Commands,
					      .length = data->CommandLength,
					      .flags = data->Flags.Value,
					      .private_bytes = data->PrivateDriverDataSize,
					      .primary_count = data->NumPrimaries};
	uint64_t local[32];
	void *copy = NULL;

	for (uint32_t i = 0; i < vmm_min_u32(request.primary_count, VMM_PRIMARIES_MAX); i++)
		request.primaries[i] = data->WrittenPrimaries[i];
	NTSTATUS status =
		vmm_door_copy_in(data->pPrivateDriverData, request.private_bytes,
				 VMM_DOOR_PRIVATE_BYTES_MAX, 1, local, sizeof(local), &copy);
	status = vmm_door_copied(call, status, "pPrivateDriverData", request.private_bytes);
	request.private_data = copy;
	if (NT_SUCCESS(status))
		status = submit_to(context, data, count, &request);
	vmm_door_copy_done(copy, local);
	return status;
}

HRESULT APIENTRY vmm_umd_submit_command(HANDLE device, const D3DDDICB_SUBMITCOMMAND *data)
{
	struct vmm_door_call call;
	struct vmm_context *context = NULL;
	HANDLE handle = data ? data->BroadcastContext[0] : NULL;
	NTSTATUS status = vmm_umd_enter_context(&call, device, handle, VIDMM_DOOR_RENDER, &context);

	if (!call.device || !data)
		return vmm_umd_leave(
			&call, vmm_umd_no_argument(&call, status, "pfnSubmitCommandCb"), 0, 0, 0);
	uint32_t count = data->BroadcastContextCount;
	NTSTATUS counted = vmm_sched_check_command_contexts(call.observe, call.process->id,
							    call.device->handle, count);
	if (NT_SUCCESS(counted) && !context)
		counted = vmm_umd_refuse_context(&call, "SUB-26", call.device->handle,
						 "submit command: BroadcastContext[0]");
	if (NT_SUCCESS(status))
		status = counted;
	if (NT_SUCCESS(status))
		status = submit(&call, context, data, count);
	return vmm_umd_leave(&call, status, 0, data->NumPrimaries, data->Commands);
}
