/* SPDX-License-Identifier: MIT */
/*
 * Node queues: from prepared packets (order.c says which is next) to the hardware, and their retirement.
 *
 * Packets reach SubmitCommand only under the paging lock (the DDI's scheduler class is serialised). Whoever makes a
 * packet submittable, at DISPATCH or in a client's thread, tries that lock; if it is taken, its holder looks again
 * after letting go (vmm_sched_kick), so nothing is left behind and nobody waits for it at raised IRQL.
 */
#include "sched/sched_private.h"

uint32_t vmm_fence_next(struct vmm_sched *sched)
{
	uint32_t fence = sched->next_fence++;

	if (fence == 0) /* SUB-01: id 0 is never issued */
		fence = sched->next_fence++;
	return fence;
}

void vmm_queue_ready(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_order_ready_locked(&sched->node[packet->node], packet);
	atomic_fetch_add(&sched->ready_count, 1);
	vmm_os_mutex_unlock(&adapter->state_lock);
}

static bool has_room(const struct vmm_sched *sched, const struct vmm_node *node)
{
	if (vmm_unlikely(node->preempt.fence || node->preempt.wanted)) /* PRE-02 */
		return false;
	if (node->hardware_count >= sched->caps->node_depth) /* SUB-16 */
		return false;
	return sched->hardware_total < sched->caps->dma_queue_entries; /* SUB-15 */
}

/* Cancelled packets of one context that are next complete once those before them have. */
static uint32_t retire_cancelled_of(struct vmm_sched *sched, struct vmm_node *node,
				    struct vmm_context *context)
{
	uint32_t count = 0;
	bool last = context->turn.running;

	/* Having retired its last packet, we have seen the context for the last time. */
	while (!last) {
		struct vmm_packet *packet = vmm_order_first(context);

		if (!packet->cancelled)
			break;
		vmm_order_take_locked(node, packet);
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
{
	struct vmm_list *link, *next;
	uint32_t count = 0;

	vmm_list_for_each_safe (link, next, &node->contexts)
		count += retire_cancelled_of(sched, node,
					     vmm_container_of(link, struct vmm_context, turn.link));
	return count;
}

static void give_to_hardware(struct vmm_sched *sched, struct vmm_node *node,
			     struct vmm_packet *packet)
{
	vmm_order_take_locked(node, packet);
	vmm_list_push_back(&node->hardware, &packet->link);
	if (!node->hardware_count++)
		vmm_watch_moved_locked(sched, node);
	sched->hardware_total++;
	node->last_submitted = packet->fence;
	if (!vmm_fence_reached(node->newest, packet->fence))
		node->newest = packet->fence;
	if (vmm_unlikely(packet->synchronous))
		sched->alone = packet->sequence;
	atomic_fetch_sub(&sched->ready_count, 1);
}

/* At DISPATCH_LEVEL: somebody who may patch will be here. State lock held. */
VMM_COLD static void note_stale(struct vmm_sched *sched, struct vmm_node *node)
{
	if (node->stale)
		return;
	node->stale = true;
	atomic_fetch_add(&sched->chores, 1);
}

enum taking { TAKEN, STALE, NOTHING, URGENT };

/* STALE: the packet is to be renewed first. */
static enum taking take_submittable_locked(struct vmm_sched *sched, uint32_t index, bool *moved,
					   struct vmm_packet **packet)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_packet *stale = NULL;
	enum taking taking = NOTHING;
	bool urgent = false;

	*packet = NULL;
	if (vmm_unlikely(node->cancelled))
		*moved |= retire_cancelled(sched, node);
	bool idle = vmm_list_empty(&node->contexts) && vmm_list_empty(&node->paging),
	     room = !idle && has_room(sched, node);
	if (room || vmm_unlikely(!idle && sched->caps->preemption_aware))
		*packet = vmm_order_next_locked(sched, node, &urgent, &stale);
	if (*packet && urgent) { /* SCH-05: it does not wait for the end of what the node is at */
		vmm_preempt_want_locked(sched, node);
		taking = URGENT;
	} else if (*packet && room) {
		taking = TAKEN;
	}
	if (taking == TAKEN && vmm_unlikely(stale)) {
		if (vmm_port_at_passive(sched->adapter->port)) {
			*packet = stale;
			taking = STALE;
		} else {
			note_stale(sched, node);
			taking = stale == *packet ? NOTHING : TAKEN;
		}
	}
	if (taking == TAKEN)
		give_to_hardware(sched, node, *packet);
	return taking;
}

static enum taking take_submittable(struct vmm_sched *sched, uint32_t index, bool *moved,
				    struct vmm_packet **packet)
{
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	enum taking taking = take_submittable_locked(sched, index, moved, packet);
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return taking;
}

/* False: what belongs to a lost device is about to be cancelled (TDR-12). */
VMM_COLD static bool renew(struct vmm_sched *sched, struct vmm_packet *packet)
{
	if (vmm_device_lost(vmm_dma_of(packet)->context->device))
		return false;
	vmm_prepare_renew(sched, packet);
	return true;
}

void vmm_queue_renew_stale(struct vmm_sched *sched, struct vmm_node *node)
{
	struct vmm_packet *stale = NULL;
	bool urgent = false;

	vmm_os_mutex_lock(&sched->adapter->state_lock);
	if (node->stale) {
		node->stale = false;
		atomic_fetch_sub(&sched->chores, 1);
		(void)vmm_order_next_locked(sched, node, &urgent, &stale);
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
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

/* SUB-23: its device is in error, and it counts as complete once all before it on the node is. */
VMM_COLD static void refused(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	uint32_t process = 0, handle = 0;

	vmm_os_mutex_lock(&adapter->state_lock);
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
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_reason(
		adapter->observe, STATUS_INVALID_PARAMETER, process, handle,
		"SUB-23: DxgkDdiSubmitCommandVirtual refused fence 0x%08x of context 0x%08x: the "
		"device is in error",
		fence, handle);
	vmm_progress_signal(adapter);
}

static void submit_by_address(struct vmm_sched *sched, uint32_t index,
			      const DXGKARG_SUBMITCOMMAND *s)
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

	if (vmm_port_submit_virtual(sched->adapter->port, &args) == STATUS_INVALID_PARAMETER)
		refused(sched, index, s->SubmissionFenceId);
}

static void submit(struct vmm_sched *sched, uint32_t index, const struct vmm_packet *packet)
{
	/* The packet may retire, and be reused, as soon as the miniport has it. */
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
	enum taking taking = NOTHING;
	bool moved = false;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_remove(&packet->link);
	atomic_fetch_sub(&sched->prepare_count, 1);
	vmm_order_ready_locked(&sched->node[index], packet);
	bool alone = !atomic_fetch_add(&sched->ready_count, 1);
	if (vmm_unlikely(dma->users)) { /* DMA-10 */
		vmm_broadcast_ready_locked(sched, dma);
		alone = false;
	}
	/* The only one: nobody's turn comes before it. All else is for who drains the queues. */
	if (alone && !packet->cancelled && !sched->caps->preemption_aware && !is_stopped(adapter))
		taking = take_submittable_locked(sched, index, &moved, &packet);
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (taking == TAKEN)
		submit(sched, index, packet);
}

void vmm_queue_drain_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool moved = false;

	if (vmm_unlikely(atomic_load(&sched->chores)))
		vmm_preempt_chores_locked(sched);
	for (uint32_t n = 0; n < adapter->node_count && !is_stopped(adapter); n++) {
		struct vmm_packet *packet;
		enum taking taking = NOTHING;

		/* Whoever makes one ready, and does not hold the paging lock, counts it before his kick. */
		while (atomic_load(&sched->ready_count) &&
		       (taking = take_submittable(sched, n, &moved, &packet)) <= STALE) {
			if (taking == TAKEN)
				submit(sched, n, packet);
			else if (!renew(sched, packet))
				break;
			if (is_stopped(adapter))
				return;
		}
		if (vmm_unlikely(taking == URGENT))
			vmm_preempt_request(sched, n);
	}
	bool left =
		vmm_unlikely(atomic_load(&sched->chores)) && !vmm_port_at_passive(adapter->port);

	if (left)
		vmm_worker_wake(sched);
	vmm_steps_look(sched); /* SYN-27, and what was cancelled */
	/* The worker may be waiting for the GPU on behalf of the first packet to prepare; looking again, it does them. */
	if (moved || left)
		vmm_progress_signal(adapter);
}

static VMM_NOINLINE void kick(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	/*
	 * Who finds the lock taken has counted its completion in `kicks` before. The holder, having let go, reads it with an
	 * operation that also orders: it sees the count, or the other one sees the lock free.
	 */
	for (;;) {
		uint32_t seen = atomic_load(&sched->kicks);

		if ((!atomic_load(&sched->ready_count) && !atomic_load(&sched->chores)) ||
		    atomic_load(&adapter->recovering) ||
		    !vmm_os_mutex_trylock(&adapter->paging_lock))
			return;
		vmm_queue_drain_locked(sched);
		vmm_os_mutex_unlock(&adapter->paging_lock);
		if (atomic_fetch_add(&sched->kicks, 0) == seen)
			return;
	}
}

void vmm_sched_kick(struct vmm_adapter *adapter)
{
	const struct vmm_sched *sched = adapter->sched;

	if (vmm_unlikely(atomic_load(&sched->ready_count) || atomic_load(&sched->chores)))
		kick(adapter);
}

/* A number is complete when it is on every physical adapter, and so is every number before it. */
static void retire_paging(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_timeline *timeline = &sched->adapter->timeline[packet->timeline];
	uint64_t completed = atomic_load_explicit(&timeline->completed, memory_order_relaxed);
	uint64_t queued = atomic_load_explicit(&timeline->queued, memory_order_relaxed);

	sched->paging_parts[packet->sequence % VMM_PAGING_PACKETS]--;
	vmm_list_push_back(&sched->free_paging, &packet->link);
	while (completed < queued && !sched->paging_parts[(completed + 1) % VMM_PAGING_PACKETS])
		completed++;
	atomic_store_explicit(&timeline->completed, completed, memory_order_release);
}

void vmm_packet_retired_locked(struct vmm_sched *sched, struct vmm_packet *packet)
{
	struct vmm_timeline *timeline = &sched->adapter->timeline[packet->timeline];

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
	/* Last: whoever sees that it is complete may free the context that it belongs to. */
	vmm_work_done_locked(timeline, &dma->work);
}

/* How many packets a completion of that fence covers. */
static uint32_t covered(const struct vmm_node *node, uint32_t fence)
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

/* Retires what the node's newest report covers (SUB-06); state lock held. */
uint32_t vmm_queue_retire_locked(struct vmm_sched *sched, struct vmm_node *node, uint32_t fence)
{
	uint32_t retired = 0, count = covered(node, fence);

	node->last_completed = fence;
	if (!count)
		return 0;
	uint64_t began_ns = node->since_ns;

	vmm_watch_moved_locked(sched, node);
	while (retired < count) {
		struct vmm_packet *packet =
			vmm_container_of(node->hardware.next, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		packet->refused = false;
		/* Those that are told together have had equal parts of the time, as far as anybody knows. */
		vmm_order_charge_locked(node, packet, (node->since_ns - began_ns) / count);
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
	/* The interrupt lock makes this the only writer. A repeated or older id tells nothing new (SUB-12). */
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
		return false; /* more than packets can be outstanding */
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
		/* Nobody's device: the content of whatever it moved is gone. */
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

/* SUB-12: an id that was never submitted, or is newer than the last submitted, is the miniport's error. */
void vmm_queue_refuse_report(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	const struct vmm_node *node = &sched->node[index];

	vmm_finding(
		sched->adapter->observe, "SUB-12", 0, 0,
		"node %u reported fence 0x%08x, which is not with the hardware; the last one submitted there is 0x%08x, "
		"the last one complete 0x%08x",
		index, fence, node->last_submitted, node->last_completed);
	vmm_port_fatal(sched->adapter->port, 0x119, 0x1, fence, node->last_submitted);
}

/* What is reported must be with the hardware, or over already. State lock held. */
static uint32_t retire_report(struct vmm_sched *sched, uint32_t index, uint32_t fence,
			      const uint32_t *fault)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_packet *packet;

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

/* A faulted packet counts as complete. Faults come first: a newer completion would take their packets away. */
static uint32_t retire_reports(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_node *node = &sched->node[index];
	uint32_t tail = atomic_load(&node->fault_tail), retired = vmm_page_faults(sched, index),
		 count;

	while (tail != atomic_load(&node->fault_head)) {
		struct vmm_fault fault = node->fault[tail % VMM_FAULTS_MAX];

		atomic_store(&node->fault_tail, ++tail);
		retired += retire_report(sched, index, fault.fence, &fault.status);
	}
	/* What is told after the look has a DPC of its own. */
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
	(void)retire_reports(sched, index);
	(void)vmm_preempt_answered_locked(sched, index);
}

/* DISPATCH: effects become visible (SUB-07). */
static void sink_dpc(void *context)
{
	struct vmm_adapter *adapter = context;
	struct vmm_sched *sched = adapter->sched;
	uint32_t retired = 0;
	bool preempted = false;

	if (atomic_load(&adapter->removed))
		return; /* its packets are abandoned; late reports mean nothing any more */
	vmm_os_mutex_lock(&adapter->state_lock);
	for (uint32_t n = 0; n < adapter->node_count; n++) {
		if (vmm_unlikely(sched->node[n].engine.masked)) /* TDR-14 */
			continue;
		retired += retire_reports(sched, n);
		preempted |= vmm_preempt_answered_locked(sched, n);
	}
	if (vmm_unlikely(sched->display != NULL))
		preempted |= vmm_display_reported_locked(sched);
	vmm_os_mutex_unlock(&adapter->state_lock);
	preempted |= vmm_hw_reported(sched);
	vmm_periodic_pass_on(sched);
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
	/* The miniport asks in a call that a client's thread made: the handle is that client's. */
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	void *data = NULL;

	(void)type;
	if (!process)
		return NULL;
	vmm_os_mutex_lock(&process->lock);
	struct vmm_ref *ref = vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_ALLOCATION);
	if (ref)
		data = device_specific ? ref->kmd_open : ref->allocation->kmd_allocation;
	vmm_os_mutex_unlock(&process->lock);
	return data;
}

static uint32_t sink_handle_parent(void *context, uint32_t allocation)
{
	struct vmm_process *process = vmm_calling_process(((struct vmm_adapter *)context)->os);
	uint32_t parent = 0;

	if (!process)
		return 0;
	vmm_os_mutex_lock(&process->lock);
	struct vmm_ref *ref =
		vmm_handle_lookup(&process->handles, allocation, VMM_HANDLE_ALLOCATION);
	if (ref && ref->resource)
		parent = ref->resource->handle;
	vmm_os_mutex_unlock(&process->lock);
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
{
	while (!vmm_list_empty(list)) {
		struct vmm_packet *packet = vmm_container_of(list->next, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		vmm_packet_retired_locked(sched, packet);
	}
}

static void abandon_ready(struct vmm_sched *sched, struct vmm_node *node)
{
	abandon_list(sched, &node->paging);
	while (!vmm_list_empty(&node->contexts)) {
		struct vmm_packet *packet = vmm_order_first(
			vmm_container_of(node->contexts.next, struct vmm_context, turn.link));

		packet->cancelled = true;
		vmm_order_take_locked(node, packet);
		vmm_packet_retired_locked(sched, packet);
	}
	node->cancelled = 0;
}

static void abandon_prepare(struct vmm_sched *sched)
{
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

	vmm_assert(atomic_load(&adapter->removed));
	vmm_hw_forget_locked(sched);
	vmm_os_mutex_lock(&adapter->state_lock);
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
	vmm_os_mutex_unlock(&adapter->state_lock);
	vmm_steps_look(sched);
	vmm_adapter_disturb(adapter);
	vmm_progress_signal(adapter);
}
