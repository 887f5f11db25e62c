/* SPDX-License-Identifier: MIT */
/*
 * Compaction of a memory segment: moves idle allocations inside it, so that scattered free space
 * becomes one range. Each move is a Transfer with source and destination in the segment. It saves
 * content that cannot be evicted (PAG-20) and would otherwise be lost.
 */
#include "memory/image/image.h"
#include "memory/placement/client_object.h"
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/transfer/paging.h"
#include "memory/transfer/va_entries.h"
#include "range/range.h"

struct mover {
	struct vmm_memory *memory;
	struct vmm_segment *segment;
	uint64_t preparation;
	bool wait;
};

/*
 * Range heap callback. Returns false for an instance that must not move; otherwise fills in the
 * alignment and flags of REQUEST. It must not move if a prepared packet uses it, it is locked by
 * the CPU, hardware scans it without a packet (primary, Overlay, Capture), a split DMA buffer has
 * it bound (SPL-05), its content is HardwareProtected or in a form that only an alternate address
 * can read, or the miniport has destroyed it already.
 */
static bool may_move(void *context, void *owner, struct vmm_range_request *request)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct mover *mover = context;
	const struct vmm_instance *instance = owner;
	const struct vmm_allocation *allocation = instance->allocation;

	vmm_assert_held(&mover->memory->adapter->paging_lock);
	if (allocation->pinned || allocation->primary || allocation->gone || vmm_locks(instance) ||
	    instance->partial || vmm_alternate_is_special(instance) ||
	    (allocation->flags & VMM_ALLOCATION_HARDWARE_PROTECTED) ||
	    (mover->preparation != VMM_NO_PREPARATION && instance->bound == mover->preparation) ||
	    !vmm_instance_unused(instance) ||
	    vmm_arrival_is_kept(mover->memory, instance, mover->preparation))
		return false;
	request->alignment = vmm_max_u64(allocation->alignment, mover->segment->port->page_bytes);
	request->flags = vmm_placement_flags(allocation, mover->segment->port->id);
	return true;
}

static vmm_status move(struct mover *mover, const struct vmm_range_move *plan)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_memory *memory = mover->memory;
	struct vmm_segment *segment = mover->segment;
	struct vmm_instance *instance = vmm_range_owner(segment->heap, plan->from);
	uint64_t to = vmm_range_offset(segment->heap, plan->to);
	bool had_client_object = instance->has_client_object;

	vmm_assert_held(&mover->memory->adapter->paging_lock);
	vmm_swizzle_release(memory, instance); /* no lock uses the ranges (SWZ-13) */
	vmm_paging_switch_away(memory, instance);
	instance->has_client_object = false;
	vmm_status status = vmm_client_object_enter(memory, instance, to, mover->wait);

	/* The miniport is notified: not resident during the move (PAG-25). */
	if (status == VMM_OK)
		status = vmm_paging_notify(memory, instance, false);
	if (status == VMM_OK)
		status = vmm_paging_move(memory, instance, to);
	if (status != VMM_OK) {
		vmm_client_object_leave(memory, instance, to, instance->has_client_object);
		instance->has_client_object = had_client_object;
		return status;
	}
	vmm_client_object_leave(memory, instance, instance->offset, had_client_object);
	if (segment->cpu_memory && !instance->has_client_object)
		vmm_os_memory_expect(segment->cpu_memory, segment->cpu_offset + to,
				     instance->allocation->size_bytes);
	vmm_view_unmap(instance);
	vmm_host_unmap(memory, instance);
	instance->range = plan->to;
	vmm_residency_set_offset(segment, instance, to);
	vmm_va_write_entries(memory, instance);
	vmm_segment_free(memory, segment, plan->from);
	vmm_paging_mark_instance(memory, instance, !instance->retained);
	vmm_event(memory->adapter->observe, VIDMM_EVENT_RESIDENCY, instance->allocation->owner,
		  instance->handle, VIDMM_RESIDENCY_MOVED, instance->allocation->size_bytes,
		  instance->segment, instance->segment, to);
	memory->statistics.bytes_moved += instance->allocation->size_bytes;
	return vmm_paging_notify(memory, instance, true);
}

/*
 * Executes the moves in order. If one fails, the rest are not executed, and their destination
 * ranges are freed.
 */
static vmm_status execute(struct mover *mover, struct vmm_range_compaction *plan)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&mover->memory->adapter->paging_lock);
	for (uint32_t i = 0; i < plan->moves; i++) {
		vmm_status status = move(mover, &plan->move[i]);

		if (status == VMM_OK)
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
		       const struct vmm_range_request *request, uint64_t preparation, bool wait)
{
	struct mover mover = {
		.memory = memory, .segment = segment, .preparation = preparation, .wait = wait};
	struct vmm_range_compaction plan = {.may_move = may_move, .context = &mover};
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * The plan does not know which allocations must be inside the protected range and which
	 * outside (ALF-26), nor the pitch-aligned size of each (SEG-10). So segments with either
	 * are not compacted.
	 */
	if (segment->aperture || segment->port->vpr.size_bytes ||
	    segment->port->flags.PitchAlignment)
		return VMM_NO_VIDEO_MEMORY;
	status = vmm_range_plan_compaction(segment->heap, request, &plan);
	return vmm_ok(status) ? execute(&mover, &plan) : status;
}
