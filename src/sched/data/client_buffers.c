/* SPDX-License-Identifier: MIT */
/*
 * Command buffer and lists of a context whose client is out-of-process. The client writes into a
 * shared memory object of the context, and may do so at any time. Each submission first copies the
 * bytes that it names, once. The checks and the miniport read only the copy (vmm_context.user).
 */
#include "sched/data/data.h"

#include <string.h>

struct vmm_client_buffers {
	struct vmm_os_memory memory;
	struct vmm_os_view view;
	struct vmm_account *account; /* of the process, which outlives its contexts */
	uint64_t charged_bytes;
	uint64_t allocations_at, patches_at; /* byte offsets; the commands are at 0 */
};

static void free_buffers(struct vmm_client_buffers *buffers)
{
	vmm_os_view_release(&buffers->view);
	vmm_account_refund(buffers->account, buffers->charged_bytes);
	vmm_os_memory_destroy(&buffers->memory);
	vmm_free(buffers);
}

static vmm_status map_into_client(struct vmm_os *os, struct vmm_os_viewer *viewer,
				  uint64_t size_bytes, struct vmm_client_buffers *buffers)
{
	vmm_status status =
		vmm_os_memory_create(os, "context buffers", size_bytes, &buffers->memory);

	if (vmm_ok(status)) {
		vmm_os_memory_set_shareable(&buffers->memory);
		status = vmm_os_view_reserve_for(os, viewer, size_bytes, &buffers->view);
	}
	if (vmm_ok(status))
		status = vmm_os_view_map(&buffers->view, 0, &buffers->memory, 0, size_bytes);
	return status;
}

vmm_status vmm_context_map_buffers(struct vmm_context *context)
{
	struct vmm_process *process = context->device->process;
	const struct vmm_context_buffers *u = &context->user;
	struct vmm_client_buffers *buffers;

	context->mapped = context->user;
	if (vmm_likely(!process->viewer))
		return VMM_OK;
	buffers = vmm_calloc(1, sizeof(*buffers));
	if (!buffers)
		return VMM_NO_MEMORY;
	buffers->allocations_at = vmm_align_up(u->command_bytes, VMM_PAGE_SIZE);
	buffers->patches_at = buffers->allocations_at +
			      vmm_align_up((uint64_t)u->allocation_count * sizeof(*u->allocations),
					   VMM_PAGE_SIZE);
	uint64_t end = buffers->patches_at +
		       vmm_align_up((uint64_t)u->patch_count * sizeof(*u->patches), VMM_PAGE_SIZE);
	uint64_t charge = 2 * end; /* the shared memory and the copy */
	if (!vmm_account_charge(process->account, charge)) {
		vmm_reason(
			process->world->observe, VMM_NO_MEMORY, process->id, 0,
			"buffers of %llu bytes for a context: process %u has reached its limit of "
			"system memory",
			(unsigned long long)charge, process->id);
		vmm_free(buffers);
		return VMM_NO_MEMORY;
	}
	buffers->account = process->account;
	buffers->charged_bytes = charge;
	vmm_status status = map_into_client(process->world->os, process->viewer, end, buffers);
	if (!vmm_ok(status)) {
		free_buffers(buffers);
		return status;
	}
	char *address = buffers->view.address;
	context->mapped.commands = address;
	context->mapped.allocations = (void *)(address + buffers->allocations_at);
	context->mapped.patches = u->patch_count ? (void *)(address + buffers->patches_at) : NULL;
	context->client_buffers = buffers;
	return VMM_OK;
}

void vmm_context_unmap_buffers(struct vmm_context *context)
{
	if (context->client_buffers)
		free_buffers(context->client_buffers);
	context->client_buffers = NULL;
}

void vmm_context_copy_buffers_slow(struct vmm_context *context,
				   const struct vmm_render_request *request)
{
	const struct vmm_client_buffers *buffers = context->client_buffers;
	const struct vmm_context_buffers *u = &context->user;
	const char *base = buffers->memory.base;

	vmm_assert_held(&context->device->adapter->submit_lock);
	memcpy((char *)u->commands + request->command_offset, base + request->command_offset,
	       request->command_length - request->command_offset);
	memcpy(u->allocations, base + buffers->allocations_at,
	       request->allocation_count * sizeof(*u->allocations));
	if (request->patch_count)
		memcpy(u->patches, base + buffers->patches_at,
		       request->patch_count * sizeof(*u->patches));
}
