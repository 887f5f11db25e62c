/* SPDX-License-Identifier: MIT */
/* The priorities of contexts and processes that clients set (SCH-01 to SCH-04). */
#include "sched/state/levels.h"
#include "sched/calls/calls.h"

static NTSTATUS refuse_priority(const struct vmm_context *context, const char *rule,
				NTSTATUS status, int32_t priority, const char *why)
{
	return vmm_refuse_rule(context->device->adapter->observe, status, rule,
			       context->device->process->id, context->handle,
			       "scheduling priority %d (0x%x) for context 0x%08x refused: %s",
			       priority, (unsigned)priority, context->handle, why);
}

static NTSTATUS check_absolute(const struct vmm_context *context, int32_t priority)
{
	int32_t level = priority & VMM_PRIORITY_ABSOLUTE_MASK;
	int32_t before = atomic_load(&context->turn.priority);

	if (!context->device->adapter->sched->caps->absolute_priorities)
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "absolute levels need WDDM 2.0");
	if (priority & ~(VMM_PRIORITY_ABSOLUTE | VMM_PRIORITY_ABSOLUTE_MASK))
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "bits outside the absolute level (bits 0 to 4) are set");
	if ((level > 1 && level < VMM_PRIORITY_SOFT_LEAST) || level > VMM_PRIORITY_HARD)
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "absolute levels 2 to 15 are reserved and 31 is internal");
	if (level < VMM_PRIORITY_SOFT_LEAST || atomic_load(&context->device->process->may_raise) ||
	    (before > 0 && before & VMM_PRIORITY_ABSOLUTE &&
	     (before & VMM_PRIORITY_ABSOLUTE_MASK) >= level))
		return STATUS_SUCCESS;
	return refuse_priority(context, "SCH-02", STATUS_ACCESS_DENIED, priority,
			       "its process does not hold the increase-priority privilege");
}

NTSTATUS vmm_sched_set_priority(struct vmm_context *context, int32_t priority)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert(vmm_context_is_valid(context));
	if (priority > 0 && priority & VMM_PRIORITY_ABSOLUTE)
		status = check_absolute(context, priority);
	else if (priority < VMM_PRIORITY_RELATIVE_LEAST || priority > VMM_PRIORITY_RELATIVE_MOST)
		status = refuse_priority(context, "SCH-01", STATUS_INVALID_PARAMETER, priority,
					 "a relative priority must be -7 to 7");
	if (!NT_SUCCESS(status))
		return status;
	atomic_store(&context->turn.priority, priority);
	vmm_sched_kick(context->device->adapter); /* its next packet may be urgent now */
	return STATUS_SUCCESS;
}

int32_t vmm_sched_priority(const struct vmm_context *context)
{
	return atomic_load(&context->turn.priority);
}

NTSTATUS vmm_sched_set_in_process_priority(struct vmm_context *context, int32_t priority)
{
	vmm_assert(vmm_context_is_valid(context));
	if (priority != 0 && priority != 1)
		return refuse_priority(
			context, "SCH-03", STATUS_INVALID_PARAMETER, priority,
			"an in-process priority must be 0 (as others) or 1 (ahead of them)");
	atomic_store(&context->turn.in_process, (uint32_t)priority);
	return STATUS_SUCCESS;
}

int32_t vmm_sched_in_process_priority(const struct vmm_context *context)
{
	return (int32_t)atomic_load(&context->turn.in_process);
}

static const void *nth_device(struct vmm_process *process, uint32_t index)
{
	struct vmm_list *link;
	const void *hazard = NULL;
	uint32_t i = 0;

	vmm_process_lock(process);
	vmm_list_for_each (link, &process->devices)
		if (i++ == index)
			hazard = vmm_container_of(link, struct vmm_device, process_link)->hazard;
	vmm_process_unlock(process);
	return hazard;
}

NTSTATUS vmm_sched_set_priority_class(struct vmm_process *process, uint32_t class)
{
	const void *hazard;

	if (class >= VMM_PRIORITY_CLASSES)
		return vmm_refuse_rule(
			process->world->observe, STATUS_INVALID_PARAMETER, "SCH-04", process->id, 0,
			"scheduling priority class %u for process %u refused: a class must be 0 "
			"to %u",
			class, process->id, VMM_PRIORITY_CLASSES - 1);
	atomic_store(&process->priority_class, class);
	for (uint32_t i = 0; (hazard = nth_device(process, i)) != NULL; i++) {
		struct vmm_hazard_guard guard;
		const struct vmm_device *device =
			vmm_hazard_enter(&guard, VMM_HAZARD_DEVICE, hazard);

		if (!device) /* the device is ending */
			continue;
		vmm_sched_kick(device->adapter);
		vmm_hw_class_changed(device->adapter->sched);
		vmm_hazard_leave(&guard);
	}
	return STATUS_SUCCESS;
}
