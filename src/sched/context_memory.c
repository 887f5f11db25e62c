/* SPDX-License-Identifier: MIT */
/*
 * What of context allocations (PRE-11) is scheduling: who may make them, when a packet needs them, and the zero-length packet
 * that takes the GPU off a context before its memory moves (SUB-20). That packet is one of the paging timeline, on the node of the
 * context: paging that comes after it waits for its number, wherever it runs.
 */
#include "sched/sched_private.h"

/* ---- making; no lock held ---- */

void vmm_making_begin(struct vmm_making *making, struct vmm_device *device,
		      const struct vmm_context *context)
{
	struct vmm_adapter *adapter = device->adapter;

	*making = (struct vmm_making){
		.device = device, .context = context, .thread = vmm_os_thread_self(adapter->os)};
	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_push_back(&adapter->sched->making, &making->link);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

void vmm_making_end(struct vmm_making *making)
{
	struct vmm_adapter *adapter = making->device->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_remove(&making->link);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

/* Who else looks at it is its own thread. */
static const struct vmm_making *find_making(struct vmm_sched *sched)
{
	const struct vmm_os_thread *self = vmm_os_thread_self(sched->adapter->os);
	const struct vmm_making *found = NULL;
	const struct vmm_list *link;

	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_for_each (link, &sched->making) {
		const struct vmm_making *making =
			vmm_container_of(link, const struct vmm_making, link);

		if (making->thread == self)
			found = making;
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return found;
}

/* NULL: nothing is wrong. */
static const char *what_is_wrong(const struct vmm_making *making,
				 const DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	bool shared = args->ContextAllocationFlags.SharedAcrossContexts;

	if (!making)
		return "not inside DxgkDdiCreateDevice or DxgkDdiCreateContext of a device or "
		       "context that is not the system's";
	if (args->ContextAllocationFlags.Reserved)
		return "reserved flags are set";
	if (args->hDevice != making->device)
		return "hDevice is not the device that is being made, or whose context is";
	if (shared && args->hContext)
		return "SharedAcrossContexts with an hContext";
	if (!shared && (!args->hContext || args->hContext != making->context))
		return "without SharedAcrossContexts hContext must be the context that is being made";
	return NULL;
}

NTSTATUS vmm_context_memory_create(struct vmm_sched *sched, DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	const struct vmm_making *making = find_making(sched);
	const char *wrong = what_is_wrong(making, args);

	if (vmm_unlikely(!making && sched->hw)) {
		vmm_reason(sched->adapter->observe, STATUS_NOT_SUPPORTED, 0, 0,
			   "PRE-11: DxgkCbCreateContextAllocation: memory of hardware contexts is "
			   "not built");
		return STATUS_NOT_SUPPORTED;
	}
	if (!wrong)
		return vmm_context_allocation_create(making->device, args->hContext, args);
	vmm_finding(sched->adapter->observe, "PRE-11", 0, 0,
		    "DxgkCbCreateContextAllocation: %s (ContextAllocationFlags 0x%x, hDevice %p, "
		    "hContext %p, Size %llu)",
		    wrong, args->ContextAllocationFlags.Value, args->hDevice, args->hContext,
		    (unsigned long long)args->Size);
	return STATUS_INVALID_PARAMETER;
}

NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation)
{
	struct vmm_adapter *adapter = sched->adapter;

	/* DDIs of the scheduler class: it would have to be waited for with the lock that they run under. */
	if (!vmm_os_mutex_held(&adapter->paging_lock))
		return vmm_context_allocation_destroy(adapter, allocation);
	vmm_finding(adapter->observe, "PRE-11", 0, 0,
		    "DxgkCbDestroyContextAllocation of %p inside a DDI that pages or submits",
		    allocation);
	return STATUS_INVALID_DEVICE_REQUEST;
}

/* ---- before a packet runs; paging lock held ---- */

vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	if (vmm_context_memory_is_none(dma))
		return VMM_OK;
	vmm_status status = vmm_context_allocations_gather(context->device, context, preparation);
	vmm_list_for_each (link, &dma->copies) { /* DMA-10 */
		context = vmm_copy_of(link)->context;
		if (status == VMM_OK)
			status = vmm_context_allocations_gather(context->device, context,
								preparation);
	}
	return status;
}

bool vmm_context_memory_is_in_place(const struct vmm_dma *dma)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	if (vmm_context_memory_is_none(dma))
		return true;
	bool all = vmm_context_allocations_are_in_place(context->device, context);
	vmm_list_for_each (link, &dma->copies) {
		context = vmm_copy_of(link)->context;
		all &= vmm_context_allocations_are_in_place(context->device, context);
	}
	return all;
}

/* ---- SUB-20; paging lock held ---- */

static bool is_on(const struct vmm_node *node, const struct vmm_device *device, const void *context)
{
	return node->current && node->current->device == device &&
	       (!context || node->current == context);
}

/* To no context at all: there is nothing to patch, and nothing to run. */
static void switch_node(struct vmm_sched *sched, struct vmm_packet *packet,
			const struct vmm_context *context, uint64_t sequence)
{
	struct vmm_adapter *adapter = sched->adapter;

	*packet = (struct vmm_packet){.paging = true,
				      .node = context->node,
				      .timeline = adapter->paging_timeline,
				      .sequence = sequence,
				      .fence = vmm_fence_next(sched)};
	vmm_list_init(&packet->link);
	packet->submit = (DXGKARG_SUBMITCOMMAND){.hContext = context->kmd_context,
						 .SubmissionFenceId = packet->fence,
						 .NodeOrdinal = context->ordinal,
						 .EngineOrdinal = context->engine};
	packet->submit.Flags.ContextSwitch = 1;
	sched->node[context->node].current = NULL;
	vmm_queue_ready(sched, packet);
}

uint64_t vmm_sched_switch_context(struct vmm_adapter *adapter, const struct vmm_device *device,
				  const void *context)
{
	struct vmm_sched *sched = adapter->sched;
	struct vmm_list taken;
	uint64_t sequence = 0;
	uint32_t count = 0, nodes = 0;
	const struct vmm_context *on[VMM_NODES_MAX];

	if (atomic_load(&adapter->removed)) /* nothing is submitted any more */
		return 0;
	/* While there are no packets others are submitted, so which nodes it is on is said now. */
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (!is_on(&sched->node[n], device, context))
			continue;
		on[n] = sched->node[n].current;
		nodes |= 1u << n;
		count++;
	}
	if (!count || !vmm_paging_packets_take(sched, &taken, count, &sequence))
		return sequence;
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		struct vmm_list *link = taken.next;

		if (!(nodes & 1u << n))
			continue;
		vmm_list_remove(link);
		switch_node(sched, vmm_container_of(link, struct vmm_packet, link), on[n],
			    sequence);
	}
	return sequence;
}

void vmm_context_memory_leave(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_node *node = &adapter->sched->node[context->node];

	if (vmm_likely(!atomic_load(&context->device->has_context_memory)))
		return;
	vmm_paging_lock(adapter);
	if (node->current == context && !vmm_list_empty(&context->device->context_allocations)) {
		vmm_memory_flush_locked(adapter);
		uint64_t sequence = vmm_sched_switch_context(adapter, context->device, context);
		/* SUB-29: the miniport has packets of the context no more. Removed, or reset: it has none. */
		(void)!vmm_ok(vmm_sched_memory_engine.wait_locked(adapter, adapter->paging_timeline,
								  sequence, VIDMM_WAIT_DESTROY));
	}
	if (node->current == context)
		node->current = NULL;
	vmm_paging_unlock(adapter);
}
