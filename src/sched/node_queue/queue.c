/* SPDX-License-Identifier: MIT */
/*
 * Node queues: prepared packets are submitted to the hardware. order.c picks the next one; retire.c
 * retires them when the miniport reports their completion.
 *
 * SubmitCommand is called only under the paging lock: the DDI serializes the scheduler class. A
 * thread that makes a packet submittable, at DISPATCH_LEVEL or in a client's call, tries the lock.
 * If it is taken, its holder looks again after it has released the lock (vmm_sched_kick). So no
 * packet is left behind, and no thread waits for the lock at raised IRQL.
 */
#include "sched/node_queue/node_queue.h"

static bool can_submit(const struct vmm_sched *sched, const struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_unlikely(node->preempt.fence || node->preempt.wanted)) /* PRE-02 */
		return false;
	if (node->hardware_count >= sched->caps->node_depth) /* SUB-16 */
		return false;
	return sched->hardware_total < sched->caps->dma_queue_entries; /* SUB-15 */
}

/*
 * Retires the canceled packets at the head of one context's ready queue, once its running packets
 * have completed. Returns their number.
 */
static uint32_t retire_cancelled_of(struct vmm_sched *sched, struct vmm_node *node,
				    struct vmm_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t count = 0;
	bool last = context->turn.running;

	vmm_assert_held(&sched->adapter->state_lock);
	/* After its last packet has retired, the context may be freed and must not be accessed. */
	while (!last) {
		struct vmm_packet *packet = vmm_order_first(context);

		if (!packet->cancelled)
			break;
		vmm_order_take_locked(sched, packet);
		last = vmm_list_empty(&context->turn.ready);
		packet->cancelled = false;
		node->cancelled--;
		VMM_COUNT_PACKETS_LOCKED(sched->ready_count, -1u);
		vmm_packet_retired_locked(sched, packet);
		count++;
	}
	return count;
}

/* State lock held. */
VMM_COLD static bool retire_cancelled(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *link, *next;
	uint32_t count = 0;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_list_for_each_safe (link, next, &node->contexts)
		count += retire_cancelled_of(sched, node,
					     vmm_container_of(link, struct vmm_context, turn.link));
	return count;
}

static void give_to_hardware(struct vmm_sched *sched, struct vmm_node *node,
			     struct vmm_packet *packet) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	vmm_order_take_locked(sched, packet);
	vmm_list_push_back(&node->hardware, &packet->link);
	if (!node->hardware_count++)
		vmm_watch_restart_locked(sched, node);
	sched->hardware_total++;
	node->last_submitted = packet->fence;
	if (!vmm_fence_reached(node->newest, packet->fence))
		node->newest = packet->fence;
	if (vmm_unlikely(packet->synchronous))
		sched->newest_synchronous = packet->sequence;
	VMM_COUNT_PACKETS_LOCKED(sched->ready_count, -1u);
}

/*
 * Remembers that the node's next packet needs a new fence id. A thread at PASSIVE_LEVEL, where
 * patching is allowed, will do that. State lock held.
 */
VMM_COLD static void note_stale(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (node->stale)
		return;
	node->stale = true;
	atomic_fetch_add(&sched->chores, 1);
}

enum take_result { TAKEN, STALE, NOTHING, URGENT };

/*
 * Takes the next packet of the node if it can be submitted. Returns STALE if the packet needs a new
 * fence id first, URGENT if the running packet must be preempted for it.
 */
static enum take_result take_submittable_locked(struct vmm_sched *sched, uint32_t index,
						bool *moved, struct vmm_packet **packet)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_packet *stale = NULL;
	enum take_result result = NOTHING;
	bool urgent = false;

	vmm_assert_held(&sched->adapter->state_lock);
	*packet = NULL;
	if (vmm_unlikely(node->cancelled))
		*moved |= retire_cancelled(sched, node);
	bool idle = vmm_list_empty(&node->contexts) && vmm_list_empty(&node->paging),
	     may_submit = !idle && can_submit(sched, node);
	if (may_submit || vmm_unlikely(!idle && sched->caps->preemption_aware))
		*packet = vmm_order_next_locked(sched, node, &urgent, &stale);
	/* SCH-05: the packet does not wait until the running packet completes. */
	if (*packet && urgent) {
		vmm_preempt_want_locked(sched, node);
		result = URGENT;
	} else if (*packet && may_submit) {
		result = TAKEN;
	}
	if (result == TAKEN && vmm_unlikely(stale)) {
		if (vmm_port_at_passive(sched->adapter->port)) {
			*packet = stale;
			result = STALE;
		} else {
			note_stale(sched, node);
			result = stale == *packet ? NOTHING : TAKEN;
		}
	}
	if (result == TAKEN)
		give_to_hardware(sched, node, *packet);
	return result;
}

static enum take_result take_submittable(struct vmm_sched *sched, uint32_t index, bool *moved,
					 struct vmm_packet **packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	enum take_result result = take_submittable_locked(sched, index, moved, packet);
	vmm_state_unlock(sched->adapter);
	return result;
}

/*
 * SUB-23: the miniport refused the packet. Its device is in error. The packet counts as complete
 * once all packets before it on the node are.
 */
VMM_COLD static void fail_refused_packet(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	uint32_t process = 0, handle = 0;

	vmm_state_lock(adapter);
	struct vmm_packet *packet = vmm_on_hardware(node, fence);
	if (packet) {
		struct vmm_context *context = vmm_dma_of(packet)->context;

		process = context->device->process->id;
		handle = context->handle;
		vmm_device_fail(context->device, VMM_DEVICE_FAULT);
		packet->refused = true;
		if (node->hardware.next == &packet->link)
			(void)vmm_queue_retire_locked(sched, node, fence);
	}
	vmm_state_unlock(adapter);
	vmm_reason(
		adapter->observe, STATUS_INVALID_PARAMETER, process, handle,
		"SUB-23: DxgkDdiSubmitCommandVirtual refused fence 0x%08x of context 0x%08x: the "
		"device is in error",
		fence, handle);
	vmm_progress_signal(adapter);
}

static void submit_by_address(struct vmm_sched *sched, uint32_t index,
			      const DXGKARG_SUBMITCOMMAND *s) VMM_REQUIRES(vmm_paging_lock_class)
{
	const DXGKARG_SUBMITCOMMANDVIRTUAL args = {
		.hContext = s->hContext,
		.DmaBufferVirtualAddress = s->DmaBufferVirtualAddress,
		.DmaBufferSize = s->DmaBufferSize,
		.pDmaBufferPrivateData = s->pDmaBufferPrivateData,
		.DmaBufferPrivateDataSize = s->DmaBufferPrivateDataSize,
		.DmaBufferUmdPrivateDataSize = s->DmaBufferPrivateDataSubmissionEndOffset,
		.SubmissionFenceId = s->SubmissionFenceId,
		.VidPnSourceId = s->VidPnSourceId,
		.FlipInterval = s->FlipInterval,
		.Flags = s->Flags,
		.EngineOrdinal = s->EngineOrdinal,
		.NodeOrdinal = s->NodeOrdinal};

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_port_submit_virtual(sched->adapter->port, &args) == STATUS_INVALID_PARAMETER)
		fail_refused_packet(sched, index, args.SubmissionFenceId);
}

static void submit(struct vmm_sched *sched, uint32_t index, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	const DXGKARG_SUBMITCOMMAND *args = &packet->submit;
	uint32_t process = 0, handle = 0;
	bool by_address = false;

	sched->node[index].current = NULL;
	if (!packet->paging) {
		const struct vmm_dma *dma = vmm_dma_of((struct vmm_packet *)packet);
		struct vmm_context *context = dma->context;

		if (vmm_unlikely(!vmm_list_empty(&context->device->context_allocations)))
			sched->node[index].current = context; /* SUB-20 */
		process = context->device->process->id;
		handle = context->handle;
		by_address = dma->kind->by_address;
	}
	vmm_event(sched->adapter->observe, VIDMM_EVENT_QUEUE, process, handle, packet->paging,
		  packet->fence, index, args->DmaBufferSubmissionStartOffset,
		  args->DmaBufferSubmissionEndOffset);
	if (vmm_unlikely(sched->adapter->verify) && !packet->paging)
		vmm_broadcast_verify(sched, vmm_dma_of((struct vmm_packet *)packet), args);
	vmm_watch_submitted(sched);
	/*
	 * The packet may retire and be reused as soon as the miniport has it, so the miniport gets
	 * a copy.
	 */
	if (vmm_unlikely(by_address)) {
		submit_by_address(sched, index, args);
	} else {
		const DXGKARG_SUBMITCOMMAND copy = *args;

		(void)vmm_port_submit(sched->adapter->port, &copy);
	}
}

static bool is_stopped(const struct vmm_adapter *adapter)
{
	return atomic_load(&adapter->removed) || atomic_load(&adapter->recovering);
}

void vmm_queue_prepared(struct vmm_sched *sched, struct vmm_dma *dma)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_packet *packet = &dma->packet;
	uint32_t index = packet->node;
	enum take_result result = NOTHING;
	bool moved = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_list_remove(&packet->link);
	VMM_COUNT_PACKETS_LOCKED(sched->prepare_count, -1u);
	vmm_order_ready_locked(sched, packet);
	bool alone = !atomic_load_explicit(&sched->ready_count, memory_order_relaxed);
	VMM_COUNT_PACKETS_LOCKED(sched->ready_count, 1u);
	if (vmm_unlikely(dma->users)) { /* DMA-10 */
		vmm_broadcast_ready_locked(sched, dma);
		alone = false;
	}
	/*
	 * The only ready packet needs no choice. In all other cases vmm_queue_drain_locked submits.
	 */
	if (alone && !packet->cancelled && !sched->caps->preemption_aware && !is_stopped(adapter))
		result = take_submittable_locked(sched, index, &moved, &packet);
	vmm_state_unlock(adapter);
	if (result == TAKEN)
		submit(sched, index, packet);
}

void vmm_queue_drain_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool moved = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_unlikely(atomic_load(&sched->chores)))
		vmm_chores_locked(sched);
	/*
	 * A thread that makes a packet ready without holding the paging lock raises ready_count
	 * before its kick.
	 */
	for (uint32_t n = 0;
	     n < adapter->node_count && atomic_load(&sched->ready_count) && !is_stopped(adapter);
	     n++) {
		struct vmm_packet *packet;
		enum take_result result = NOTHING;

		while (atomic_load(&sched->ready_count) &&
		       (result = take_submittable(sched, n, &moved, &packet)) <= STALE) {
			if (result == TAKEN)
				submit(sched, n, packet);
			else if (!vmm_packet_renew(sched, packet))
				break;
			if (is_stopped(adapter))
				return;
		}
		if (vmm_unlikely(result == URGENT))
			vmm_preempt_request(sched, n);
	}
	bool left =
		vmm_unlikely(atomic_load(&sched->chores)) && !vmm_port_at_passive(adapter->port);

	if (left)
		vmm_worker_wake(sched);
	vmm_steps_poll(sched); /* waits at the head (SYN-27), and canceled packets */
	/*
	 * The worker may be waiting for the GPU, for the first packet to prepare. The signal makes
	 * it scan the queues again and do the remaining work. An operation of a paging queue, or a
	 * hardware context, may wait for the buffer of a canceled packet.
	 */
	if (moved || left)
		vmm_progress_signal(adapter);
	if (vmm_unlikely(moved) && (atomic_load(&adapter->paging_work) || sched->hw))
		vmm_worker_wake(sched);
}

static VMM_NOINLINE void kick(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	/*
	 * The trylock of one thread races with the release by another. A thread that finds the
	 * lock taken has raised `kicks` before. The holder reads `kicks` after releasing the lock,
	 * with a read-modify-write operation, which orders both. So the holder sees the new count,
	 * or the other thread sees the lock free.
	 */
	for (;;) {
		uint32_t seen = atomic_load(&sched->kicks);

		if ((!atomic_load(&sched->ready_count) && !atomic_load(&sched->chores)) ||
		    atomic_load(&adapter->recovering) || !vmm_paging_trylock(adapter))
			return;
		vmm_queue_drain_locked(sched);
		vmm_paging_unlock(adapter);
		if (atomic_fetch_add(&sched->kicks, 0) == seen)
			return;
	}
}

void vmm_sched_hand_over(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	/* Orders the caller's unlock before the look, as in kick(). */
	(void)atomic_fetch_add(&sched->kicks, 0);
	if (vmm_likely(!atomic_load(&sched->ready_count) && !atomic_load(&sched->chores)))
		return;
	atomic_store(&sched->handed_over, true);
	vmm_worker_wake(sched);
	/*
	 * The worker may wait for the submit lock. A thread that waits for the GPU with that lock
	 * held feeds the GPU at each progress.
	 */
	vmm_progress_signal(adapter);
}

void vmm_sched_kick(struct vmm_adapter *adapter)
{
	const struct vmm_sched *sched = adapter->sched;

	if (vmm_unlikely(atomic_load(&sched->ready_count) || atomic_load(&sched->chores)))
		kick(adapter);
}
