/* SPDX-License-Identifier: MIT */
/*
 * Reports of the miniport about the packets of a node. An interrupt records that packets completed
 * or faulted (SUB-07). The DPC, or a reset, applies the records. Two other reports have their own
 * files: answers to preemption requests (preempt.c) and page faults (page_fault.c).
 */
#include "sched/data/counts.h"
#include "sched/resets/resets.h"

void vmm_report_check(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	uint32_t reported = atomic_load(&sched->report[index].fence);

	if (!vmm_fence_reached(reported, fence))
		return;
	vmm_finding(sched->adapter->observe, "Q-430", 0, 0,
		    fence == reported ? "node %u reported fence 0x%08x as complete again: the last "
					"one reported is 0x%08x"
				      : "node %u reported fence 0x%08x as complete, which goes "
					"backwards: the last one reported is 0x%08x",
		    index, fence, reported);
}

void vmm_report_completed(struct vmm_node_report *report, uint32_t fence)
{
	/*
	 * The interrupt lock makes this the only writer. A repeated or older id is ignored
	 * (SUB-12).
	 */
	if (vmm_fence_reached(atomic_load(&report->fence), fence))
		return;
	/* The DPC that will be queued is ordered after this. */
	atomic_store_explicit(&report->fence, fence, memory_order_relaxed);
	atomic_store_explicit(&report->completed, true, memory_order_release);
}

bool vmm_report_fault(struct vmm_node *node, uint32_t fence, uint32_t status)
{
	uint32_t head = atomic_load(&node->fault_head);

	if (head - atomic_load(&node->fault_tail) == VMM_FAULTS_MAX)
		return false; /* more faults than packets can be outstanding */
	node->fault[head % VMM_FAULTS_MAX] = (struct vmm_fault){fence, status};
	atomic_store(&node->fault_head, head + 1);
	return true;
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
	packet = vmm_on_hardware(node, fence);
	if (!packet) {
		vmm_queue_refuse_report(sched, index, fence);
		return 0;
	}
	if (fault) {
		VMM_COUNT_PACKET_LOCKED(sched, packet, faulted, 1);
		device_fault(sched->adapter, packet, *fault);
	}
	return vmm_queue_retire_locked(sched, node, fence);
}

/*
 * Handles all reports of the node. A faulted packet counts as complete. Faults are handled first: a
 * newer completion would retire their packets.
 */
uint32_t vmm_reports_retire_locked(struct vmm_sched *sched, uint32_t index)
{
	struct vmm_node *node = &sched->node[index];
	struct vmm_node_report *report = &sched->report[index];
	uint32_t tail = atomic_load(&node->fault_tail), retired = 0, count;

	vmm_assert_held(&sched->adapter->state_lock);
	if (vmm_unlikely(atomic_load(&node->page_fault_tail) !=
			 atomic_load(&node->page_fault_head)))
		retired = vmm_page_faults_locked(sched, index);
	while (tail != atomic_load(&node->fault_head)) {
		struct vmm_fault fault = node->fault[tail % VMM_FAULTS_MAX];

		atomic_store(&node->fault_tail, ++tail);
		retired += retire_report(sched, index, fault.fence, &fault.status);
	}
	/* A report that arrives after this check queues another DPC. */
	if (atomic_load(&report->completed) && atomic_exchange(&report->completed, false)) {
		uint32_t fence = atomic_load(&report->fence);

		count = retire_report(sched, index, fence, NULL);
		retired += count;
		vmm_event(sched->adapter->observe, VIDMM_EVENT_FENCE, 0, 0, 0, fence, index, count,
			  atomic_load(&sched->adapter->timeline[index].completed));
	}
	return retired;
}

void vmm_reports_forget(struct vmm_sched *sched, uint32_t index, uint32_t fence)
{
	struct vmm_node *node = &sched->node[index];

	atomic_store(&sched->report[index].fence, fence);
	atomic_store(&sched->report[index].completed, false);
	atomic_store(&node->fault_tail, atomic_load(&node->fault_head));
	vmm_page_faults_forget(node);
	atomic_store(&node->preempt.answered, false);
}

void vmm_queue_flush_locked(struct vmm_sched *sched, uint32_t index)
{
	vmm_assert_held(&sched->adapter->state_lock);
	(void)vmm_reports_retire_locked(sched, index);
	(void)vmm_preempt_answered_locked(sched, index);
}
