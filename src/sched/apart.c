/* SPDX-License-Identifier: MIT */
/*
 * The buffers of a context whose client is in another address space. The client writes into a memory object of the context's
 * own, at any time; each submission copies what it names of it once, before anything is looked at. What is checked, and what the
 * miniport reads, is the copy (vmm_context.user).
 */
#include "sched/sched_private.h"

#include <string.h>

struct vmm_context_apart {
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct vmm_account *account; /* of the process, which outlives its contexts */
	uint64_t charged_bytes;
	uint64_t allocations_at, patches_at; /* the commands are at 0 */
};

static void release(struct vmm_context_apart *apart)
{
	vmm_os_view_release(&apart->view);
	vmm_account_refund(apart->account, apart->charged_bytes);
	vmm_os_memory_destroy(&apart->memory);
	vmm_free(apart);
}

static vmm_status show(struct vmm_os *os, struct vmm_os_viewer *viewer, uint64_t size_bytes,
		       struct vmm_context_apart *apart)
{
	vmm_status status = vmm_os_memory_create(os, "context buffers", size_bytes, &apart->memory);

	if (vmm_ok(status)) {
		vmm_os_memory_set_whole(&apart->memory);
		status = vmm_os_view_reserve_for(os, viewer, size_bytes, &apart->view);
	}
	if (vmm_ok(status))
		status = vmm_os_view_map(&apart->view, 0, &apart->memory, 0, size_bytes);
	return status;
}

vmm_status vmm_context_show(struct vmm_context *context)
{
	struct vmm_process *process = context->device->process;
	const struct vmm_context_buffers *u = &context->user;
	struct vmm_context_apart *apart;

	context->shown = context->user;
	if (vmm_likely(!process->viewer))
		return VMM_OK;
	apart = vmm_calloc(1, sizeof(*apart));
	if (!apart)
		return VMM_NO_MEMORY;
	apart->allocations_at = vmm_align_up(u->command_bytes, VMM_PAGE_SIZE);
	apart->patches_at = apart->allocations_at +
			    vmm_align_up((uint64_t)u->allocation_count * sizeof(*u->allocations),
					 VMM_PAGE_SIZE);
	uint64_t end = apart->patches_at +
		       vmm_align_up((uint64_t)u->patch_count * sizeof(*u->patches), VMM_PAGE_SIZE);
	uint64_t charge = 2 * end; /* and the copy */
	if (!vmm_account_charge(process->account, charge)) {
		vmm_reason(
			process->world->observe, VMM_NO_MEMORY, process->id, 0,
			"buffers of %llu bytes for a context: process %u has as much system memory as it may",
			(unsigned long long)charge, process->id);
		vmm_free(apart);
		return VMM_NO_MEMORY;
	}
	apart->account = process->account;
	apart->charged_bytes = charge;
	vmm_status status = show(process->world->os, process->viewer, end, apart);
	if (!vmm_ok(status)) {
		release(apart);
		return status;
	}
	char *address = apart->view.address;
	context->shown.commands = address;
	context->shown.allocations = (void *)(address + apart->allocations_at);
	context->shown.patches = u->patch_count ? (void *)(address + apart->patches_at) : NULL;
	context->apart = apart;
	return VMM_OK;
}

void vmm_context_hide(struct vmm_context *context)
{
	if (context->apart)
		release(context->apart);
	context->apart = NULL;
}

void vmm_context_fetch_slowly(struct vmm_context *context, const struct vmm_render_request *request)
{
	const struct vmm_context_apart *apart = context->apart;
	const struct vmm_context_buffers *u = &context->user;
	const char *base = apart->memory.base;

	memcpy((char *)u->commands + request->command_offset, base + request->command_offset,
	       request->command_length - request->command_offset);
	memcpy(u->allocations, base + apart->allocations_at,
	       request->allocation_count * sizeof(*u->allocations));
	if (request->patch_count)
		memcpy(u->patches, base + apart->patches_at,
		       request->patch_count * sizeof(*u->patches));
}
