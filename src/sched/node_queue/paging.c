/* SPDX-License-Identifier: MIT */
/*
 * Packets of the paging timeline: those that the memory manager submits (struct vmm_memory_engine),
 * and the zero-length packet that switches a node off a context before the context's memory moves
 * (SUB-20). That packet has a number of the paging timeline and runs on the node of the context.
 * Later paging operations wait for that number, on whatever node they run.
 */
#include "sched/node_queue/node_queue.h"

/*
 * Waits for that packet and all earlier prepared packets of the timeline, of any context. The
 * caller holds the paging lock, so no other thread can submit: this one does that while it waits
 * (queue.c).
 */
static vmm_status wait_locked(struct vmm_adapter *adapter, uint32_t timeline, uint64_t sequence,
			      uint32_t reason) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	for (;;) {
		uint32_t seen = atomic_load(&adapter->progress);

		/*
		 * The reset of the adapter needs the lock, and the packets will not complete by
		 * themselves.
		 */
		if (vmm_unlikely(atomic_load(&adapter->recovering)))
			return VMM_DEVICE_REMOVED;
		vmm_queue_drain_locked(adapter->sched);
		if (vmm_timeline_quiet(adapter, timeline, sequence, true))
			return VMM_OK;
		vmm_status status = vmm_wait_progress(adapter, seen, reason);
		if (!vmm_ok(status))
			return status;
	}
}

/*
 * Takes the next number of the paging timeline and a packet for each of its parts. Returns false if
 * not enough packets are free now.
 */
static bool try_packets(struct vmm_sched *sched, struct vmm_list *taken, uint32_t count,
			uint64_t *sequence) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_timeline *timeline = &sched->adapter->timeline[sched->adapter->paging_timeline];
	uint32_t had = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	uint64_t next = atomic_load_explicit(&timeline->queued, memory_order_relaxed) + 1;
	bool open = next - atomic_load(&timeline->completed) < VMM_PAGING_PACKETS;

	while (open && had < count && !vmm_list_empty(&sched->free_paging)) {
		struct vmm_list *link = sched->free_paging.next;

		vmm_list_remove(link);
		vmm_list_push_back(taken, link);
		had++;
	}
	if (had == count) {
		sched->paging_parts[next % VMM_PAGING_PACKETS] = (uint8_t)count;
		atomic_store_explicit(&timeline->queued, next, memory_order_relaxed);
		*sequence = next;
	}
	while (had < count && !vmm_list_empty(taken)) {
		struct vmm_list *link = taken->next;

		vmm_list_remove(link);
		vmm_list_push_back(&sched->free_paging, link);
	}
	vmm_state_unlock(sched->adapter);
	return had == count;
}

static void submit_part(struct vmm_sched *sched, struct vmm_packet *packet, uint64_t sequence,
			const struct vmm_paging_portion *portion)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	*packet = (struct vmm_packet){
		.paging = true,
		.synchronous = portion->synchronous,
		.node = vmm_paging_node_of(adapter, portion->physical),
		.timeline = adapter->paging_timeline,
		.sequence = sequence,
		.paging_needed = portion->after,
		.fence = vmm_fence_next(sched),
	};
	vmm_list_init(&packet->link);
	packet->submit = (DXGKARG_SUBMITCOMMAND){
		.hContext = adapter->paging_context[portion->physical],
		.DmaBufferSegmentId = portion->segment,
		.DmaBufferPhysicalAddress.QuadPart = (LONGLONG)portion->address,
		.DmaBufferSize = portion->size_bytes,
		.DmaBufferSubmissionStartOffset = portion->start,
		.DmaBufferSubmissionEndOffset = portion->end,
		.pDmaBufferPrivateData = portion->private_data,
		.DmaBufferPrivateDataSize = portion->private_bytes,
		.DmaBufferPrivateDataSubmissionStartOffset = portion->private_start,
		.DmaBufferPrivateDataSubmissionEndOffset = portion->private_end,
		.SubmissionFenceId = packet->fence,
		.NodeOrdinal = adapter->paging_node,
		.EngineOrdinal = portion->physical,
	};
	packet->submit.Flags.Paging = 1;
	/*
	 * PAT-17, PAG-33: patched without lists. After a failure, which is fatal, the adapter is
	 * dead.
	 */
	DXGKARG_PATCH patch = vmm_patch_of(&packet->submit, portion->cpu);
	(void)!vmm_ok(vmm_port_patch(adapter->port, &patch));
	vmm_queue_ready(sched, packet);
}

/*
 * Takes `count` packets and the next number of the paging timeline for them. Waits while none is
 * free. Returns false during the adapter's reset: *sequence is then a number without packets.
 */
static bool take_packets(struct vmm_sched *sched, struct vmm_list *taken, uint32_t count,
			 uint64_t *sequence) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[adapter->paging_timeline];

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_init(taken);
	while (!try_packets(sched, taken, count, sequence)) {
		uint64_t oldest = atomic_load(&timeline->completed) + 1;

		if (vmm_ok(wait_locked(adapter, adapter->paging_timeline, oldest,
				       VIDMM_WAIT_PAGING_BUFFER)))
			continue;
		/* The reset drops this packet like those in flight. */
		if (atomic_load(&adapter->recovering)) {
			*sequence = atomic_fetch_add(&timeline->queued, 1) + 1;
			return false;
		}
		vmm_sched_abandon_locked(adapter);
	}
	return true;
}

static uint64_t submit_paging(struct vmm_adapter *adapter,
			      const struct vmm_paging_portion *portions, uint32_t count)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_sched *sched = adapter->sched;
	struct vmm_list taken;
	uint64_t sequence = 0;

	vmm_assert_held(&adapter->paging_lock);
	if (!take_packets(sched, &taken, count, &sequence))
		return sequence;
	for (uint32_t i = 0; i < count; i++) {
		struct vmm_list *link = taken.next;

		vmm_list_remove(link);
		submit_part(sched, vmm_container_of(link, struct vmm_packet, link), sequence,
			    &portions[i]);
	}
	return sequence;
}

/* ---- SUB-20 ---- */

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

static uint64_t switch_context(struct vmm_adapter *adapter, const struct vmm_device *device,
			       const void *context) VMM_REQUIRES(vmm_paging_lock_class)
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
	 * take_packets may submit packets while it waits, so the nodes are determined
	 * first.
	 */
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (!is_on(&sched->node[n], device, context))
			continue;
		on[n] = sched->node[n].current;
		nodes |= 1u << n;
		count++;
	}
	if (!count || !take_packets(sched, &taken, count, &sequence))
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
		uint64_t sequence = switch_context(adapter, context->device, context);
		/*
		 * SUB-29: wait until the miniport has no packet of the context. The wait fails on
		 * removal or reset, when it has none either.
		 */
		(void)!vmm_ok(wait_locked(adapter, adapter->paging_timeline, sequence,
					  VIDMM_WAIT_DESTROY));
	}
	if (node->current == context)
		node->current = NULL;
	vmm_paging_commit(adapter);
}

/* ---- for the memory manager ---- */

static void wake(struct vmm_adapter *adapter)
{
	vmm_worker_wake(adapter->sched);
}

static bool pins_buffers(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&adapter->paging_lock);
	return vmm_dma_another_is_pinned(adapter, NULL);
}

const struct vmm_memory_engine vmm_sched_memory_engine = {
	.submit_paging = submit_paging,
	.wait_locked = wait_locked,
	.switch_context = switch_context,
	.kick = vmm_sched_kick,
	.hand_over = vmm_sched_hand_over,
	.wake = wake,
	.unmap_buffers = vmm_dma_unmap_unpinned,
	.pins_buffers = pins_buffers,
};
