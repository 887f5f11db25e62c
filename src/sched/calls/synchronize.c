/* SPDX-License-Identifier: MIT */
/*
 * The call that queues a wait or a signal in a context (SYN-25), and the end of a context's steps
 * (steps.c).
 */
#include "sched/calls/calls.h"

NTSTATUS vmm_sched_synchronize(struct vmm_context *context, const struct vmm_sched_sync *sync)
{
	bool released;

	vmm_assert(vmm_context_is_valid(context));
	NTSTATUS status = vmm_steps_queue(context, sync, &released);
	if (vmm_unlikely(released))
		vmm_prepare_pump(context->device->adapter);
	return status;
}

void vmm_steps_end(struct vmm_context *context)
{
	struct vmm_adapter *adapter = context->device->adapter;
	bool drained = false;

	vmm_steps_give_up(context);
	while (!drained) {
		uint32_t seen = atomic_load(&adapter->progress);

		vmm_steps_poll(adapter->sched);
		vmm_state_lock(adapter);
		drained = vmm_list_empty(&context->steps.queue) && !context->steps.advancing;
		vmm_state_unlock(adapter);
		if (!drained && !vmm_ok(vmm_wait_progress(adapter, seen, VIDMM_WAIT_DESTROY)))
			vmm_sched_abandon(adapter);
	}
	vmm_sync_owner_end(context->device->process->world, &context->steps.owner);
}
