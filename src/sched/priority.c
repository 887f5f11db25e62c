/* SPDX-License-Identifier: MIT */
/*
 * Priorities of contexts and processes (SCH-01 to SCH-04), and the single order of levels computed
 * from them. From lowest to highest:
 *
 *   idle      relative -7 or absolute 0: ordered by the class of the process
 *   relative  relative -6 to 7, or absolute 1, which counts as relative 0: ordered by the class of
 *             the process, then by the context's priority
 *   real time absolute 16 to 30, whatever the class of the process
 */
#include "sched/sched_private.h"

#define ABSOLUTE       0x40000000
#define ABSOLUTE_MASK  0x1F
#define CLASSES        6u /* D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE to _REALTIME */
#define RELATIVE_LEAST (-7)
#define RELATIVE_MOST  7
#define RELATIVES      14u /* relative priorities without -7, which is idle */
#define SOFT_LEAST     16
#define HARD           30

#define LEVEL_RELATIVE  CLASSES
#define LEVEL_REAL_TIME (LEVEL_RELATIVE + CLASSES * RELATIVES)

_Static_assert(LEVEL_REAL_TIME + HARD - SOFT_LEAST + 1 == VMM_LEVELS, "levels of priorities");

static uint32_t relative_level(const struct vmm_context *context, int32_t priority)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t class = atomic_load_explicit(&context->device->process->priority_class,
					      memory_order_relaxed);

	vmm_assert_held(&context->device->adapter->state_lock);
	if (priority == RELATIVE_LEAST)
		return class;
	return LEVEL_RELATIVE + class * RELATIVES + (uint32_t)(priority - RELATIVE_LEAST - 1);
}

uint32_t vmm_priority_level(const struct vmm_context *context)
{
	int32_t priority = atomic_load_explicit(&context->turn.priority, memory_order_relaxed);

	vmm_assert_held(&context->device->adapter->state_lock);
	if (vmm_likely(!(priority & ABSOLUTE) || priority < 0))
		return relative_level(context, priority);
	priority &= ABSOLUTE_MASK;
	if (priority < SOFT_LEAST)
		return relative_level(context, priority ? 0 : RELATIVE_LEAST);
	return LEVEL_REAL_TIME + (uint32_t)(priority - SOFT_LEAST);
}

bool vmm_level_may_starve(uint32_t level)
{
	/* idle contexts, and contexts of a process of the idle class */
	return level < LEVEL_RELATIVE + RELATIVES;
}

bool vmm_level_never_yields(uint32_t level)
{
	return level == VMM_LEVELS - 1;
}

/* ---- priorities set by clients ---- */

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
	int32_t level = priority & ABSOLUTE_MASK;
	int32_t before = atomic_load(&context->turn.priority);

	if (!context->device->adapter->wddm2)
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "absolute levels need WDDM 2.0");
	if (priority & ~(ABSOLUTE | ABSOLUTE_MASK))
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "bits outside the absolute level (bits 0 to 4) are set");
	if ((level > 1 && level < SOFT_LEAST) || level > HARD)
		return refuse_priority(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
				       "absolute levels 2 to 15 are reserved and 31 is internal");
	if (level < SOFT_LEAST || atomic_load(&context->device->process->may_raise) ||
	    (before > 0 && before & ABSOLUTE && (before & ABSOLUTE_MASK) >= level))
		return STATUS_SUCCESS;
	return refuse_priority(context, "SCH-02", STATUS_ACCESS_DENIED, priority,
			       "its process does not hold the increase-priority privilege");
}

NTSTATUS vmm_sched_set_priority(struct vmm_context *context, int32_t priority)
{
	NTSTATUS status = STATUS_SUCCESS;

	vmm_assert(vmm_context_is_valid(context));
	if (priority > 0 && priority & ABSOLUTE)
		status = check_absolute(context, priority);
	else if (priority < RELATIVE_LEAST || priority > RELATIVE_MOST)
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

	if (class >= CLASSES)
		return vmm_refuse_rule(
			process->world->observe, STATUS_INVALID_PARAMETER, "SCH-04", process->id, 0,
			"scheduling priority class %u for process %u refused: a class must be 0 "
			"to %u",
			class, process->id, CLASSES - 1);
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
