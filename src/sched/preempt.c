/* SPDX-License-Identifier: MIT */
/*
 * Preemption of a node, where the miniport is aware of it (PRE).
 *
 *   somebody wants it (vmm_preempt_want_locked)           -> `wanted`
 *   whoever has the paging lock next                      DxgkDdiPreemptCommand; nothing is submitted to the node (PRE-02)
 *   the interrupt, perhaps before that returns (PRE-05)   the answer is recorded
 *   the DPC                                               completed packets retire, the others are queued again (PRE-04), each
 *                                                         before what its context, or paging, still has queued
 *   whoever has the paging lock next                      paging goes first, with the ids that it has; render packets get new ids
 *                                                         and are patched again, at PASSIVE_LEVEL (PRE-07, PAT-14, queue.c)
 *
 * What was taken back keeps its memory: it counts as in use until it completes, so its addresses are the same (PRE-08). Paging
 * never moves memory that a submitted packet uses, and may therefore pass render packets.
 */
#include "sched/sched_private.h"

void vmm_preempt_want_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	if (!sched->caps->preemption_aware || node->preempt.fence || node->preempt.wanted)
		return;
	node->preempt.wanted = true;
	node->preempt.since_ns = vmm_os_now_ns(sched->adapter->os);
	atomic_fetch_add(&sched->chores, 1);
}

/* A request is not wanted any more, or has been made; state lock held. */
static void unwant_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	if (!node->preempt.wanted)
		return;
	node->preempt.wanted = false;
	atomic_fetch_sub(&sched->chores, 1);
}

static void event(struct vmm_sched *sched, uint32_t what, uint32_t index, uint32_t fence,
		  uint64_t packets)
{
	vmm_event(sched->adapter->observe, VIDMM_EVENT_RECOVERY, 0, 0, what, 0, index, fence,
		  packets);
}

/* PRE-01 to PRE-03. The id is the newest of all, and the node hears of no older one before it has answered. */
void vmm_preempt_request(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_node *node = &sched->node[index];
	uint32_t fence = 0;

	vmm_os_mutex_lock(&adapter->state_lock);
	if (node->preempt.wanted && !vmm_list_empty(&node->hardware))
		node->preempt.fence = node->newest = fence = vmm_fence_next(sched);
	unwant_locked(sched, node);
	vmm_os_mutex_unlock(&adapter->state_lock);
	if (!fence)
		return;
	event(sched, VIDMM_RECOVERY_PREEMPT, index, fence, 0);
	(void)!NT_SUCCESS(vmm_port_preempt(adapter->port, index, fence));
}

/* ---- the answer ---- */

void vmm_preempt_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_preempt *p = &sched->node[data->DmaPreempted.NodeOrdinal].preempt;

	if (atomic_load(&p->answered)) { /* at most one request is outstanding */
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
{
	const struct vmm_node *node = &sched->node[index];
	const struct vmm_preempt *p = &node->preempt;

	if (p->fence && p->answer == p->fence &&
	    vmm_fence_reached(node->last_submitted, p->answer_last) &&
	    vmm_fence_reached(p->answer_last, node->last_completed))
		return true;
	vmm_finding(
		sched->adapter->observe, "PRE-12", 0, 0,
		"node %u answered preemption request 0x%08x with last completed 0x%08x; outstanding is request 0x%08x (0: none), "
		"complete 0x%08x, submitted 0x%08x",
		index, p->answer, p->answer_last, p->fence, node->last_completed,
		node->last_submitted);
	vmm_port_fatal(sched->adapter->port, VMM_PORT_FATAL_VIDSCH, 0x1, p->answer, p->answer_last);
	return false;
}

/* PRE-04: what is with the miniport still, was preempted. It goes before what has not been there. */
static uint32_t take_back(struct vmm_sched *sched, struct vmm_node *node)
{
	uint32_t count = node->hardware_count;

	if (!count)
		return 0;
	struct vmm_packet *running = vmm_container_of(node->hardware.next, struct vmm_packet, link);

	vmm_order_charge_locked(node, running, vmm_os_now_ns(sched->adapter->os) - node->since_ns);
	if (!running->paging)
		vmm_dma_of(running)->preempted++;
	while (!vmm_list_empty(&node->hardware)) {
		struct vmm_packet *packet =
			vmm_container_of(node->hardware.prev, struct vmm_packet, link);

		vmm_list_remove(&packet->link);
		packet->submit.Flags.Resubmission = sched->caps->wddm2; /* SUB-21 */
		vmm_order_again_locked(node, packet);
	}
	atomic_fetch_add(&sched->ready_count, count);
	sched->hardware_total -= count;
	node->hardware_count = 0;
	return count;
}

bool vmm_preempt_answered_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_preempt *p = &node->preempt;

	if (vmm_likely(!atomic_load(&p->answered)) || !atomic_exchange(&p->answered, false))
		return false;
	if (!p->fence && p->reset && vmm_fence_reached(p->reset_fence, p->answer))
		return false; /* TDR-09: of before a reset */
	if (!is_good_answer(sched, index))
		return false;
	vmm_queue_retire_locked(sched, node, p->answer_last);
	p->fence = 0;
	event(sched, VIDMM_RECOVERY_PREEMPTED, index, p->answer, take_back(sched, node));
	return true;
}

void vmm_preempt_chores_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	bool passive = vmm_port_at_passive(adapter->port);

	for (uint32_t n = 0; n < adapter->node_count && !atomic_load(&adapter->removed) &&
			     !atomic_load(&adapter->recovering);
	     n++) {
		vmm_preempt_request(sched, n);
		if (!passive)
			continue;
		vmm_engine_chore_locked(sched, n);
		vmm_hw_reset_chore_locked(sched, n);
		vmm_queue_renew_stale(sched, &sched->node[n]);
	}
}

/* There is no request any more, and an answer is a late one. */
static void drop_request(struct vmm_sched *sched, struct vmm_node *node)
{
	struct vmm_preempt *p = &node->preempt;

	unwant_locked(sched, node);
	p->fence = 0;
	p->reset = true;
	p->reset_fence = sched->next_fence - 1;
}

uint32_t vmm_preempt_aborted_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	drop_request(sched, node);
	return take_back(sched, node);
}

void vmm_preempt_forget_locked(struct vmm_sched *sched, struct vmm_node *node)
{
	drop_request(sched, node);
}
