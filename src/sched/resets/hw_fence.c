/* SPDX-License-Identifier: MIT */
/*
 * Progress of hardware queues (MFN-37, SUB-27). The GPU or its miniport stores the id of the newest
 * complete command into the queue's 64-bit progress fence, and then interrupts. A value completes
 * all commands up to it. The DPC reads the fences of all queues. It also applies the other reports
 * about queues and contexts: answered suspensions and page faults.
 */
#include "sched/resets/hw_private.h"
#include "sched/resets/resets.h"

static bool reserve_slot(_Atomic uint32_t *head, const _Atomic uint32_t *tail, uint32_t *slot)
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
		if (!reserve_slot(&hw->ack_head, &hw->ack_tail, &slot))
			return false; /* more answers than requests */
		hw->ack[slot] =
			(struct vmm_hw_ack){data->SuspendContextCompleted.hContext,
					    data->SuspendContextCompleted.ContextSuspendFence};
		atomic_fetch_add(&hw->ack_head, 1);
		return true;
	}
	if (data->InterruptType != DXGK_INTERRUPT_HWQUEUE_PAGE_FAULTED)
		return false;
	if (reserve_slot(&hw->fault_head, &hw->fault_tail, &slot)) {
		hw->fault[slot] = *data;
		atomic_fetch_add(&hw->fault_head, 1);
	} else {
		atomic_fetch_add(&hw->faults_dropped, 1);
	}
	return true;
}

/*
 * commands can store to the fence, so a wrong value is the client's mistake. Nothing says
 * any more which of its commands are complete: the worker takes the context off the GPU.
 */
static void distrust(struct vmm_hw_queue *queue, uint64_t value) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_hw_context *context = queue->context;
	struct vmm_device *device = context->device;

	vmm_assert_held(&device->adapter->state_lock);
	if (context->distrusted)
		return;
	vmm_finding(device->adapter->observe, "Q-210", device->process->id, queue->handle,
		    "commands of hardware queue 0x%08x stored %llu to its progress fence: it was "
		    "%llu, and the newest submitted command has id %llu: the device is in error",
		    queue->handle, (unsigned long long)value, (unsigned long long)queue->last_value,
		    (unsigned long long)queue->submitted_id);
	vmm_device_fail(device, VMM_DEVICE_FAULT);
	context->distrusted = true;
	atomic_store(&device->adapter->sched->hw->distrusted, true);
}

/*
 * SUB-27: returns false, with a finding, for a fence value that has decreased or is larger than
 * every submitted id.
 */
static bool is_good_value(struct vmm_hw_queue *queue, uint64_t value)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_adapter *adapter = queue->context->device->adapter;

	vmm_assert_held(&queue->context->device->adapter->state_lock);
	if (vmm_likely(value >= queue->last_value && value <= queue->submitted_id))
		return true;
	if (vmm_device_lost(queue->context->device)) /* TDRS-14 */
		return false;
	if (vmm_sync_gpu_address(queue->fence)) {
		distrust(queue, value);
		return false;
	}
	vmm_finding(
		adapter->observe, "SUB-27", queue->context->device->process->id, queue->handle,
		"the progress fence of hardware queue 0x%08x is %llu: it was %llu, and the newest "
		"submitted command has id %llu: it must be between the two",
		queue->handle, (unsigned long long)value, (unsigned long long)queue->last_value,
		(unsigned long long)queue->submitted_id);
	vmm_port_fatal(adapter->port, 0x119, 0x1, value, queue->submitted_id);
	return false;
}

static uint32_t retire_queue(struct vmm_hw_queue *queue, uint64_t value)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t count = 0;

	vmm_assert_held(&queue->context->device->adapter->state_lock);
	queue->last_value = value;
	while (!vmm_list_empty(&queue->running) && vmm_hw_first(&queue->running)->id <= value) {
		vmm_hw_retire_locked(vmm_hw_first(&queue->running));
		count++;
	}
	return count;
}

#define CHANGED_MAX 16u
struct scan {
	uint32_t retired, count;
	struct vmm_sync_object *changed[CHANGED_MAX]; /* fences that changed; a reference each */
};

/*
 * Retires what the fence covers; its waiters are woken later, without the lock. Returns false if
 * `scan` is full: the caller scans again.
 */
static bool scan_queue(struct vmm_hw_queue *queue, struct scan *scan)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint64_t value = vmm_sync_owned_value(queue->fence);

	vmm_assert_held(&queue->context->device->adapter->state_lock);
	if (value == queue->last_value || !is_good_value(queue, value))
		return true;
	if (scan->count == CHANGED_MAX)
		return false;
	uint32_t retired = retire_queue(queue, value);
	scan->retired += retired;
	scan->changed[scan->count++] = vmm_sync_owned_get(queue->fence);
	vmm_event(queue->context->device->adapter->observe, VIDMM_EVENT_FENCE,
		  queue->context->device->process->id, queue->handle, 0, value,
		  queue->context->node, retired, 0);
	return true;
}

static bool scan_locked(struct vmm_sched *sched, struct scan *scan)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *at, *link;
	bool all = true;

	vmm_assert_held(&sched->adapter->state_lock);
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

		vmm_state_lock(sched->adapter);
		all = scan_locked(sched, &scan);
		vmm_state_unlock(sched->adapter);
		for (uint32_t i = 0; i < scan.count; i++)
			vmm_sync_owned_notify(scan.changed[i]);
		retired += scan.retired;
	} while (!all);
	if (vmm_unlikely(atomic_load(&sched->hw->distrusted)))
		vmm_worker_wake(sched);
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

/*
 * SCH-11: completes a suspension. An older fence belongs to a suspension that was canceled. State
 * lock held.
 */
static bool apply_ack(struct vmm_sched *sched, const struct vmm_hw_ack *ack)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_hw_context *context = find_context(sched->hw, ack->kmd_context);

	vmm_assert_held(&sched->adapter->state_lock);
	if (!context || ack->fence > context->suspend_fence) {
		vmm_finding(
			sched->adapter->observe, "SCH-11", 0, context ? context->handle : 0,
			"SUSPEND_CONTEXT_COMPLETED with fence %llu: %s (the newest requested is "
			"%llu)",
			(unsigned long long)ack->fence,
			context ? "it was never requested" : "hContext is no hardware context",
			context ? (unsigned long long)context->suspend_fence : 0ull);
		return false;
	}
	if (ack->fence < context->suspend_fence || context->state != VMM_HW_SUSPENDING)
		return false;
	vmm_hw_suspended_locked(context);
	return true;
}

static bool apply_acks(struct vmm_sched *sched) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_hw *hw = sched->hw;
	bool any = false;

	vmm_assert_held(&sched->adapter->state_lock);
	while (atomic_load(&hw->ack_tail) != atomic_load(&hw->ack_head)) {
		struct vmm_hw_ack ack = hw->ack[atomic_load(&hw->ack_tail) % VMM_HW_REPORTS_MAX];

		atomic_fetch_add(&hw->ack_tail, 1);
		any |= apply_ack(sched, &ack);
	}
	return any;
}

static struct vmm_hw_context *faulted_context(const struct vmm_hw *hw,
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

static void apply_fault(struct vmm_sched *sched, const DXGKARGCB_NOTIFY_INTERRUPT_DATA *data)
	VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	const struct vmm_hw_context *context = faulted_context(sched->hw, data);
	const struct vmm_timeout timeout = {
		.node = data->HwQueuePageFaulted.NodeOrdinal,
		.fence = (uint32_t)data->HwQueuePageFaulted.FaultedFenceId,
		.hw = context};
	const uint32_t reset = DXGK_PAGE_FAULT_ENGINE_RESET_REQUIRED |
			       DXGK_PAGE_FAULT_ADAPTER_RESET_REQUIRED |
			       DXGK_PAGE_FAULT_FATAL_HARDWARE_ERROR;

	vmm_assert_held(&sched->adapter->state_lock);
	vmm_reason(adapter->observe, STATUS_GRAPHICS_GPU_EXCEPTION_ON_DEVICE,
		   context ? context->device->process->id : 0, context ? context->handle : 0,
		   "HWQUEUE_PAGE_FAULTED on node %u, command %llu, address 0x%llx, flags 0x%x: %s",
		   timeout.node, (unsigned long long)data->HwQueuePageFaulted.FaultedFenceId,
		   (unsigned long long)data->HwQueuePageFaulted.FaultedVirtualAddress,
		   (unsigned)data->HwQueuePageFaulted.PageFaultFlags,
		   context ? "the device is in error" : "it names no known queue or context");
	if (context)
		vmm_device_fail(context->device, VMM_DEVICE_FAULT);
	if ((uint32_t)data->HwQueuePageFaulted.PageFaultFlags & reset)
		vmm_hw_want_reset_locked(sched, &timeout);
}

/* The devices of dropped faults stay without the error; the reports in the ring are applied. */
static void report_dropped_faults(struct vmm_sched *sched)
{
	uint32_t dropped = atomic_exchange(&sched->hw->faults_dropped, 0);

	if (vmm_unlikely(dropped))
		vmm_reason(
			sched->adapter->observe, VMM_UNSUCCESSFUL, 0, 0,
			"HWQUEUE_PAGE_FAULTED: %u reports are dropped: at most %u can be pending "
			"between two DPCs",
			dropped, VMM_HW_REPORTS_MAX);
}

bool vmm_hw_reported(struct vmm_sched *sched)
{
	struct vmm_hw *hw = sched->hw;
	bool signaled, moved = false;

	vmm_assert(hw);
	vmm_state_lock(sched->adapter);
	moved |= apply_acks(sched);
	while (atomic_load(&hw->fault_tail) != atomic_load(&hw->fault_head)) {
		apply_fault(sched, &hw->fault[atomic_load(&hw->fault_tail) % VMM_HW_REPORTS_MAX]);
		atomic_fetch_add(&hw->fault_tail, 1);
		moved = true;
	}
	vmm_state_unlock(sched->adapter);
	report_dropped_faults(sched);
	signaled = atomic_exchange(&hw->signaled, false);
	if (signaled)
		moved |= vmm_hw_scan(sched) != 0;
	return moved;
}
