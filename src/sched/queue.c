/* SPDX-License-Identifier: MIT */
/*
 * Node queues: prepared packets are submitted to the hardware (order.c picks the next one) and
 * retired when the miniport reports their completion.
 *
 * SubmitCommand is called only under the paging lock: the DDI serializes the scheduler class. A
 * thread that makes a packet submittable, at DISPATCH_LEVEL or in a client's call, tries the lock.
 * If it is taken, its holder looks again after it has released the lock (vmm_sched_kick). So no
 * packet is left behind, and no thread waits for the lock at raised IRQL.
 */
#include "sched/sched_private.h"

uint32_t vmm_fence_next(struct vmm_sched *sched)
{
	uint32_t fence = sched->next_fence++;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (fence == 0) /* SUB-01: id 0 is never issued */
		fence = sched->next_fence++;
	return fence;
}

void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	vmm_order_ready_locked(sched, packet);
	atomic_fetch_add(&sched->ready_count, 1);
	vmm_state_unlock(adapter);
}

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
 * Retires the cancelled packets at the head of one context's ready queue, once its running packets
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
		atomic_fetch_sub(&sched->ready_count, 1);
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
	atomic_fetch_sub(&sched->ready_count, 1);
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
 * Gives the packet a new fence id. Returns false if its device is lost: then the packet is about to
 * be cancelled (TDR-12).
 */
VMM_COLD static bool renew(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_device_lost(vmm_dma_of(packet)->context->device))
		return false;
	vmm_prepare_renew(sched, packet);
	return true;
}

void vmm_queue_renew_stale(struct vmm_sched *sched, struct vmm_node *node)
{
	struct vmm_packet *stale = NULL;
	bool urgent = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(sched->adapter);
	if (node->stale) {
		node->stale = false;
		atomic_fetch_sub(&sched->chores, 1);
		(void)vmm_order_next_locked(sched, node, &urgent, &stale);
	}
	vmm_state_unlock(sched->adapter);
	if (stale)
		(void)renew(sched, stale);
}

static struct vmm_packet *on_hardware(const struct vmm_node *node, uint32_t fence)
{
	const struct vmm_list *link;

	vmm_list_for_each (link, &node->hardware) {
		struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		if (packet->fence == fence)
			return packet;
	}
	return NULL;
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
	struct vmm_packet *packet = on_hardware(node, fence);
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
		.Flags = s->Flags,
		.EngineOrdinal = s->EngineOrdinal,
		.NodeOrdinal = s->NodeOrdinal};

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_port_submit_virtual(sched->adapter->port, &args) == STATUS_INVALID_PARAMETER)
		fail_refused_packet(sched, index, s->SubmissionFenceId);
}

static void submit(struct vmm_sched *sched, uint32_t index, const struct vmm_packet *packet)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&sched->adapter->paging_lock);
	/* The packet may retire and be reused as soon as the miniport has it. */
	DXGKARG_SUBMITCOMMAND args = packet->submit;
	uint32_t process = 0, handle = 0;
	bool by_address = false;

	sched->node[index].current = NULL;
	if (!packet->paging) {
		struct vmm_context *context = vmm_dma_of((struct vmm_packet *)packet)->context;

		if (vmm_unlikely(!vmm_list_empty(&context->device->context_allocations)))
			sched->node[index].current = context; /* SUB-20 */
		process = context->device->process->id;
		handle = context->handle;
		by_address = context->by_address;
	}
	vmm_event(sched->adapter->observe, VIDMM_EVENT_QUEUE, process, handle, packet->paging,
		  packet->fence, index, args.DmaBufferSubmissionStartOffset,
		  args.DmaBufferSubmissionEndOffset);
	if (vmm_unlikely(sched->adapter->verify) && !packet->paging)
		vmm_broadcast_verify(sched, vmm_dma_of((struct vmm_packet *)packet), &args);
	vmm_watch_submitted(sched);
	if (vmm_unlikely(by_address))
		submit_by_address(sched, index, &args);
	else
		(void)vmm_port_submit(sched->adapter->port, &args);
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
	atomic_fetch_sub(&sched->prepare_count, 1);
	vmm_order_ready_locked(sched, packet);
	bool alone = !atomic_fetch_add(&sched->ready_count, 1);
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
		vmm_preempt_chores_locked(sched);
	for (uint32_t n = 0; n < adapter->node_count && !is_stopped(adapter); n++) {
		struct vmm_packet *packet;
		enum take_result result = NOTHING;

		/*
		 * A thread that makes a packet ready without holding the paging lock raises
		 * ready_count before its kick.
		 */
		while (atomic_load(&sched->ready_count) &&
		       (result = take_submittable(sched, n, &moved, &packet)) <= STALE) {
			if (result == TAKEN)
				submit(sched, n, packet);
			else if (!renew(sched, packet))
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
	vmm_steps_poll(sched); /* waits at the head (SYN-27), and cancelled packets */
	/*
	 * The worker may be waiting for the GPU, for the first packet to prepare. The signal makes
	 * it scan the queues again and do the remaining work.
	 */
	if (moved || left)
		vmm_progress_signal(adapter);
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

/*
 * A number of the paging timeline is complete when its packets are complete on every physical
 * adapter and every number before it is complete.
 */
static void retire_paging(struct vmm_sched *sched, struct vmm_packet *packet)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_timeline *timeline = &sched->adapter->timeline[packet->timeline];
	uint64_t completed = atomic_load_explicit(&timeline->completed, memory_order_relaxed);
	uint64_t queued = atomic_load_explicit(&timeline->queued, memory_order_relaxed);

	vmm_assert_held(&sched->adapter->state_lock);
	sched->paging_parts[packet->sequence % VMM_PAGING_PACKETS]--;
	vmm_list_push_back(&sched->free_paging, &packet->link);
	while (completed < queued && !sched->paging_parts[(completed + 1) % VMM_PAGING_PACKETS])
		completed++;
	atomic_store_explicit(&timeline->completed, completed, memory_order_release);
}

void vmm_packet_retired_locked(struct vmm_sched *sched, struct vmm_packet *packet)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_unlikely(packet->portion)) {
		/* SPL-07: the last portion completes the buffer */
		vmm_dma_buffer(vmm_dma_of(packet))->parts_busy--;
		return;
	}
	if (packet->paging) {
		retire_paging(sched, packet);
		return;
	}
	struct vmm_dma *dma = vmm_container_of(packet, struct vmm_dma, packet);

	dma->context->steps.done = dma->context->steps.submitted = packet->sequence;
	vmm_dma_put(dma);
	/* Last: a thread that sees the packet complete may free the context. */
	vmm_work_done_locked(sched->adapter, packet->timeline, &dma->work);
}

/* Counts the packets that a completion of the fence covers. */
static uint32_t count_covered(const struct vmm_node *node, uint32_t fence)
{
	const struct vmm_list *link;
	uint32_t count = 0;

	vmm_list_for_each (link, &node->hardware) {
		const struct vmm_packet *packet = vmm_container_of(link, struct vmm_packet, link);

		if (!vmm_fence_reached(fence, packet->fence) && vmm_likely(!packet->refused))
			break;
		count++;
	}
	return count;
}

/*
 * Retires the packets that the node's newest report covers (SUB-06). Returns their number. State
 * lock held.
 */
uint32_t vmm_queue_retire_locked(struct vmm_sched *sched, struct vmm_node *node, uint32_t fence)
{
	uint32_t retired = 0, count = count_covered(node, fence);

	vmm_assert_held(&sched->adapter->state_lock);
	node->last_completed = fence;
	if (!count)
		return 0;
	uint64_t began_ns = node->since_ns;

	vmm_watch_restart_locked(sched, node);
	while (retired < count) {
		struct vmm_packet *packet =
			vmm_container_of(node->hardware.next, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		packet->refused = false;
		/*
		 * Packets that complete with one report are charged equal shares of the time: the
		 * real shares are unknown.
		 */
		vmm_order_charge_locked(sched, packet, (node->since_ns - began_ns) / count);
		if (!packet->paging)
			vmm_dma_of(packet)->context->turn.running--;
		node->hardware_count--;
		sched->hardware_total--;
		node->last_device = packet->paging ? NULL : vmm_dma_of(packet)->context->device;
		vmm_packet_retired_locked(sched, packet);
		retired++;
	}
	return retired;
}

static void record_completed(struct vmm_node *node, uint32_t fence)
{
	/*
	 * The interrupt lock makes this the only writer. A repeated or older id is ignored
	 * (SUB-12).
	 */
	if (vmm_fence_reached(atomic_load(&node->reported), fence))
		return;
	/* The DPC that will be queued is ordered after this. */
	atomic_store_explicit(&node->reported, fence, memory_order_relaxed);
	atomic_store_explicit(&node->report_pending, 1, memory_order_release);
}

static bool record_fault(struct vmm_node *node, uint32_t fence, uint32_t status)
{
	uint32_t head = atomic_load(&node->fault_head);

	if (head - atomic_load(&node->fault_tail) == VMM_FAULTS_MAX)
		return false; /* more faults than packets can be outstanding */
	node->fault[head % VMM_FAULTS_MAX] = (struct vmm_fault){fence, status};
	atomic_store(&node->fault_head, head + 1);
	return true;
}

/* DIRQL: only records (SUB-07). */
static void sink_interrupt(void *context, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_adapter *adapter = context;
	struct vmm_sched *sched = adapter->sched;

	if (data->InterruptType == DXGK_INTERRUPT_DMA_COMPLETED &&
	    data->DmaCompleted.NodeOrdinal < adapter->node_count) {
		record_completed(&sched->node[data->DmaCompleted.NodeOrdinal],
				 data->DmaCompleted.SubmissionFenceId);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_PREEMPTED &&
	    data->DmaPreempted.NodeOrdinal < adapter->node_count) {
		vmm_preempt_record(sched, data);
		return;
	}
	if (data->InterruptType == DXGK_INTERRUPT_DMA_FAULTED &&
	    data->DmaFaulted.NodeOrdinal < adapter->node_count &&
	    record_fault(&sched->node[data->DmaFaulted.NodeOrdinal],
			 data->DmaFaulted.FaultedFenceId, (uint32_t)data->DmaFaulted.Status))
		return;
	if (data->InterruptType == DXGK_INTERRUPT_DMA_PAGE_FAULTED &&
	    data->DmaPageFaulted.NodeOrdinal < adapter->node_count &&
	    vmm_page_fault_record(&sched->node[data->DmaPageFaulted.NodeOrdinal], data))
		return;
	if (data->InterruptType == DXGK_INTERRUPT_CRTC_VSYNC) {
		vmm_display_record(sched, data);
		return;
	}
	bool of_fences = data->InterruptType == DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED;
	if (of_fences)
		atomic_store(&sched->fences_signaled, true);
	if (vmm_hw_record(sched, data) || of_fences)
		return;
	if (data->InterruptType == DXGK_INTERRUPT_PERIODIC_MONITORED_FENCE_SIGNALED) {
		vmm_periodic_record(sched, data);
		return;
	}
	vmm_port_fatal(adapter->port, 0x119, 0x1, (uint64_t)data->InterruptType, 0);
}

static void device_fault(struct vmm_adapter *adapter, struct vmm_packet *packet, uint32_t status)
{
	if (packet->paging) {
		/* No device can be blamed: the content that the packet moved is lost. */
		vmm_port_fatal(adapter->port, 0x119, 0x5, packet->fence, status);
		return;
	}
	struct vmm_context *context = vmm_dma_of(packet)->context;

	vmm_reason(adapter->observe, (vmm_status)status, context->device->process->id,
		   context->handle,
		   "the GPU faulted on fence 0x%08x of context 0x%08x: the device is in error",
		   packet->fence, context->handle);
	vmm_device_fail(context->device, VMM_DEVICE_FAULT);
}

/*
 * SUB-12: a report of an id that was never submitted, or is newer than the last submitted one, is
 * the miniport's error.
 */
void vmm_queue_refuse_report(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	const struct vmm_node *node = &sched->node[index];

	vmm_finding(sched->adapter->observe, "SUB-12", 0, 0,
		    "node %u reported fence 0x%08x, which is not with the hardware; the last one "
		    "submitted there is 0x%08x, the last one complete 0x%08x",
		    index, fence, node->last_submitted, node->last_completed);
	vmm_port_fatal(sched->adapter->port, 0x119, 0x1, fence, node->last_submitted);
}

/*
 * Retires up to a reported fence, which must be with the hardware or complete already. `fault` is
 * the status of the fault, or NULL. State lock held.
 */
static uint32_t retire_report(struct vmm_sched *sched, uint32_t index, uint32_t fence,
			      const uint32_t *fault) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_packet *packet;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_fence_reached(node->last_completed, fence))
		return 0;
	packet = on_hardware(node, fence);
	if (!packet) {
		vmm_queue_refuse_report(sched, index, fence);
		return 0;
	}
	if (fault)
		device_fault(sched->adapter, packet, *fault);
	return vmm_queue_retire_locked(sched, node, fence);
}

/*
 * Handles all reports of the node. A faulted packet counts as complete. Faults are handled first: a
 * newer completion would retire their packets.
 */
static uint32_t retire_reports(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];
	uint32_t tail = atomic_load(&node->fault_tail), retired = vmm_page_faults(sched, index),
		 count;

	vmm_assert_held(&sched->adapter->state_lock);
	while (tail != atomic_load(&node->fault_head)) {
		struct vmm_fault fault = node->fault[tail % VMM_FAULTS_MAX];

		atomic_store(&node->fault_tail, ++tail);
		retired += retire_report(sched, index, fault.fence, &fault.status);
	}
	/* A report that arrives after this check queues another DPC. */
	if (atomic_load(&node->report_pending) && atomic_exchange(&node->report_pending, 0)) {
		uint32_t fence = atomic_load(&node->reported);

		count = retire_report(sched, index, fence, NULL);
		retired += count;
		vmm_event(sched->adapter->observe, VIDMM_EVENT_FENCE, 0, 0, 0, fence, index, count,
			  0);
	}
	return retired;
}

void vmm_queue_flush_locked(struct vmm_sched *sched, uint32_t index)
{
	vmm_assert_held(&sched->adapter->state_lock);
	(void)retire_reports(sched, index);
	(void)vmm_preempt_answered_locked(sched, index);
}

/* DISPATCH_LEVEL: reports take effect (SUB-07). */
static void sink_dpc(void *context)
{
	struct vmm_adapter *adapter = context;
	struct vmm_sched *sched = adapter->sched;
	uint32_t retired = 0;
	bool preempted = false;

	if (atomic_load(&adapter->removed))
		return; /* its packets are abandoned; late reports are ignored */
	vmm_state_lock(adapter);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (vmm_unlikely(sched->node[n].engine.masked)) /* TDR-14 */
			continue;
		retired += retire_reports(sched, n);
		preempted |= vmm_preempt_answered_locked(sched, n);
	}
	if (vmm_unlikely(sched->display != NULL))
		preempted |= vmm_display_reported_locked(sched);
	vmm_state_unlock(adapter);
	preempted |= vmm_hw_reported(sched);
	vmm_periodic_dispatch(sched);
	bool signaled = atomic_exchange(&sched->fences_signaled, false);
	if (retired || vmm_unlikely(signaled))
		vmm_sync_reread(adapter->world); /* MFN-26, MFN-27 */
	if (!retired && !preempted && !atomic_load(&sched->chores))
		return;
	bool released = vmm_steps_advance(sched);
	atomic_fetch_add(&sched->kicks, 1);
	vmm_progress_signal(adapter);
	vmm_sched_kick(adapter);
	if (preempted || released || atomic_load(&sched->chores) ||
	    atomic_load(&adapter->zombies) || atomic_load(&adapter->paging_work) ||
	    vmm_display_waits(sched) || vmm_hw_waits(sched))
		vmm_worker_wake(sched);
}

static void *sink_handle_data(void *context, uint32_t handle, uint32_t type, bool device_specific)
{
	/*
	 * The miniport asks during a call that a client's thread made, so the handle is that
	 * client's.
	 */
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	void *data = NULL;

	(void)type;
	if (!process)
		return NULL;
	vmm_process_lock(process);
	struct vmm_ref *ref = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_ALLOCATION);
	if (ref)
		data = device_specific ? ref->kmd_open : ref->allocation->kmd_allocation;
	vmm_process_unlock(process);
	return data;
}

static uint32_t sink_handle_parent(void *context, uint32_t allocation)
{
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	uint32_t parent = 0;

	if (!process)
		return 0;
	vmm_process_lock(process);
	struct vmm_ref *ref =
		vmm_handle_lookup(&process->handles, allocation, VMM_HANDLE_ALLOCATION);
	if (ref && ref->resource)
		parent = ref->resource->handle;
	vmm_process_unlock(process);
	return parent;
}

static void sink_fatal(void *context, uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3)
{
	struct vmm_adapter *adapter = context;

	(void)code;
	(void)p1;
	(void)p2;
	(void)p3;
	atomic_store(&adapter->removed, true);
	atomic_store(&adapter->closed, true);
	atomic_store(&adapter->world->abandoned, true);
	vmm_world_next_epoch(adapter->world);
	vmm_progress_signal(adapter);
	if (adapter->sched)
		vmm_worker_wake(adapter->sched);
}

static NTSTATUS sink_invalidate_hw_context(void *context, HANDLE hw_context, bool collateral)
{
	const struct vmm_adapter *adapter = context;

	return vmm_hw_invalidate(adapter->sched, hw_context, collateral);
}

static NTSTATUS sink_create_context_allocation(void *context,
					       DXGKARGCB_CREATECONTEXTALLOCATION *args)
{
	return vmm_context_memory_create(((struct vmm_adapter *)context)->sched, args);
}

static NTSTATUS sink_destroy_context_allocation(void *context, HANDLE allocation)
{
	return vmm_context_memory_destroy(((struct vmm_adapter *)context)->sched, allocation);
}

const struct vmm_port_sink vmm_sched_port_sink = {
	.create_context_allocation = sink_create_context_allocation,
	.destroy_context_allocation = sink_destroy_context_allocation,
	.invalidate_hw_context = sink_invalidate_hw_context,
	.interrupt = sink_interrupt,
	.dpc = sink_dpc,
	.handle_data = sink_handle_data,
	.handle_parent = sink_handle_parent,
	.fatal = sink_fatal,
};

static void abandon_list(struct vmm_sched *sched, struct vmm_list *list)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	while (!vmm_list_empty(list)) {
		struct vmm_packet *packet = vmm_container_of(list->next, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		vmm_packet_retired_locked(sched, packet);
	}
}

static void abandon_ready(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	abandon_list(sched, &node->paging);
	while (!vmm_list_empty(&node->contexts)) {
		struct vmm_packet *packet = vmm_order_first(
			vmm_container_of(node->contexts.next, struct vmm_context, turn.link));

		packet->cancelled = true;
		vmm_order_take_locked(sched, packet);
		vmm_packet_retired_locked(sched, packet);
	}
	node->cancelled = 0;
}

static void abandon_prepare(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	while (!vmm_list_empty(&sched->prepare)) {
		struct vmm_dma *dma =
			vmm_container_of(sched->prepare.next, struct vmm_dma, packet.link);

		vmm_list_remove(&dma->packet.link);
		while (!vmm_list_empty(&dma->copies))
			vmm_packet_retired_locked(sched, &vmm_copy_of(dma->copies.next)->packet);
		vmm_packet_retired_locked(sched, &dma->packet);
	}
}

void vmm_queue_abandon_locked(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	vmm_assert_held(&adapter->paging_lock);
	vmm_assert(atomic_load(&adapter->removed));
	vmm_hw_forget_locked(sched);
	vmm_state_lock(adapter);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		abandon_list(sched, &sched->node[n].hardware);
		vmm_engine_forget_locked(sched, &sched->node[n]);
		vmm_preempt_forget_locked(sched, &sched->node[n]);
		abandon_ready(sched, &sched->node[n]);
		sched->node[n].hardware_count = 0;
	}
	abandon_prepare(sched);
	sched->hardware_total = 0;
	atomic_store(&sched->ready_count, 0);
	atomic_store(&sched->prepare_count, 0);
	for (uint32_t t = 0; t < vmm_timeline_count(adapter); t++)
		atomic_store(&adapter->timeline[t].completed,
			     atomic_load(&adapter->timeline[t].queued));
	vmm_state_unlock(adapter);
	vmm_steps_poll(sched);
	vmm_adapter_disturb(adapter);
	vmm_progress_signal(adapter);
}
