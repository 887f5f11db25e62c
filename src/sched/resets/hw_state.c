/* SPDX-License-Identifier: MIT */
/*
 * Look-ups of hardware contexts and queues, and the changes of their state that several files make.
 */
#include "sched/resets/hw_private.h"
#include "sched/resets/resets.h"

struct vmm_hw_context *vmm_hw_find_context_locked(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_process_lock(process);
	struct vmm_hw_context *context =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_HW_CONTEXT);
	if (context && context->device != device)
		context = NULL;
	if (!context)
		vmm_finding(process->world->observe, "SYN-23", process->id, handle,
			    "0x%08x is not a live hardware context of device 0x%08x (%s)", handle,
			    device->handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_HW_CONTEXT));
	vmm_process_unlock(process);
	return context;
}

struct vmm_hw_queue *vmm_hw_find_queue_locked(struct vmm_device *device, uint32_t handle)
{
	struct vmm_process *process = device->process;

	vmm_assert_held(&device->adapter->paging_lock);
	vmm_process_lock(process);
	struct vmm_hw_queue *queue =
		vmm_handle_lookup(&process->handles, handle, VMM_HANDLE_HW_QUEUE);
	if (queue && queue->context->device != device)
		queue = NULL;
	if (!queue)
		vmm_finding(process->world->observe, "SYN-23", process->id, handle,
			    "0x%08x is not a live hardware queue of device 0x%08x (%s)", handle,
			    device->handle,
			    vmm_handle_explain(&process->handles, handle, VMM_HANDLE_HW_QUEUE));
	vmm_process_unlock(process);
	return queue;
}

bool vmm_hw_is_running_locked(const struct vmm_hw_context *context)
{
	struct vmm_list *at;

	vmm_assert_held(&context->device->adapter->state_lock);
	vmm_list_for_each (at, &context->queues)
		if (vmm_container_of(at, struct vmm_hw_queue, link)->running_count)
			return context->state == VMM_HW_RUNNING;
	return false;
}

void vmm_hw_suspended_locked(struct vmm_hw_context *context)
{
	struct vmm_list *at, *link;

	vmm_assert_held(&context->device->adapter->state_lock);
	context->state = VMM_HW_SUSPENDED;
	vmm_list_for_each (at, &context->queues) {
		const struct vmm_hw_queue *queue = vmm_container_of(at, struct vmm_hw_queue, link);

		vmm_list_for_each (link, &queue->running)
			vmm_hw_release_locked(vmm_container_of(link, struct vmm_hw_packet, link));
	}
}

void vmm_hw_want_reset_locked(struct vmm_sched *sched, const struct vmm_timeout *timeout)
{
	struct vmm_hw_engine *e = &sched->hw->engine[timeout->node];

	vmm_assert_held(&sched->adapter->state_lock);
	if (e->wanted || e->running || e->failed)
		return;
	e->wanted = true;
	e->since_ns = vmm_os_now_ns(sched->adapter->os);
	e->timeout = *timeout;
	atomic_fetch_add(&sched->chores, 1);
	atomic_fetch_add(&sched->kicks, 1);
}
