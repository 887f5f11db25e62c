/* SPDX-License-Identifier: MIT */
/*
 * pfnRenderCb: checks of the request, and the submission (submission.c).
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

enum {
	RENDER_RESIZE_FLAGS = 0x7,
	RENDER_NULL = 0x8,
};

static NTSTATUS check_request(const struct vmm_context *context, const struct vmm_render_request *r)
{
	const struct vmm_context_buffers *u = &context->user;

	/* NULL for contexts whose commands are at GPU virtual addresses (SUB-23) */
	if (r->allocation_count <= u->allocation_count && r->patch_count <= u->patch_count &&
	    r->command_offset <= r->command_length && r->command_length <= u->command_bytes &&
	    u->commands && !(r->flags & ~(uint32_t)(RENDER_RESIZE_FLAGS | RENDER_NULL)))
		return STATUS_SUCCESS;
	return vmm_refuse_rule(
		context->device->adapter->observe, STATUS_INVALID_PARAMETER, "DMA-08",
		context->device->process->id, context->handle,
		"render on context 0x%08x: %u allocations (list size %u), %u patch locations "
		"(list size %u), commands [%u, %u) (buffer of %u bytes), flags 0x%x",
		context->handle, r->allocation_count, u->allocation_count, r->patch_count,
		u->patch_count, r->command_offset, r->command_length, u->command_bytes, r->flags);
}

NTSTATUS vmm_sched_render(struct vmm_context *context, struct vmm_render_request *request)
{
	struct vmm_submission s = {
		.kind = request->broadcast ? &vmm_broadcast_kind : &vmm_render_kind,
		.context = context,
		.request = request,
		.broadcast = request->broadcast,
		.null_rendering = request->flags & RENDER_NULL,
		.command_bytes = request->command_length - request->command_offset,
		.entries = context->user.allocations,
		.entry_count = request->allocation_count};

	vmm_assert(vmm_context_is_valid(context));
	NTSTATUS status = check_request(context, request);
	if (NT_SUCCESS(status))
		status = vmm_submission_run(&s);
	if (NT_SUCCESS(status))
		request->queued = s.queued;
	return status;
}
