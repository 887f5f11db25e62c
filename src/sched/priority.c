/* SPDX-License-Identifier: MIT */
/*
 * Priorities of contexts and processes (SCH-01 to SCH-04), and the one order that comes of them, from the least:
 *
 *   idle      -7 or absolute 0: by the class of its process
 *   relative  -6 to 7, or absolute 1, which is 0: by the class of its process, then by itself
 *   real time absolute 16 to 30, whatever the process
 */
#include "sched/sched_private.h"

#define ABSOLUTE       0x40000000
#define ABSOLUTE_MASK  0x1F
#define CLASSES        6u /* D3DKMT_SCHEDULINGPRIORITYCLASS_IDLE to _REALTIME */
#define RELATIVE_LEAST (-7)
#define RELATIVE_MOST  7
#define RELATIVES      14u /* without the least, which is idle */
#define SOFT_LEAST     16
#define HARD           30

#define LEVEL_RELATIVE  CLASSES
#define LEVEL_REAL_TIME (LEVEL_RELATIVE + CLASSES * RELATIVES)

_Static_assert(LEVEL_REAL_TIME + HARD - SOFT_LEAST + 1 == VMM_LEVELS, "levels of priorities");

static uint32_t relative_level(const struct vmm_context *context, int32_t priority)
{
	uint32_t class = atomic_load_explicit(&context->device->process->priority_class,
					      memory_order_relaxed);

	if (priority == RELATIVE_LEAST)
		return class;
	return LEVEL_RELATIVE + class * RELATIVES + (uint32_t)(priority - RELATIVE_LEAST - 1);
}

uint32_t vmm_priority_level(const struct vmm_context *context)
{
	int32_t priority = atomic_load_explicit(&context->turn.priority, memory_order_relaxed);

	if (vmm_likely(!(priority & ABSOLUTE) || priority < 0))
		return relative_level(context, priority);
	priority &= ABSOLUTE_MASK;
	if (priority < SOFT_LEAST)
		return relative_level(context, priority ? 0 : RELATIVE_LEAST);
	return LEVEL_REAL_TIME + (uint32_t)(priority - SOFT_LEAST);
}

bool vmm_level_may_starve(uint32_t level)
{
	return level < LEVEL_RELATIVE + RELATIVES; /* idle, or of an idle process */
}

bool vmm_level_never_yields(uint32_t level)
{
	return level == VMM_LEVELS - 1;
}

/* ---- what clients set ---- */

static NTSTATUS refuse(const struct vmm_context *context, const char *rule, NTSTATUS status,
		       int32_t priority, const char *why)
{
	vmm_finding(context->device->adapter->observe, rule, context->device->process->id,
		    context->handle, "scheduling priority %d (0x%x) for context 0x%08x refused: %s",
		    priority, (unsigned)priority, context->handle, why);
	return status;
}

static NTSTATUS check_absolute(const struct vmm_context *context, int32_t priority)
{
	int32_t level = priority & ABSOLUTE_MASK;
	int32_t before = atomic_load(&context->turn.priority);

	if (!context->device->adapter->wddm2)
		return refuse(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
			      "absolute levels are there from WDDM 2.0 on");
	if (priority & ~(ABSOLUTE | ABSOLUTE_MASK))
		return refuse(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
			      "bits beside the five of the absolute level are set");
	if ((level > 1 && level < SOFT_LEAST) || level > HARD)
		return refuse(context, "SCH-02", STATUS_INVALID_PARAMETER, priority,
			      "of the absolute levels 2 to 15 are reserved and 31 is internal");
	if (level < SOFT_LEAST || atomic_load(&context->device->process->may_raise) ||
	    (before > 0 && before & ABSOLUTE && (before & ABSOLUTE_MASK) >= level))
		return STATUS_SUCCESS;
	return refuse(context, "SCH-02", STATUS_ACCESS_DENIED, priority,
		      "its process does not hold the increase-priority privilege");
}

NTSTATUS vmm_sched_set_priority(struct vmm_context *context, int32_t priority)
{
	NTSTATUS status = STATUS_SUCCESS;

	if (priority > 0 && priority & ABSOLUTE)
		status = check_absolute(context, priority);
	else if (priority < RELATIVE_LEAST || priority > RELATIVE_MOST)
		status = refuse(context, "SCH-01", STATUS_INVALID_PARAMETER, priority,
				"-7 to 7 are priorities");
	if (!NT_SUCCESS(status))
		return status;
	atomic_store(&context->turn.priority, priority);
	vmm_sched_kick(context->device->adapter); /* it may have what is urgent now */
	return STATUS_SUCCESS;
}

int32_t vmm_sched_priority(const struct vmm_context *context)
{
	return atomic_load(&context->turn.priority);
}

NTSTATUS vmm_sched_set_in_process_priority(struct vmm_context *context, int32_t priority)
{
	if (priority != 0 && priority != 1)
		return refuse(
			context, "SCH-03", STATUS_INVALID_PARAMETER, priority,
			"within a process 0 (as others) and 1 (ahead of them) are priorities");
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
	const void *live = NULL;
	uint32_t i = 0;

	vmm_os_mutex_lock(&process->lock);
	vmm_list_for_each (link, &process->devices)
		if (i++ == index)
			live = vmm_container_of(link, struct vmm_device, process_link)->live;
	vmm_os_mutex_unlock(&process->lock);
	return live;
}

NTSTATUS vmm_sched_set_priority_class(struct vmm_process *process, uint32_t class)
{
	const void *live;

	if (class >= CLASSES) {
		vmm_finding(
			process->world->observe, "SCH-04", process->id, 0,
			"scheduling priority class %u for process %u refused: 0 to %u are classes",
			class, process->id, CLASSES - 1);
		return STATUS_INVALID_PARAMETER;
	}
	atomic_store(&process->priority_class, class);
	for (uint32_t i = 0; (live = nth_device(process, i)) != NULL; i++) {
		struct vmm_visit visit;
		const struct vmm_device *device = vmm_live_enter(&visit, VMM_LIVE_DEVICE, live);

		if (!device) /* it is ending */
			continue;
		vmm_sched_kick(device->adapter);
		vmm_hw_class_changed(device->adapter->sched);
		vmm_live_leave(&visit);
	}
	return STATUS_SUCCESS;
}
