/* SPDX-License-Identifier: MIT */
/* Predicates of contexts (state.h), which this module asserts where it is entered. */
#include "sched/state/state.h"

enum { RELATIVE = 7, ABSOLUTE = 0x40000000, ABSOLUTE_MOST = ABSOLUTE + 31 };

bool vmm_context_is_valid(const struct vmm_context *context)
{
	const struct vmm_device *device = context->device;
	const int32_t priority =
		atomic_load_explicit(&context->turn.priority, memory_order_relaxed);

	return device && context->node < device->adapter->node_count &&
	       context->engine < device->adapter->physical_adapters &&
	       (priority >= ABSOLUTE ? priority <= ABSOLUTE_MOST
				     : priority >= -RELATIVE && priority <= RELATIVE) &&
	       atomic_load_explicit(&context->turn.in_process, memory_order_relaxed) <= 1 &&
	       context->list_size && !context->patch_size == context->no_patching &&
	       !context->dma_bytes == context->by_address &&
	       (context->by_address ? context->no_patching : !context->present_bytes);
}

bool vmm_context_is_consistent_locked(const struct vmm_context *context)
{
	vmm_assert_held(&context->device->adapter->state_lock);
	return vmm_context_is_valid(context) && context->dma_taken <= context->dma_count &&
	       (vmm_list_empty(&context->free_dma) || context->dma_taken < context->dma_count);
}
