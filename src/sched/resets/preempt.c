/* SPDX-License-Identifier: MIT */
/*
 * Preemption of a node, for preemption-aware miniports (PRE).
 *
 * 1. vmm_preempt_want_locked sets `wanted`.
 * 2. The next holder of the paging lock calls DxgkDdiPreemptCommand. From then on no packet is
 *    submitted to the node (PRE-02).
 * 3. The interrupt records the answer. It may come before the DDI call returns (PRE-05).
 * 4. The DPC retires the packets that are complete. It queues the others again (PRE-04), ahead of
 *    the packets that their context, or paging, still has queued.
 * 5. The next holder of the paging lock submits again. Paging packets go first and keep their fence
 *    ids. Render packets get new ids and are patched again, at PASSIVE_LEVEL (PRE-07, PAT-14,
 *    patch.c).
 *
 * A preempted packet keeps its memory: its allocations count as in use until it completes, so their
 * addresses do not change (PRE-08). Paging never moves memory that a submitted packet uses, so
 * paging packets may overtake render packets.
 */
#include "sched/resets/resets.h"

#define OVERDUE_PREEMPTIONS 64u /* of one packet, without its completion */

void vmm_preempt_want_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (!sched->caps->preemption_aware || node->preempt.fence || node->preempt.wanted)
		return;
	node->preempt.wanted = true;
	node->preempt.since_ns = vmm_os_now_ns(sched->adapter->os);
	atomic_fetch_add(&sched->chores, 1);
}

/* The request has been made, or is not needed any more. State lock held. */
static void clear_wanted_locked(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&sched->adapter->state_lock);
	if (!node->preempt.wanted)
		return;
	node->preempt.wanted = false;
	atomic_fetch_sub(&sched->chores, 1);
}

static void recovery_event(struct vmm_sched *sched, uint32_t what, uint32_t index, uint32_t fence,
			   uint64_t packets)
{
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, 0, 0, what, 0, index, fence,
		  packets);
}

/*
 * Makes the request if one is wanted. Its id is the newest of all, and the node gets no older id
 * before it has answered (PRE-01 to PRE-03).
 */
void vmm_preempt_request(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	uint32_t fence = 0;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_state_lock(adapter);
	if (node->preempt.wanted && !vmm_list_empty(&node->hardware))
		node->preempt.fence = node->newest = fence = vmm_fence_next(sched);
	clear_wanted_locked(sched, node);
	vmm_state_unlock(adapter);
	if (!fence)
		return;
	recovery_event(sched, VIDMM_RECOVERY_PREEMPT, index, fence, 0);
	(void)!NT_SUCCESS(vmm_port_preempt(adapter->port, index, fence));
}

/* ---- the answer ---- */

void vmm_preempt_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_preempt *p = &sched->node[data->DmaPreempted.NodeOrdinal].preempt;

	if (atomic_load(&p->answered)) { /* only one request may be outstanding */
		vmm_finding(sched->adapter->observe, "PRE-12", 0, 0,
			    "node %u answered preemption requests 0x%08x and 0x%08x at once",
			    data->DmaPreempted.NodeOrdinal, p->answer,
			    data->DmaPreempted.PreemptionFenceId);
		vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_VIDSCH, 0x1,
			       data->DmaPreempted.PreemptionFenceId, p->answer);
		return;
	}
	p->answer = data->DmaPreempted.PreemptionFenceId;
	p->answer_last = data->DmaPreempted.LastCompletedFenceId;
	atomic_store(&p->answered, true);
}

static bool is_good_answer(struct vmm_sched *sched, uint32_t index)
	VMM_REQUIRES(vmm_state_lock_class)
{
	const struct vmm_node *node = &sched->node[index];
	const struct vmm_preempt *p = &node->preempt;

	vmm_assert_held(&sched->adapter->state_lock);
	if (p->fence && p->answer == p->fence &&
	    vmm_fence_reached(node->last_submitted, p->answer_last) &&
	    vmm_fence_reached(p->answer_last, node->last_completed))
		return true;
	vmm_finding(sched->adapter->observe, "PRE-12", 0, 0,
		    "node %u answered preemption request 0x%08x with last completed 0x%08x; "
		    "outstanding is request 0x%08x (0: none), complete 0x%08x, submitted 0x%08x",
		    index, p->answer, p->answer_last, p->fence, node->last_completed,
		    node->last_submitted);
	vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_VIDSCH, 0x1, p->answer, p->answer_last);
	return false;
}

/*
 * PRE-04: packets that are still with the miniport were preempted. They are queued ahead of
 * packets that have not been submitted. Returns their number. (PRE-07)
 */
static uint32_t take_back(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t count = node->hardware_count;

	vmm_assert_held(&sched->adapter->state_lock);
	if (!count)
		return 0;
	struct vmm_packet *running = vmm_container_of(node->hardware.next, struct vmm_packet, link);

	vmm_order_charge_locked(sched, running, vmm_os_now_ns(sched->adapter->os) - node->since_ns);
	if (!running->paging)
		vmm_dma_of(running)->preempted++;
	while (!vmm_list_empty(&node->hardware)) {
		struct vmm_packet *packet =
			vmm_container_of(node->hardware.prev, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		packet->submit.Flags.Resubmission = sched->caps->resubmission; /* SUB-21 */
		vmm_order_requeue_locked(sched, packet);
	}
	VMM_COUNT_PACKETS_LOCKED(sched->ready_count, count);
	sched->hardware_total -= count;
	node->hardware_count = 0;
	return count;
}

/*
 * the running packet was overdue, so the watchdog had it preempted. Each resubmission starts
 * its time again, so a packet that never gets to run does not time out. Reported once per packet.
 */
static void note_overdue(struct vmm_sched *sched, uint32_t index) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_node *node = &sched->node[index];
	uint32_t process = 0, context = 0;

	vmm_assert_held(&sched->adapter->state_lock);
	if (!node->queried_ns || vmm_list_empty(&node->hardware))
		return;
	struct vmm_packet *running = vmm_container_of(node->hardware.next, struct vmm_packet, link);

	if (++running->overdue != OVERDUE_PREEMPTIONS)
		return;
	if (!running->paging) {
		process = vmm_dma_of(running)->context->device->process->id;
		context = vmm_dma_of(running)->context->handle;
	}
	vmm_finding(sched->adapter->observe, "Q-411", process, context,
		    "node %u: a packet of context 0x%08x (0: paging), last submitted with fence "
		    "0x%08x, was overdue and preempted %u times and is not complete: the miniport "
		    "answers each request, but does not let the packet finish",
		    index, context, running->fence, OVERDUE_PREEMPTIONS);
}

bool vmm_preempt_answered_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_preempt *p = &node->preempt;

	vmm_assert_held(&sched->adapter->state_lock);
	if (!atomic_exchange(&p->answered, false))
		return false;
	if (!p->fence && p->reset && vmm_fence_reached(p->reset_fence, p->answer))
		return false; /* TDR-09: a late answer, to a request made before a reset */
	if (!is_good_answer(sched, index))
		return false;
	vmm_queue_retire_locked(sched, node, p->answer_last);
	p->fence = 0;
	note_overdue(sched, index);
	recovery_event(sched, VIDMM_RECOVERY_PREEMPTED, index, p->answer, take_back(sched, node));
	return true;
}

/* Withdraws the request. An answer that still comes is a late one. */
static void drop_request(struct vmm_sched *sched, struct vmm_node *node)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_preempt *p = &node->preempt;

	vmm_assert_held(&sched->adapter->state_lock);
	clear_wanted_locked(sched, node);
	p->fence = 0;
	p->reset = true;
	p->reset_fence = sched->next_fence - 1;
}

uint32_t vmm_preempt_aborted_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	vmm_assert_held(&sched->adapter->state_lock);
	drop_request(sched, node);
	return take_back(sched, node);
}

void vmm_preempt_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	vmm_assert_held(&sched->adapter->state_lock);
	drop_request(sched, node);
}
