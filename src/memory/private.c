/* SPDX-License-Identifier: MIT */
/*
 * Content that a client in another address space may be shown lies in an arena of its own (arena.c), and in private objects over its
 * place in a memory segment that the CPU sees, if only through swizzling ranges: whoever gets a descriptor has nothing else with it, then and later, than
 * what was that client's. Only who created an allocation locks it (LOCK-24), so nobody else matters.
 *
 * What lies over a range stays there when its owner's allocation leaves: the next one there is often the same client's, and finds
 * its object laid, at no cost and with nothing to wait for. Space of a segment is given away while paging packets still read
 * what its former owner had there (residency.c), so for the parts of it where that is another, or nobody's, whoever comes waits for those packets
 * before he lays or takes anything. At first he gives his place back and comes again (VMM_PENDING), so that the paging lock is free meanwhile. But then
 * what had left for it may come back, and has to leave again, each time: of a packet's own allocations one goes where another has no room beside it, and leaves
 * for that by SPL-13, if the other is somebody else's. So who has been turned away for some packets, none of which let anybody through, waits where he is, as does
 * all that the packet wants after it: each gets through.
 */
#include "memory/arena.h"
#include "memory/private.h"

/*
 * How many packets those are, which is a matter of cost alone: a smaller number keeps the paging lock from others while the GPU works, also from who
 * would have it get on; a larger one moves more in vain before.
 */
enum { TRIES = 32 };

static vmm_status await(struct vmm_memory *memory, uint64_t sequence, bool wait)
{
	struct vmm_adapter *adapter = memory->adapter;

	if (vmm_timeline_done(adapter, adapter->paging_timeline, sequence))
		return VMM_OK;
	vmm_memory_flush_locked(adapter);
	if (!wait && (sequence <= adapter->turned_away_for || adapter->turned_away < TRIES)) {
		/* Asking again before that packet is complete counts once. */
		adapter->turned_away += sequence > adapter->turned_away_for;
		adapter->turned_away_for = vmm_max_u64(adapter->turned_away_for, sequence);
		return VMM_PENDING;
	}
	return memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
					   VIDMM_WAIT_SPACE);
}

static uint64_t last_left(const struct vmm_segment *segment, uint64_t offset, uint64_t size_bytes)
{
	uint64_t last = 0;

	for (uint64_t i = offset / VMM_LEFT_BYTES; i <= (offset + size_bytes - 1) / VMM_LEFT_BYTES;
	     i++)
		last = vmm_max_u64(last, segment->left[i]);
	return last;
}

/*
 * What is laid over a part of the range that is not that owner's yet, or taken from it (owner 0), hides it from whoever still reads what
 * was there, whosesoever that is. What is there already hides nothing.
 */
static vmm_status await_readers(struct vmm_memory *memory, const struct vmm_segment *segment,
				uint64_t offset, uint64_t size_bytes, uint64_t owner, bool wait)
{
	uint64_t end = offset + size_bytes, last = 0, length;
	bool stays;

	for (; offset < end; offset += length) {
		length = vmm_os_private_run(segment->bar, segment->cpu_offset + offset,
					    end - offset, owner, &stays);
		if (!stays)
			last = vmm_max_u64(last, last_left(segment, offset, length));
	}
	return await(memory, last, wait);
}

static vmm_status clear(struct vmm_memory *memory, const struct vmm_segment *segment,
			uint64_t offset, uint64_t size_bytes, bool wait)
{
	uint64_t from = segment->cpu_offset + offset;

	if (!segment->bar || vmm_os_private_is_of(segment->bar, from, size_bytes, 0))
		return VMM_OK;
	vmm_status status = await_readers(memory, segment, offset, size_bytes, 0, wait);
	if (status == VMM_OK)
		vmm_os_private_take(segment->bar, from, vmm_align_up(size_bytes, VMM_PAGE_SIZE));
	return status;
}

vmm_status vmm_private_clear(struct vmm_memory *memory, const struct vmm_segment *segment,
			     uint64_t offset, uint64_t size_bytes)
{
	return clear(memory, segment, offset, size_bytes, false);
}

/* What it does not reach of its place, because a segment may want more than it has (SEG-10). */
static vmm_status clear_rest(struct vmm_memory *memory, const struct vmm_segment *segment,
			     const struct vmm_allocation *allocation, uint64_t offset, bool wait)
{
	uint64_t all = vmm_footprint_bytes(segment, allocation), own = allocation->size_bytes;

	return all > own ? clear(memory, segment, offset + own, all - own, wait) : VMM_OK;
}

vmm_status vmm_private_enter(struct vmm_memory *memory, struct vmm_instance *instance,
			     uint64_t offset, bool wait)
{
	const struct vmm_allocation *a = instance->allocation;
	const struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

	if (!segment->bar)
		return VMM_OK;
	if (!a->viewer || vmm_link_copies(a) > 1)
		return clear(memory, segment, offset, vmm_footprint_bytes(segment, a), wait);
	uint64_t from = segment->cpu_offset + offset, owner = vmm_os_viewer_owner(a->viewer);

	vmm_status status = await_readers(memory, segment, offset, a->size_bytes, owner, wait);
	if (status == VMM_OK)
		status = clear_rest(memory, segment, a, offset, wait);
	if (status == VMM_OK)
		status = vmm_os_private_lay(segment->bar, from, a->size_bytes, owner, NULL);
	instance->own = status == VMM_OK;
	return status;
}

void vmm_private_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
		       uint64_t offset, bool own)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);
	uint64_t sequence = vmm_paging_sequence(memory), size = instance->allocation->size_bytes;
	uint64_t from = segment->cpu_offset + offset;

	if (!segment->left)
		return;
	for (uint64_t i = offset / VMM_LEFT_BYTES; i <= (offset + size - 1) / VMM_LEFT_BYTES; i++)
		segment->left[i] = sequence;
	if (vmm_likely(!own))
		return;
	/* What is of no use to anybody any more goes, unless it is still read. */
	bool may_go = vmm_os_private_is_surplus(segment->bar, from, size) &&
		      vmm_ok(await(memory, sequence, true));
	vmm_os_private_leave(segment->bar, from, size, may_go);
}

static void end(struct vmm_memory *memory, struct vmm_allocation *allocation)
{
	struct vmm_list *link;

	allocation->viewer = NULL;
	vmm_list_for_each (link, &allocation->instances) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, sibling);

		vmm_gate_shut(i);
		vmm_os_view_release(&i->view);
		i->view_current = false;
		vmm_alternate_end(memory, i);
	}
}

/* What it had there goes now: nobody may come for a long time who would take it along. */
static void take_away(struct vmm_memory *memory, uint64_t owner)
{
	(void)!vmm_ok(await(memory, vmm_paging_sequence(memory), true));
	vmm_backing_collect(memory);
	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].bar)
			vmm_os_private_end(memory->segment[i].bar, owner);
	vmm_host_end_viewer(memory, owner);
	vmm_arenas_end_owner(memory, owner);
}

void vmm_memory_end_viewer(struct vmm_adapter *adapter, struct vmm_os_viewer *viewer)
{
	struct vmm_list *link;

	vmm_paging_lock(adapter);
	vmm_list_for_each (link, &adapter->memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (a->viewer == viewer)
			end(adapter->memory, a);
	}
	take_away(adapter->memory, vmm_os_viewer_owner(viewer));
	vmm_paging_unlock(adapter);
}
