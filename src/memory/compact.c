/* SPDX-License-Identifier: MIT */
/*
 * Room in one piece where what is free lies scattered: idle allocations move inside their memory segment, by a Transfer whose
 * two sides are both in it. It is for content that cannot leave (PAG-20) and would be lost otherwise.
 */
#include "memory/memory_private.h"
#include "memory/private.h"

struct mover {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	uint64_t preparation;
};

/*
 * What the CPU looks at, what hardware looks at without being told (primaries, Overlay, Capture) and what a split buffer
 * finds bound (SPL-05) stays; so does content that only an alternate address or a range makes sense of.
 */
static bool may_move(void *context, void *owner, struct vmm_range_request *request)
{
	const struct mover *mover = context;
	const struct vmm_instance *instance = owner;
	const struct vmm_allocation *allocation = instance->allocation;

	if (allocation->pinned || allocation->primary || allocation->gone || vmm_locks(instance) ||
	    instance->range_count || instance->partial || vmm_alternate_is_special(instance) ||
	    (allocation->flags & VMM_ALLOCATION_HARDWARE_PROTECTED) ||
	    (mover->preparation != VMM_NO_PREPARATION && instance->bound == mover->preparation) ||
	    !vmm_instance_unused(instance))
		return false;
	request->alignment = vmm_max_u64(allocation->alignment, mover->segment->port->page_bytes);
	request->flags = vmm_place_flags(allocation, mover->segment->port->id);
	return true;
}

static vmm_status move(struct mover *mover, const struct vmm_range_move *plan)
{
	struct vmm_memory *memory = mover->memory;
	struct vmm_segment *segment = mover->segment;
	struct vmm_instance *instance = vmm_range_owner(segment->heap, plan->from);
	uint64_t to = vmm_range_offset(segment->heap, plan->to);
	bool own = instance->own;

	vmm_context_allocation_let_go(memory, instance);
	instance->own = false;
	vmm_status status = vmm_private_enter(memory, instance, to, true);

	if (vmm_ok(status))
		status = vmm_paging_notify(memory, instance, false); /* PAG-25 */
	if (vmm_ok(status))
		status = vmm_paging_move(memory, instance, to);
	if (!vmm_ok(status)) {
		vmm_private_leave(memory, instance, to, instance->own);
		instance->own = own;
		return status;
	}
	vmm_private_leave(memory, instance, instance->offset, own);
	if (segment->cpu_memory && !instance->own)
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + to,
				     instance->allocation->size_bytes);
	vmm_view_hide(instance);
	vmm_host_unmap(memory, instance);
	instance->range = plan->to;
	vmm_residency_set_offset(segment, instance, to);
	vmm_va_refresh(memory, instance);
	vmm_segment_free(memory, segment, plan->from);
	vmm_residency_mark_paged(memory, instance, !instance->kept);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, instance->allocation->owner,
		  instance->handle, VIDMM_RESIDENCY_MOVED, instance->allocation->size_bytes,
		  instance->segment, instance->segment, to);
	memory->figures.moved_bytes += instance->allocation->size_bytes;
	return vmm_paging_notify(memory, instance, true);
}

/* Where one of them fails, those after it stay where they are. */
static vmm_status carry_out(struct mover *mover, struct vmm_range_compaction *plan)
{
	for (uint32_t i = 0; i < plan->moves; i++) {
		vmm_status status = move(mover, &plan->move[i]);

		if (vmm_ok(status))
			continue;
		for (; i < plan->moves; i++) {
			const struct vmm_instance *instance =
				vmm_range_owner(mover->segment->heap, plan->move[i].to);

			if (instance->range != plan->move[i].to)
				vmm_segment_free(mover->memory, mover->segment, plan->move[i].to);
		}
		return status;
	}
	return VMM_OK;
}

vmm_status vmm_compact(struct vmm_memory *memory, struct vmm_segment *segment,
		       const struct vmm_range_request *request, uint64_t preparation)
{
	struct mover mover = {.memory = memory, .segment = segment, .preparation = preparation};
	struct vmm_range_compaction plan = {.may_move = may_move, .context = &mover};
	vmm_status status;

	/* What may lie in a protected range, and what may not, is for placement to say (ALF-26). Nor is pitch moved (SEG-10). */
	if (segment->aperture || segment->port->vpr.size_bytes ||
	    segment->port->flags.PitchAlignment)
		return VMM_NO_VIDEO_MEMORY;
	status = vmm_range_plan_compaction(segment->heap, request, &plan);
	return vmm_ok(status) ? carry_out(&mover, &plan) : status;
}
