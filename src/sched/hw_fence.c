/* SPDX-License-Identifier: MIT */
/*
 * How far the GPU has got in hardware queues (MFN-37, SUB-27): the 64-bit progress fence of each, which the GPU or its miniport
 * stores into before it interrupts. The interrupt says on which node to look; a value covers all commands up to it. What
 * else interrupts say of queues and contexts takes effect here as well, in the DPC.
 */
#include "sched/hw_private.h"

static bool push(_Atomic uint32_t *head, const _Atomic uint32_t *tail, uint32_t *slot)
{
	*slot = atomic_load(head) % VMM_HW_REPORTS_MAX;
	return atomic_load(head) - atomic_load(tail) < VMM_HW_REPORTS_MAX;
}

bool vmm_hw_record(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_hw *hw = sched->hw;
	uint32_t slot;

	if (!hw)
		return false;
	if (data->InterruptType == DXGK_INTERRUPT_MONITORED_FENCE_SIGNALED) {
		atomic_store(&hw->signaled, true);
		return true;
	}
	if (data->InterruptType == DXGK_INTERRUPT_SUSPEND_CONTEXT_COMPLETED) {
		if (!push(&hw->ack_head, &hw->ack_tail, &slot))
			return false; /* more than there are questions */
		hw->ack[slot] =
			(struct vmm_hw_ack){data->SuspendContextCompleted.hContext,
					    data->SuspendContextCompleted.ContextSuspendFence};
		atomic_fetch_add(&hw->ack_head, 1);
		return true;
	}
	if (data->InterruptType != DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED)
		return false;
	if (push(&hw->fault_head, &hw->fault_tail, &slot)) { /* one more of many says nothing new */
		hw->fault[slot] = *data;
		atomic_fetch_add(&hw->fault_head, 1);
	}
	return true;
}

void vmm_hw_release_locked(struct vmm_hw_packet *packet)
{
	struct vmm_adapter *adapter = packet->queue->context->device->adapter;

	if (!packet->held)
		return;
	packet->held = false;
	vmm_work_done_locked(&adapter->timeline[vmm_hw_timeline(adapter)], &packet->work);
}

void vmm_hw_retire_locked(struct vmm_hw_packet *packet)
{
	struct vmm_hw_queue *queue = packet->queue;
	struct vmm_sched *sched = queue->context->device->adapter->sched;

	vmm_list_remove(&packet->link);
	vmm_list_push_back(&queue->unused, &packet->link);
	queue->running_count--;
	queue->since_ns = vmm_os_now_ns(sched->adapter->os);
	queue->looked = false;
	sched->hw_running--;
	vmm_hw_release_locked(packet);
}

/* SUB-27: of a value that no command says, or that is less than it was. False: nothing can be made of it. */
static bool is_good_value(struct vmm_hw_queue *queue, uint64_t value)
{
	struct vmm_adapter *adapter = queue->context->device->adapter;

	if (vmm_likely(value >= queue->seen && value <= queue->handed_id))
		return true;
	if (vmm_device_lost(queue->context->device)) /* TDRS-14 */
		return false;
	vmm_finding(
		adapter->observe, "SUB-27", queue->context->device->process->id, queue->handle,
		"the progress fence of hardware queue 0x%08x is %llu: it was %llu, and the last "
		"command that the miniport has says %llu",
		queue->handle, (unsigned long long)value, (unsigned long long)queue->seen,
		(unsigned long long)queue->handed_id);
	vmm_port_fatal(adapter->port, 0x119, 0x1, value, queue->handed_id);
	return false;
}

static uint32_t retire_queue(struct vmm_hw_queue *queue, uint64_t value)
{
	uint32_t count = 0;

	queue->seen = value;
	while (!vmm_list_empty(&queue->running) && vmm_hw_first(&queue->running)->id <= value) {
		vmm_hw_retire_locked(vmm_hw_first(&queue->running));
		count++;
	}
	return count;
}

#define TELL_MAX 16u
struct scan {
	uint32_t retired, count;
	struct vmm_sync_object *tell[TELL_MAX]; /* with a reference each */
};

/* Who waits for it is told without the lock. False: there are more than can be remembered, it is looked at again. */
static bool scan_queue(struct vmm_hw_queue *queue, struct scan *scan)
{
	uint64_t value = vmm_sync_owned_value(queue->fence);

	if (value == queue->seen || !is_good_value(queue, value))
		return true;
	if (scan->count == TELL_MAX)
		return false;
	scan->retired += retire_queue(queue, value);
	scan->tell[scan->count++] = vmm_sync_owned_get(queue->fence);
	vmm_event(queue->context->device->adapter->observe, VIDMM_EVENT_FENCE,
		  queue->context->device->process->id, queue->handle, 0, value,
		  queue->context->node, scan->retired, 0);
	return true;
}

static bool scan_locked(struct vmm_sched *sched, struct scan *scan)
{
	struct vmm_list *at, *link;
	bool all = true;

	vmm_list_for_each (at, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(at, struct vmm_hw_context, link);

		if (atomic_load(&sched->hw->resetting) >> context->node & 1)
			continue;
		vmm_list_for_each (link, &context->queues)
			all &= scan_queue(vmm_container_of(link, struct vmm_hw_queue, link), scan);
	}
	return all;
}

uint32_t vmm_hw_scan(struct vmm_sched *sched)
{
	uint32_t retired = 0;
	bool all;

	do {
		struct scan scan = {0};

		vmm_os_mutex_lock(&sched->adapter->state_lock);
		all = scan_locked(sched, &scan);
		vmm_os_mutex_unlock(&sched->adapter->state_lock);
		for (uint32_t i = 0; i < scan.count; i++)
			vmm_sync_owned_tell(scan.tell[i]);
		retired += scan.retired;
	} while (!all);
	return retired;
}

static struct vmm_hw_context *find_context(const struct vmm_hw *hw, const void *kmd_context)
{
	struct vmm_list *link;

	vmm_list_for_each (link, &hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (context->kmd_context == kmd_context)
			return context;
	}
	return NULL;
}

/* SCH-11: an older fence is that of a suspension which was taken back. State lock held. */
static bool take_ack(struct vmm_sched *sched, const struct vmm_hw_ack *ack)
{
	struct vmm_hw_context *context = find_context(sched->hw, ack->kmd_context);

	if (!context || ack->fence > context->suspend_fence) {
		vmm_finding(
			sched->adapter->observe, "SCH-11", 0, context ? context->handle : 0,
			"SUSPEND_CONTEXT_COMPLETED with fence %llu: %s (the last one asked for is "
			"%llu)",
			(unsigned long long)ack->fence,
			context ? "nobody asked for it" : "hContext is no hardware context",
			context ? (unsigned long long)context->suspend_fence : 0ull);
		return false;
	}
	if (ack->fence < context->suspend_fence || context->state != VMM_HW_SUSPENDING)
		return false;
	vmm_hw_suspended_locked(context);
	return true;
}

static bool take_acks(struct vmm_sched *sched)
{
	struct vmm_hw *hw = sched->hw;
	bool any = false;

	while (atomic_load(&hw->ack_tail) != atomic_load(&hw->ack_head)) {
		struct vmm_hw_ack ack = hw->ack[atomic_load(&hw->ack_tail) % VMM_HW_REPORTS_MAX];

		atomic_fetch_add(&hw->ack_tail, 1);
		any |= take_ack(sched, &ack);
	}
	return any;
}

static struct vmm_hw_context *faulted(const struct vmm_hw *hw,
				      const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	uint32_t flags = (uint32_t)data->HwQueuePageFaulted.PageFaultFlags;
	struct vmm_list *at, *link;

	if (flags & DXGK_PAGE_FAULT_FENCE_INVALID)
		return flags & DXGK_PAGE_FAULT_HW_CONTEXT_VALID
			       ? find_context(hw, data->HwQueuePageFaulted.FaultedHwContext)
			       : NULL;
	vmm_list_for_each (at, &hw->contexts) {
		struct vmm_hw_context *context = vmm_container_of(at, struct vmm_hw_context, link);

		vmm_list_for_each (link, &context->queues)
			if (vmm_container_of(link, struct vmm_hw_queue, link)->kmd_queue ==
			    data->HwQueuePageFaulted.FaultedHwQueue)
				return context;
	}
	return NULL;
}

static void take_fault(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
{
	struct vmm_adapter *adapter = sched->adapter;
	const struct vmm_hw_context *context = faulted(sched->hw, data);
	const struct vmm_timeout timeout = {
		.node = data->HwQueuePageFaulted.NodeOrdinal,
		.fence = (uint32_t)data->HwQueuePageFaulted.FaultedFenceId,
		.hw = context};
	const uint32_t reset = DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED |
			       DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED |
			       DXGK_PAGE_FAULT_FATAL_HARDWARE_ERROR;

	vmm_reason(adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		   context ? context->device->process->id : 0, context ? context->handle : 0,
		   "HWQUEUE_PAGE_FAULTED on node %u, command %llu, address 0x%llx, flags 0x%x: %s",
		   timeout.node, (unsigned long long)data->HwQueuePageFaulted.FaultedFenceId,
		   (unsigned long long)data->HwQueuePageFaulted.FaultedVirtualAddress,
		   (unsigned)data->HwQueuePageFaulted.PageFaultFlags,
		   context ? "the device is in error" : "it names no queue or context");
	if (context)
		vmm_device_fail(context->device, VMM_DEVICE_FAULT);
	if ((uint32_t)data->HwQueuePageFaulted.PageFaultFlags & reset)
		vmm_hw_want_reset_locked(sched, &timeout);
}

bool vmm_hw_reported(struct vmm_sched *sched)
{
	struct vmm_hw *hw = sched->hw;
	bool signaled, moved = false;

	if (vmm_likely(!hw))
		return false;
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	moved |= take_acks(sched);
	while (atomic_load(&hw->fault_tail) != atomic_load(&hw->fault_head)) {
		take_fault(sched, &hw->fault[atomic_load(&hw->fault_tail) % VMM_HW_REPORTS_MAX]);
		atomic_fetch_add(&hw->fault_tail, 1);
		moved = true;
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	signaled = atomic_exchange(&hw->signaled, false);
	if (signaled)
		moved |= vmm_hw_scan(sched) != 0;
	return moved;
}
