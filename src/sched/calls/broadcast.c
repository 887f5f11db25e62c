/* SPDX-License-Identifier: MIT */
/*
 * Broadcast (DMA-10): one DMA buffer for several contexts of a device. Each context gets an
 * independent submission, with a separate fence and in the order of that context.
 *
 * The buffer belongs to the context of the call, its owner. Each further context gets a copy of it
 * (copies.c). vmm_sched_render_to finds the contexts and keeps them until it returns. So does
 * virtual.c for commands at GPU virtual addresses, whose contexts share no buffer (SUB-26).
 */
#include "sched/data/submission.h"
#include "sched/calls/calls.h"

/* ---- the contexts of a call ---- */

static const char *rule_of(const struct vmm_broadcast_names *names)
{
	return names->first ? "SUB-26" : "DMA-10";
}

static NTSTATUS refuse_broadcast(const struct vmm_context *owner,
				 const struct vmm_broadcast_names *names, uint32_t index,
				 const char *why)
{
	return vmm_refuse_rule(owner->device->adapter->observe, STATUS_INVALID_PARAMETER,
			       rule_of(names), owner->device->process->id, owner->handle,
			       "broadcast on context 0x%08x refused: BroadcastContext[%u] %s",
			       owner->handle, names->first + index, why);
}

/* Finds a context by the handle of the callbacks or of the D3DKMT functions. Process lock held. */
static struct vmm_context *find_context_locked(const struct vmm_device *device,
					       const struct vmm_broadcast_names *names,
					       uint32_t index) VMM_REQUIRES(vmm_process_lock_class)
{
	const struct vmm_list *link;

	vmm_assert_held(&device->process->lock);
	vmm_list_for_each (link, &device->contexts) {
		struct vmm_context *context = vmm_container_of(link, struct vmm_context, link);

		if (names->hazard ? context->hazard == names->hazard[index]
				  : context->handle == names->number[index])
			return context;
	}
	return NULL;
}

static NTSTATUS add_context_locked(const struct vmm_context *owner,
				   const struct vmm_broadcast_names *names, struct vmm_broadcast *b)
	VMM_REQUIRES(vmm_process_lock_class)
{
	struct vmm_context *context = find_context_locked(owner->device, names, b->count);

	vmm_assert_held(&owner->device->process->lock);
	if (!context)
		return refuse_broadcast(owner, names, b->count,
					"is not a live context of the same device");
	if (context == owner)
		return refuse_broadcast(owner, names, b->count,
					"is the context on which the call is made");
	for (uint32_t i = 0; i < b->count; i++)
		if (b->context[i] == context)
			return refuse_broadcast(owner, names, b->count, "is named twice");
	if (owner->dma_segment_set && context->engine != owner->engine)
		return vmm_refuse_reason(
			owner->device->adapter->observe, STATUS_NOT_SUPPORTED,
			owner->device->process->id, owner->handle,
			"DMA-10: broadcast on context 0x%08x to another adapter of its link: not "
			"built for DMA buffers in an aperture (DmaBufferSegmentSet 0x%x)",
			owner->handle, owner->dma_segment_set);
	atomic_fetch_add(&context->broadcast_calls, 1);
	b->context[b->count++] = context;
	return STATUS_SUCCESS;
}

void vmm_broadcast_end(const struct vmm_context *owner, struct vmm_broadcast *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		atomic_fetch_sub(&b->context[i]->broadcast_calls, 1);
	if (b->count)
		vmm_progress_signal(owner->device->adapter);
}

NTSTATUS vmm_broadcast_begin(const struct vmm_context *owner,
			     const struct vmm_broadcast_names *names, struct vmm_broadcast *b)
{
	struct vmm_process *process = owner->device->process;
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert(names->first <= 1 && vmm_context_is_valid(owner));
	b->count = 0;
	if (names->count > VMM_BROADCAST_MAX - names->first)
		return vmm_refuse_rule(
			owner->device->adapter->observe, STATUS_INVALID_PARAMETER, rule_of(names),
			process->id, owner->handle,
			"broadcast on context 0x%08x refused: BroadcastContextCount %u, at most %u",
			owner->handle, names->first + names->count, VMM_BROADCAST_MAX);
	vmm_process_lock(process);
	while (b->count < names->count && NT_SUCCESS(status))
		status = add_context_locked(owner, names, b);
	vmm_process_unlock(process);
	return status;
}

NTSTATUS vmm_sched_render_to(struct vmm_context *context, const struct vmm_broadcast_names *names,
			     struct vmm_render_request *request)
{
	struct vmm_broadcast targets;

	vmm_assert(vmm_context_is_valid(context));
	NTSTATUS status = vmm_broadcast_begin(context, names, &targets);
	if (NT_SUCCESS(status)) {
		request->broadcast = &targets;
		status = vmm_sched_render(context, request);
		request->broadcast = NULL;
	}
	vmm_broadcast_end(context, &targets);
	return status;
}

void vmm_broadcast_await_calls(const struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	atomic_fetch_add(&adapter->progress_waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&context->broadcast_calls) ||
		    vmm_os_wait(adapter->os, &adapter->progress, seen, VMM_OS_FOREVER,
				"a call that broadcasts to a context", 0) == VMM_UNSUCCESSFUL)
			break;
	}
	atomic_fetch_sub(&adapter->progress_waiters, 1);
}

void vmm_broadcast_await_copies(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		if (!atomic_load(&context->shared_buffers))
			return;
		if (!vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			vmm_sched_abandon(adapter);
	}
}
