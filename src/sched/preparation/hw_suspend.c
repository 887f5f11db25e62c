/* SPDX-License-Identifier: MIT */
/*
 * Suspension of hardware contexts (SCH-11). The GPU schedules them itself, so when it completes
 * their commands is unknown. The memory that the commands use can move only while the context is
 * off the GPU.
 *
 *   RUNNING     paging needs the memory: DxgkDdiSuspendContext -> SUSPENDING
 *   SUSPENDING  the DDI returns success, or the interrupt reports the fence -> SUSPENDED,
 *               which completes the commands' numbers on the timeline
 *   SUSPENDED   after paging is done with the memory, the worker makes the residency list
 *               resident -> RESUMING, with new numbers
 *   RESUMING    the paging for it is complete: DxgkDdiResumeContext -> RUNNING
 */
#include "sched/resets/hw_private.h"
#include "sched/preparation/preparation.h"

static void ddi_failed(struct vmm_hw_context *context, const char *ddi, NTSTATUS status)
{
	struct vmm_device *device = context->device;
	struct vmm_sched *sched = device->adapter->sched;
	const struct vmm_timeout timeout = {.node = context->node, .hw = context};

	vmm_finding(device->adapter->observe, "SCH-11", device->process->id, context->handle,
		    "%s returned 0x%08x for hardware context 0x%08x: its engine is reset", ddi,
		    (unsigned)status, context->handle);
	vmm_state_lock(device->adapter);
	vmm_hw_want_reset_locked(sched, &timeout);
	vmm_state_unlock(device->adapter);
}

bool vmm_hw_suspend(struct vmm_hw_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	DXGKARG_SUSPENDCONTEXT args = {.hContext = context->kmd_context};

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_state_lock(adapter);
	context->state = VMM_HW_SUSPENDING;
	context->suspended_ns = vmm_os_now_ns(adapter->os);
	args.contextSuspendFence = ++context->suspend_fence;
	vmm_state_unlock(adapter);
	atomic_fetch_add(&adapter->sched->hw->waiting, 1);
	NTSTATUS status = vmm_port_suspend_context(adapter->port, &args);

	if (status == STATUS_PENDING) {
		vmm_watch_submitted(adapter->sched);
		return true;
	}
	if (status == STATUS_SUCCESS) {
		vmm_state_lock(adapter);
		if (context->state == VMM_HW_SUSPENDING)
			vmm_hw_suspended_locked(context);
		vmm_state_unlock(adapter);
		vmm_progress_signal(adapter);
		return true;
	}
	if (status != STATUS_DEVICE_REMOVED) /* an adapter's reset ends the context's commands */
		ddi_failed(context, "DxgkDdiSuspendContext", status);
	return false;
}

/*
 * Releases the numbers of commands that the GPU does not have. Returns true if there were any.
 * State lock held.
 */
static bool release_waiting(struct vmm_hw_context *context) VMM_REQUIRES(vmm_state_lock_class)
{
	struct vmm_list *at, *link;
	bool any = context->state == VMM_HW_RESUMING;

	vmm_assert_held(&context->device->adapter->state_lock);
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

static void suspend_all(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;
	bool released = false;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		vmm_state_lock(adapter);
		released |= release_waiting(context);
		bool running = vmm_hw_is_running_locked(context);
		vmm_state_unlock(adapter);
		if (running && !atomic_load(&adapter->removed) &&
		    !atomic_load(&adapter->recovering))
			(void)vmm_hw_suspend(context);
	}
	if (released)
		vmm_progress_signal(adapter);
}

bool vmm_hw_suspend_for_memory_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;

	vmm_assert_held(&sched->adapter->paging_lock);
	vmm_assert(sched->hw);
	if (!vmm_port_at_passive(adapter->port) ||
	    !atomic_exchange(&adapter->hw_blocks_eviction, false))
		return false;
	uint32_t before = atomic_load(&adapter->progress);

	suspend_all(sched);
	return atomic_load(&adapter->progress) != before;
}

bool vmm_hw_halt_locked(struct vmm_sched *sched)
{
	struct vmm_list *link;
	bool suspended = true;

	vmm_assert_held(&sched->adapter->paging_lock);
	if (vmm_likely(!sched->hw))
		return true;
	suspend_all(sched);
	vmm_state_lock(sched->adapter);
	vmm_list_for_each (link, &sched->hw->contexts) {
		const struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		suspended &=
			context->state != VMM_HW_SUSPENDING && !vmm_hw_is_running_locked(context);
	}
	vmm_state_unlock(sched->adapter);
	return suspended;
}

/* ---- resumption ---- */

/*
 * Gives the submitted commands new numbers on the timeline. Returns the newest; 0: there are no
 * such commands.
 */
static uint64_t hold_running(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_timeline *timeline = &adapter->timeline[vmm_hw_timeline(adapter)];
	struct vmm_list *at, *link;
	uint64_t sequence = 0;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_state_lock(adapter);
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
			vmm_work_add_locked(adapter, vmm_hw_timeline(adapter), &packet->work);
		}
	}
	context->state = VMM_HW_RESUMING;
	vmm_state_unlock(adapter);
	return sequence;
}

/* Makes the context's residency list resident. VMM_OK: it is, or the paging for it is queued. */
static vmm_status reserve_memory(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_residency_set set;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_status status = vmm_hw_gather_locked(context, &set);

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

static void resume_on_gpu(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->paging_lock);
	NTSTATUS status = vmm_port_resume_context(adapter->port, context->kmd_context);
	if (status == STATUS_DEVICE_REMOVED)
		return;
	vmm_state_lock(adapter);
	context->state = VMM_HW_RUNNING;
	vmm_list_for_each (link, &context->queues) {
		struct vmm_hw_queue *queue = vmm_container_of(link, struct vmm_hw_queue, link);

		queue->since_ns = vmm_os_now_ns(adapter->os);
		queue->fence_read = false;
	}
	vmm_state_unlock(adapter);
	atomic_fetch_sub(&adapter->sched->hw->waiting, 1);
	vmm_watch_submitted(adapter->sched);
	if (!NT_SUCCESS(status))
		ddi_failed(context, "DxgkDdiResumeContext", status);
}

/* A thread ends a queue whose commands the GPU has, and will not execute. */
static bool has_abandoned_queue(const struct vmm_hw_context *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_list_for_each (link, &context->queues)
		if (vmm_container_of(link, struct vmm_hw_queue, link)->abandoned)
			return true;
	return false;
}

/*
 * The device is in error: the context stays off the GPU for good. Its commands end with its queues.
 */
VMM_COLD static void stay_suspended(struct vmm_hw_context *context)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_assert_held(&context->device->adapter->paging_lock);
	vmm_state_lock(adapter);
	bool released = context->state == VMM_HW_RESUMING;
	if (released)
		vmm_hw_suspended_locked(context);
	vmm_state_unlock(adapter);
	if (released)
		vmm_progress_signal(adapter);
}

static void resume(struct vmm_hw_context *context) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_adapter *adapter = context->device->adapter;

	vmm_assert_held(&context->device->adapter->paging_lock);
	if (vmm_unlikely(atomic_load(&context->device->error) != VMM_DEVICE_OK)) {
		stay_suspended(context);
		return;
	}
	if (has_abandoned_queue(context) ||
	    atomic_load(&adapter->sched->hw->resetting) >> context->node & 1)
		return; /* the context stays off the GPU */
	if (context->state == VMM_HW_SUSPENDED && reserve_memory(context) != VMM_OK)
		return;
	if (context->state == VMM_HW_RESUMING &&
	    vmm_timeline_done(adapter, adapter->paging_timeline, context->paging_needed))
		resume_on_gpu(context);
}

void vmm_hw_resume_locked(struct vmm_sched *sched)
{
	struct vmm_adapter *adapter = sched->adapter;
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
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

/*
 * The worker waits on behalf of a packet: submits commands, but resumes no context that was
 * suspended for that packet.
 */
void vmm_hw_feed(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	if (vmm_likely(!sched->hw) || !atomic_load(&sched->hw->waiting))
		return;
	vmm_paging_lock(adapter);
	vmm_hw_pump_locked(sched);
	vmm_paging_commit(adapter);
}

/*
 * Takes contexts whose progress fences are wrong off the GPU, for good: their devices are in error.
 * (Q-210)
 */
VMM_COLD static void remove_distrusted(struct vmm_sched *sched) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_list *link;

	vmm_assert_held(&sched->adapter->paging_lock);
	atomic_store(&sched->hw->distrusted, false);
	if (atomic_load(&sched->adapter->recovering))
		return;
	vmm_list_for_each (link, &sched->hw->contexts) {
		struct vmm_hw_context *context =
			vmm_container_of(link, struct vmm_hw_context, link);

		vmm_state_lock(sched->adapter);
		bool leaves = context->distrusted && context->state == VMM_HW_RUNNING;
		vmm_state_unlock(sched->adapter);
		if (leaves)
			(void)vmm_hw_suspend(context);
	}
}

void vmm_hw_work(struct vmm_adapter *adapter)
{
	struct vmm_sched *sched = adapter->sched;

	if (vmm_likely(!sched->hw))
		return;
	bool changed = atomic_exchange(&sched->hw->changed, false);
	bool distrusted = atomic_load(&sched->hw->distrusted);
	if ((!changed && !distrusted && !atomic_load(&sched->hw->waiting)) ||
	    atomic_load(&sched->halted) || atomic_load(&adapter->removed))
		return;
	vmm_paging_lock(adapter);
	if (vmm_unlikely(distrusted))
		remove_distrusted(sched);
	if (changed)
		vmm_hw_send_all_properties_locked(sched);
	if (atomic_load(&sched->hw->waiting)) {
		/* Paging that still needs memory sets the flag again at its next attempt. */
		atomic_store(&adapter->hw_blocks_eviction, false);
		vmm_hw_pump_locked(sched);
		vmm_hw_resume_locked(sched);
		vmm_hw_pump_locked(sched);
	}
	vmm_paging_commit(adapter);
}

bool vmm_hw_waits(const struct vmm_sched *sched)
{
	vmm_assert(sched->hw);
	return atomic_load(&sched->hw->waiting);
}
