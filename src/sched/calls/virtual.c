/* SPDX-License-Identifier: MIT */
/*
 * Contexts whose commands are at GPU virtual addresses (SUB-23): D3DKMTSubmitCommand,
 * pfnSubmitCommandCb. The client writes the commands to memory of its choice, and the miniport
 * executes them there: nothing is translated, patched or split. The memory that commands need is on
 * the device's residency list. A submission additionally lists only the primaries that its commands
 * write. A submission to several contexts gives each of them an independent packet (SUB-26).
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

enum { COMMAND_NULL_RENDERING = 0x1 };

NTSTATUS vmm_command_begin(struct vmm_context *context)
{
	struct vmm_device *device = context->device;

	context->by_address = true;
	context->va.device = device;
	vmm_list_init(&context->va.link);
	if (device->va)
		return STATUS_SUCCESS;
	return vmm_refuse_reason(
		device->adapter->observe, STATUS_NOT_SUPPORTED, device->process->id, device->handle,
		"SUB-23: create context with virtual addresses: the adapter does not support them "
		"(GpuMmuSupported)");
}

static NTSTATUS refuse_command(const struct vmm_context *context,
			       const struct vmm_command_request *r, const char *rule,
			       const char *what)
{
	const struct vmm_device *device = context->device;

	return vmm_refuse_rule(
		device->adapter->observe, STATUS_INVALID_PARAMETER, rule, device->process->id,
		context->handle,
		"submit command on context 0x%08x: %u bytes at 0x%llx, flags 0x%x, %u bytes "
		"of private data (at most %u), %u primaries: %s",
		context->handle, r->length, (unsigned long long)r->commands, r->flags,
		r->private_bytes, context->dma_private_bytes, r->primary_count, what);
}

static NTSTATUS check(const struct vmm_context *context, const struct vmm_command_request *r)
{
	if (!context->by_address)
		return refuse_command(context, r, "SUB-23",
				      "the context uses patching: submit with Render");
	if (r->flags & ~(uint32_t)COMMAND_NULL_RENDERING)
		return refuse_command(context, r, "SUB-23", "reserved flags");
	if (r->private_bytes > context->dma_private_bytes)
		return refuse_command(
			context, r, "SUB-24",
			"more private data than the miniport's DmaBufferPrivateDataSize");
	if (r->primary_count > VMM_PRIMARIES_MAX)
		return refuse_command(context, r, "SUB-26", "more than 16 written primaries");
	return STATUS_SUCCESS;
}

NTSTATUS vmm_sched_check_command_contexts(struct vmm_observe *observe, uint32_t process,
					  uint32_t object, uint32_t count)
{
	if (vmm_likely(count && count <= VMM_BROADCAST_MAX))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(observe, STATUS_INVALID_PARAMETER, "SUB-26", process, object,
			       "submit command to %u contexts refused: must be 1 to %u", count,
			       VMM_BROADCAST_MAX);
}

/*
 * `further`: the further contexts of a broadcast, which do not end during the call; NULL: none.
 * `buffers`: storage for a buffer of each of them.
 */
static NTSTATUS submit(struct vmm_context *context, const struct vmm_broadcast *further,
		       struct vmm_dma **buffers, const struct vmm_command_request *request)
{
	D3DDDI_ALLOCATIONLIST written[VMM_PRIMARIES_MAX]; /* the entries in use are set */
	struct vmm_submission s = {.kind = &vmm_command_kind,
				   .context = context,
				   .command = request,
				   .broadcast = further,
				   .further = buffers,
				   .null_rendering = request->flags & COMMAND_NULL_RENDERING,
				   .command_bytes = request->length,
				   .entries = written,
				   .entry_count = request->primary_count};

	NTSTATUS status = check(context, request);
	for (uint32_t i = 0; further && NT_SUCCESS(status) && i < further->count; i++)
		status = check(further->context[i], request);
	for (uint32_t i = 0; NT_SUCCESS(status) && i < request->primary_count; i++)
		written[i] = (D3DDDI_ALLOCATIONLIST){.hAllocation = request->primaries[i],
						     .WriteOperation = 1};
	return NT_SUCCESS(status) ? vmm_submission_run(&s) : status;
}

VMM_COLD static NTSTATUS submit_to_several(struct vmm_context *context,
					   const struct vmm_broadcast_names *others,
					   const struct vmm_command_request *request)
{
	struct vmm_broadcast further;
	struct vmm_dma *buffers[VMM_BROADCAST_MAX] = {NULL};
	NTSTATUS status = vmm_broadcast_begin(context, others, &further);

	if (NT_SUCCESS(status))
		status = submit(context, &further, buffers, request);
	vmm_broadcast_end(context, &further);
	return status;
}

NTSTATUS vmm_sched_submit_command(struct vmm_context *context,
				  const struct vmm_broadcast_names *others,
				  const struct vmm_command_request *request)
{
	vmm_assert(vmm_context_is_valid(context));
	vmm_assert(others->first == 1);
	return vmm_likely(!others->count) ? submit(context, NULL, NULL, request)
					  : submit_to_several(context, others, request);
}
