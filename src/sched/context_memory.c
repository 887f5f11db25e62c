/* SPDX-License-Identifier: MIT */
/*
 * The scheduling part of context allocations (PRE-11): when a miniport may create them, when a
 * packet needs them, and the zero-length packet that switches a node off a context before the
 * context's memory moves (SUB-20). That packet has a number of the paging timeline and runs on the
 * node of the context. Later paging operations wait for that number, on whatever node they run.
 */
#include "sched/sched_private.h"

/* ---- creation; no lock held ---- */

void vmm_ddi_creation_begin(struct vmm_ddi_creation *creation, struct vmm_device *device,
			    const struct vmm_context *context)
{
	struct vmm_adapter *adapter = device->adapter;

	*creation = (struct vmm_ddi_creation){
		.device = device, .context = context, .thread = vmm_os_thread_self(adapter->os)};
	vmm_state_lock(adapter);
	vmm_list_push_back(&adapter->sched->ddi_creations, &creation->link);
	vmm_state_unlock(adapter);
}

void vmm_ddi_creation_end(struct vmm_ddi_creation *creation)
{
	struct vmm_adapter *adapter = creation->device->adapter;

	vmm_state_lock(adapter);
	vmm_list_remove(&creation->link);
	vmm_state_unlock(adapter);
}

/*
 * Returns the creation call in progress on this thread. Only this thread ends it, so it stays valid
 * without the lock.
 */
static const struct vmm_ddi_creation *find_creation(struct vmm_sched *sched)
{
	const struct vmm_os_thread *self = vmm_os_thread_self(sched->adapter->os);
	const struct vmm_ddi_creation *found = NULL;
	const struct vmm_list *link;

	vmm_state_lock(sched->adapter);
	vmm_list_for_each (link, &sched->ddi_creations) {
		const struct vmm_ddi_creation *creation =
			vmm_container_of(link, const struct vmm_ddi_creation, link);

		if (creation->thread == self)
			found = creation;
	}
	vmm_state_unlock(sched->adapter);
	return found;
}

/* Returns why the request is refused; NULL: it is valid. */
static const char *refusal(const struct vmm_ddi_creation *creation,
			   const DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	bool shared = args->ContextAllocationFlags.SharedAcrossContexts;

	if (!creation)
		return "must be called inside DxgkDdiCreateDevice or DxgkDdiCreateContext of a "
		       "client's device or context";
	if (args->ContextAllocationFlags.Reserved)
		return "reserved flags are set";
	if (args->hDevice != creation->device)
		return "hDevice must be the device that is being created, or the device of the "
		       "context that is";
	if (shared && args->hContext)
		return "with SharedAcrossContexts hContext must be NULL";
	if (!shared && (!args->hContext || args->hContext != creation->context))
		return "without SharedAcrossContexts hContext must be the context that is being "
		       "created";
	return NULL;
}

NTSTATUS vmm_context_memory_create(struct vmm_sched *sched, DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	const struct vmm_ddi_creation *creation = find_creation(sched);
	const char *wrong = refusal(creation, args);

	if (vmm_unlikely(!creation && sched->hw))
		return vmm_refuse_reason(
			sched->adapter->observe, STATUS_NOT_SUPPORTED, 0, 0,
			"PRE-11: DxgkCbCreateContextAllocation: memory of hardware contexts is "
			"not built");
	if (!wrong)
		return vmm_context_allocation_create(creation->device, args->hContext, args);
	return vmm_refuse_rule(
		sched->adapter->observe, STATUS_INVALID_PARAMETER, "PRE-11", 0, 0,
		"DxgkCbCreateContextAllocation: %s (ContextAllocationFlags 0x%x, hDevice %p, "
		"hContext %p, Size %llu)",
		wrong, args->ContextAllocationFlags.Value, args->hDevice, args->hContext,
		(unsigned long long)args->Size);
}

NTSTATUS vmm_context_memory_destroy(struct vmm_sched *sched, HANDLE allocation)
{
	struct vmm_adapter *adapter = sched->adapter;

	/*
	 * A DDI of the scheduler class runs under the paging lock, which a wait for the GPU here
	 * would keep.
	 */
	if (!vmm_os_mutex_held(&adapter->paging_lock))
		return vmm_context_allocation_destroy(adapter, allocation);
	return vmm_refuse_rule(
		adapter->observe, STATUS_INVALID_DEVICE_REQUEST, "PRE-11", 0, 0,
		"DxgkCbDestroyContextAllocation of %p inside a DDI that pages or submits: it "
		"must be called outside of them",
		allocation);
}

/* ---- before a packet runs; paging lock held ---- */

vmm_status vmm_context_memory_gather(struct vmm_dma *dma, uint64_t preparation)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	if (vmm_context_memory_is_none(dma))
		return VMM_OK;
	vmm_status status =
		vmm_context_allocations_make_resident(context->device, context, preparation);
	vmm_list_for_each (link, &dma->copies) { /* DMA-10 */
		context = vmm_copy_of(link)->context;
		if (status == VMM_OK)
			status = vmm_context_allocations_make_resident(context->device, context,
								       preparation);
	}
	return status;
}

bool vmm_context_memory_is_in_place(const struct vmm_dma *dma)
{
	const struct vmm_context *context = dma->context;
	struct vmm_list *link;

	vmm_assert_held(&dma->context->device->adapter->paging_lock);
	if (vmm_context_memory_is_none(dma))
		return true;
	bool all = vmm_context_allocations_are_resident(context->device, context);
	vmm_list_for_each (link, &dma->copies) {
		context = vmm_copy_of(link)->context;
		all &= vmm_context_allocations_are_resident(context->device, context);
	}
	return all;
}

/* ---- SUB-20; paging lock held ---- */

static bool is_on(const struct vmm_node *node, const struct vmm_device *device, const void *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&device->adapter->paging_lock);
	return node->current && node->current->device == device &&
	       (!context || node->current == context);
}

/*
 * Queues the switch away from the context, to none. The packet has nothing to patch and nothing to
 * run.
 */
static void switch_node(struct vmm_sched *sched, struct vmm_packet *packet,
			const struct vmm_context *context, uint64_t sequence)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
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

	vmm_assert_held(&adapter->paging_lock);
	if (atomic_load(&adapter->removed)) /* nothing is submitted any more */
		return 0;
	/*
	 * vmm_paging_packets_take may submit packets while it waits, so the nodes are determined
	 * first.
	 */
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
		/*
		 * SUB-29: wait until the miniport has no packet of the context. The wait fails on
		 * removal or reset, when it has none either.
		 */
		(void)!vmm_ok(vmm_sched_memory_engine.wait_locked(adapter, adapter->paging_timeline,
								  sequence, VIDMM_WAIT_DESTROY));
	}
	if (node->current == context)
		node->current = NULL;
	vmm_paging_commit(adapter);
}
