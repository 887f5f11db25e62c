/* SPDX-License-Identifier: MIT */
/*
 * Completion of packets, and the fence ids by which the miniport reports it.
 *
 * A packet retires once: by a report (reports.c), in queue order if it was canceled (queue.c), or
 * when the adapter is reset or removed. Then its DMA buffer is free again, its number on the
 * timeline is complete, and a flip that it carries is due.
 */
#include "sched/completion/completion.h"
#include "sched/data/counts.h"

uint32_t vmm_fence_next(struct vmm_sched *sched)
{
	uint32_t fence = sched->next_fence++;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (fence == 0) /* SUB-01: id 0 is never issued */
		fence = sched->next_fence++;
	return fence;
}

/* ---- DMA buffers ---- */

/*
 * A submission of a broadcast buffer is complete. Returns true if it was the last one. State lock
 * held.
 */
VMM_COLD static bool is_last_user(struct vmm_dma *dma, struct vmm_dma *buffer)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&dma->context->device->adapter->state_lock);
	if (dma != buffer) {
		vmm_list_remove(&dma->copy);
		vmm_list_push_back(&dma->context->free_copies, &dma->pool);
	}
	if (--buffer->users)
		return false;
	buffer->sum_valid = false;
	return true;
}

/* A packet of the buffer retired: returns the buffer to the pool. */
static void put_buffer_locked(struct vmm_dma *dma) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_dma *buffer = vmm_dma_buffer(dma);
	bool broadcast = buffer->users != 0;

	vmm_assert_held(&dma->context->device->adapter->state_lock);
	vmm_assert(vmm_context_is_consistent_locked(buffer->context) && dma->context->queued);
	dma->context->queued--;
	VMM_COUNT_LOCKED(dma->context->device->adapter->sched, dma, done[dma->kind->in_turn], 1);
	if (vmm_unlikely(dma->kind->retired_locked != NULL))
		dma->kind->retired_locked(dma);
	if (vmm_unlikely(broadcast) && !is_last_user(dma, buffer))
		return;
	vmm_dma_unpin(buffer);
	buffer->context->dma_taken--;
	vmm_list_push_back(&buffer->context->free_dma, &buffer->pool);
	if (vmm_unlikely(broadcast)) /* last: at 0 the owner's context may be freed */
		atomic_fetch_sub(&buffer->context->shared_buffers, 1);
}

/* ---- packets ---- */

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
	struct vmm_steps *steps = &dma->context->steps;

	steps->done = packet->sequence;
	/* A canceled packet was never submitted; of others the GPU may have newer ones. (SYN-27) */
	if (steps->submitted < packet->sequence)
		steps->submitted = packet->sequence;
	put_buffer_locked(dma);
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
		VMM_COUNT_PACKET_LOCKED(sched, packet, completed, 1);
		struct vmm_context *context = packet->paging ? NULL : vmm_dma_of(packet)->context;

		if (context)
			context->turn.running--;
		node->last_device = context ? context->device : NULL;
		node->hardware_count--;
		sched->hardware_total--;
		vmm_packet_retired_locked(sched, packet);
		retired++;
	}
	return retired;
}

/* ---- what the hardware has ---- */

/* Returns the packet with that id that the miniport has; NULL: it has none. State lock held. */
struct vmm_packet *vmm_on_hardware(const struct vmm_node *node, uint32_t fence)
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
