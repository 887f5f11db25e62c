/* SPDX-License-Identifier: MIT */
/*
 * The single order of levels computed from the priorities of contexts and processes (priority.c;
 * SCH-01 to SCH-04). From lowest to highest:
 *
 *   idle      relative -7 or absolute 0: ordered by the class of the process
 *   relative  relative -6 to 7, or absolute 1, which counts as relative 0: ordered by the class of
 *             the process, then by the context's priority
 *   real time absolute 16 to 30, whatever the class of the process
 */
#include "sched/state/levels.h"
#include "sched/state/state.h"

_Static_assert(VMM_LEVEL_REAL_TIME + VMM_PRIORITY_HARD - VMM_PRIORITY_SOFT_LEAST + 1 == VMM_LEVELS,
	       "levels of priorities");

static uint32_t relative_level(const struct vmm_context *context, int32_t priority)
	VMM_REQUIRES(vmm_state_lock_class)
{
	uint32_t class = atomic_load_explicit(&context->device->process->priority_class,
					      memory_order_relaxed);

	vmm_assert_held(&context->device->adapter->state_lock);
	if (priority == VMM_PRIORITY_RELATIVE_LEAST)
		return class;
	return VMM_LEVEL_RELATIVE + class * VMM_PRIORITY_RELATIVES +
	       (uint32_t)(priority - VMM_PRIORITY_RELATIVE_LEAST - 1);
}

uint32_t vmm_priority_level(const struct vmm_context *context)
{
	int32_t priority = atomic_load_explicit(&context->turn.priority, memory_order_relaxed);

	vmm_assert_held(&context->device->adapter->state_lock);
	if (vmm_likely(!(priority & VMM_PRIORITY_ABSOLUTE) || priority < 0))
		return relative_level(context, priority);
	priority &= VMM_PRIORITY_ABSOLUTE_MASK;
	if (priority < VMM_PRIORITY_SOFT_LEAST)
		return relative_level(context, priority ? 0 : VMM_PRIORITY_RELATIVE_LEAST);
	return VMM_LEVEL_REAL_TIME + (uint32_t)(priority - VMM_PRIORITY_SOFT_LEAST);
}

bool vmm_level_may_starve(uint32_t level)
{
	/* idle contexts, and contexts of a process of the idle class */
	return level < VMM_LEVEL_RELATIVE + VMM_PRIORITY_RELATIVES;
}

bool vmm_level_never_yields(uint32_t level)
{
	return level == VMM_LEVELS - 1;
}
