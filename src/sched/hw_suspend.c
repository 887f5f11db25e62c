/* SPDX-License-Identifier: MIT */
/*
 * Contexts that make way (SCH-11). The GPU schedules them by itself, so nobody knows when it is done with what it has of them; what
 * their commands hold can only move once they are off it.
 *
 *   RUNNING --SuspendContext--> SUSPENDING --its answer, or the interrupt with the same fence--> SUSPENDED: their numbers are given back
 *   SUSPENDED --the worker, once who wanted the memory has had his turn: the list is there again--> RESUMING
 *   RESUMING --its paging is complete: ResumeContext--> RUNNING
 */
#include "sched/hw_private.h"

void vmm_hw_suspended_locked(struct vmm_hw_context *context)
{
	struct vmm_list *at, *link;

	context->state = VMM_HW_SUSPENDED;
	vmm_list_for_each (at, &context->queues) {
		const struct vmm_hw_queue *queue = vmm_container_of(at, struct vmm_hw_queue, link);

		vmm_list_for_each (link, &queue->running)
			vmm_hw_release_locked(vmm_container_of(link, struct vmm_hw_packet, link));
	}
}

static void failed(struct vmm_hw_context *context, const char *ddi, NTSTATUS status)
{
	struct vmm_device *device = context->device;
	struct vmm_sched *sched = device->adapter->sched;
	const struct vmm_timeout timeout = {.node = context->node, .hw = context};

	vmm_finding(device->adapter->observe, "SCH-11", device->process->id, context->handle,
		    "%s returned 0x%08x for hardware context 0x%08x: its engine is reset", ddi,
		    (unsigned)status, context->handle);
	vmm_os_mutex_lock(&device->adapter->state_lock);
	vmm_hw_want_reset_locked(sched, &timeout);
	vmm_os_mutex_unlock(&device->adapter->state_lock);
}

bool vmm_hw_suspend(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	DXGKARG_SUSPENDCONTEXT args = {.hContext = context->kmd_context};

	vmm_os_mutex_lock(&adapter->state_lock);
	context->state = VMM_HW_SUSPENDING;
	context->suspended_ns = vmm_os_now_ns(adapter->os);
	args.contextSuspendFence = ++context->suspend_fence;
	vmm_os_mutex_unlock(&adapter->state_lock);
	atomic_fetch_add(&adapter->sched->hw->waiting, 1);
	NTSTATUS status = vmm_port_suspend_context(adapter->port, &args);

	if (status == STATUS_PENDING) {
		vmm_watch_submitted(adapter->sched);
		return true;
	}
	if (status == STATUS_SUCCESS) {
		vmm_os_mutex_lock(&adapter->state_lock);
		if (context->state == VMM_HW_SUSPENDING)
			vmm_hw_suspended_locked(context);
		vmm_os_mutex_unlock(&adapter->state_lock);
		vmm_progress_signal(adapter);
		return true;
	}
	if (status != STATUS_DEVICE_REMOVED) /* that: an adapter's reset, which settles it */
		failed(context, "DxgkDdiSuspendContext", status);
	return false;
}

/* State lock held. What is held and not with the GPU can let go at once; did something? */
static bool let_go(struct vmm_hw_context *context)
{
	struct vmm_list *at, *link;
	bool any = context->state == VMM_HW_RESUMING;

	vmm_list_for_each (at, &context->queues) {
		const struct vmm_hw_queue *queue = vmm_container_of(at, struct vmm_hw_queue, link);

		vmm_list_for_each (link, &queue->waiting) {
			struct vmm_hw_packet *packet =
				vmm_container_of(link, struct vmm_hw_packet, link);

			any |= packet->held;
			vmm_hw_release_locked(packet);
		}
	}
	if (context->state == VMM_HW_RESUMING)
		vmm_hw_suspended_locked(context);
	return any;
}

/* State lock held. */
static bool is_at_work(const struct vmm_hw_context *context)
{
	struct vmm_list *at;

	vmm_list_for_each (at, &context->queues)
		if (vmm_container_of(at, struct vmm_hw_queue, link)->running_count)
			return context->state == VMM_HW_RUNNING;
	return false;
}

static void suspend_all(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;
	bool released = false;

	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		vmm_os_mutex_lock(&adapter->state_lock);
		released |= let_go(context);
		bool at_work = is_at_work(context);
		vmm_os_mutex_unlock(&adapter->state_lock);
		if (at_work && !atomic_load(&adapter->removed) &&
		    !atomic_load(&adapter->recovering))
			(void)vmm_hw_suspend(context);
	}
	if (released)
		vmm_progress_signal(adapter);
}

bool vmm_hw_make_way_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	if (vmm_likely(!sched->hw) || !vmm_port_at_passive(adapter->port) ||
	    !atomic_exchange(&adapter->hw_in_the_way, false))
		return false;
	uint32_t before = atomic_load(&adapter->progress);

	suspend_all(sched);
	return atomic_load(&adapter->progress) != before;
}

bool vmm_hw_halt_locked(struct vmm_sched *sched)
{
	struct vmm_list *link;
	bool settled = true;

	if (vmm_likely(!sched->hw))
		return true;
	suspend_all(sched);
	vmm_os_mutex_lock(&sched->adapter->state_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		settled &= context->state != VMM_HW_SUSPENDING && !is_at_work(context);
	}
	vmm_os_mutex_unlock(&sched->adapter->state_lock);
	return settled;
}

/* ---- and back ---- */

/* What the GPU has of it counts again. Returns the newest number; 0: there is nothing. */
static uint64_t hold_running(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[vmm_hw_timeline(adapter)];
	struct vmm_list *at, *link;
	uint64_t sequence = 0;

	vmm_os_mutex_lock(&adapter->state_lock);
	vmm_list_for_each (at, &context->queues) {
		const struct vmm_hw_queue *queue = vmm_container_of(at, struct vmm_hw_queue, link);

		vmm_list_for_each (link, &queue->running) {
			struct vmm_hw_packet *packet =
				vmm_container_of(link, struct vmm_hw_packet, link);

			sequence = atomic_load(&timeline->queued) + 1;
			packet->work = (struct vmm_work){.sequence = sequence,
							 .device = context->device,
							 .prepared = true,
							 .submitted = true};
			packet->held = true;
			vmm_work_add_locked(timeline, &packet->work);
		}
	}
	context->state = VMM_HW_RESUMING;
	vmm_os_mutex_unlock(&adapter->state_lock);
	return sequence;
}

/* VMM_OK: it has its memory again, or will have. */
static vmm_status come_back(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_hw *hw = adapter->sched->hw;
	struct vmm_residency_set set;

	if (!vmm_hw_may_gather(context))
		return VMM_PENDING;
	vmm_status status = vmm_hw_gather_locked(context, &set);

	hw->starving = status == VMM_PENDING ? context->device : NULL;
	if (status != VMM_OK)
		return status;
	uint64_t sequence = hold_running(context);
	context->paging_needed = 0;
	if (!sequence)
		return VMM_OK;
	atomic_store_explicit(&context->device->queued[vmm_hw_timeline(adapter)], sequence,
			      memory_order_relaxed);
	context->paging_needed = vmm_residency_use(&set, vmm_hw_timeline(adapter), sequence);
	vmm_memory_flush_locked(adapter);
	vmm_queue_drain_locked(adapter->sched);
	return VMM_OK;
}

static void run_again(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_list *link;

	NTSTATUS status = vmm_port_resume_context(adapter->port, context->kmd_context);
	if (status == STATUS_DEVICE_REMOVED)
		return;
	vmm_os_mutex_lock(&adapter->state_lock);
	context->state = VMM_HW_RUNNING;
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		queue->since_ns = vmm_os_now_ns(adapter->os);
		queue->looked = false;
	}
	vmm_os_mutex_unlock(&adapter->state_lock);
	atomic_fetch_sub(&adapter->sched->hw->waiting, 1);
	vmm_watch_submitted(adapter->sched);
	if (!NT_SUCCESS(status))
		failed(context, "DxgkDdiResumeContext", status);
}

static void resume(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;

	if (atomic_load(&context->device->error) != VMM_DEVICE_OK ||
	    atomic_load(&adapter->sched->hw->resetting) >> context->node & 1)
		return; /* it stays off the GPU */
	if (context->state == VMM_HW_SUSPENDED) {
		vmm_status status = come_back(context);

		if (status == VMM_NO_VIDEO_MEMORY ||
		    status == STATUS_GRAPHICS_ALLOCATION_CONTENT_LOST)
			vmm_device_fail(context->device, VMM_DEVICE_OUT_OF_MEMORY);
		if (status != VMM_OK)
			return;
	}
	if (context->state == VMM_HW_RESUMING &&
	    vmm_timeline_done(adapter, adapter->paging_timeline, context->paging_needed))
		run_again(context);
}

void vmm_hw_resume_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		if (atomic_load(&adapter->removed) || atomic_load(&adapter->recovering) ||
		    atomic_load(&sched->halted))
			return;
		if (context->state != VMM_HW_RUNNING)
			resume(context);
	}
}

/* ---- the worker ---- */

/* While it waits on behalf of a packet: queues go on, but what made way for that packet does not come back. */
void vmm_hw_feed(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	if (vmm_likely(!sched->hw) || !atomic_load(&sched->hw->waiting))
		return;
	vmm_paging_lock(adapter);
	vmm_hw_pump_locked(sched);
	vmm_paging_unlock(adapter);
}

void vmm_hw_work(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	if (vmm_likely(!sched->hw))
		return;
	bool changed = atomic_exchange(&sched->hw->changed, false);
	if ((!changed && !atomic_load(&sched->hw->waiting)) || atomic_load(&sched->halted) ||
	    atomic_load(&adapter->removed))
		return;
	vmm_paging_lock(adapter);
	if (changed)
		vmm_hw_tell_all_locked(sched);
	if (atomic_load(&sched->hw->waiting)) {
		/* Whoever still wants memory says so again when he next looks; others had only asked. */
		atomic_store(&adapter->hw_in_the_way, false);
		vmm_hw_pump_locked(sched);
		vmm_hw_resume_locked(sched);
		vmm_hw_pump_locked(sched);
	}
	vmm_paging_unlock(adapter);
}

bool vmm_hw_waits(const struct vmm_sched *sched)
{
	return vmm_unlikely(sched->hw != NULL) && atomic_load(&sched->hw->waiting);
}
