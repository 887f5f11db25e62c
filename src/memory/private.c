/* SPDX-License-Identifier: MIT */
/*
 * Content that a client in another address space may be shown lies in private objects, over its backing store and over its
 * place in a memory segment that the CPU sees: whoever gets a descriptor has nothing else with it, then and later. Each store
 * and each place gets a new one, which is zero; it ends with them. Only who created an allocation locks it (LOCK-24), so nobody
 * else matters.
 *
 * Space of a segment is given away while paging packets still read what its former owner had there (residency.c). What lay over
 * it is taken away when those are complete, and nothing is laid there before; a new owner that comes earlier waits for that.
 */
#include "memory/private.h"

static void take(struct vmm_private *own)
{
	vmm_list_remove(&own->link);
	vmm_os_private_take(own->object);
	vmm_free(own);
}

void vmm_private_collect_slowly(struct vmm_memory *memory, bool all)
{
	const struct vmm_adapter *adapter = memory->adapter;

	while (!vmm_list_empty(&memory->privates)) {
		struct vmm_private *own =
			vmm_container_of(memory->privates.next, struct vmm_private, link);

		if (!all && !vmm_timeline_done(adapter, adapter->paging_timeline, own->sequence))
			return;
		take(own);
	}
}

static vmm_status await(struct vmm_memory *memory, uint64_t sequence, bool wait)
{
	struct vmm_adapter *adapter = memory->adapter;

	if (vmm_timeline_done(adapter, adapter->paging_timeline, sequence))
		return VMM_OK;
	vmm_memory_flush_locked(adapter);
	return wait ? memory->engine->wait_locked(adapter, adapter->paging_timeline, sequence,
						  VIDMM_WAIT_SPACE)
		    : VMM_PENDING;
}

/* Nothing of others lies over the range any more. */
static vmm_status clear(struct vmm_memory *memory, uint64_t from, uint64_t to, bool wait)
{
	struct vmm_list *link, *next;

	vmm_list_for_each_safe (link, next, &memory->privates) {
		struct vmm_private *own = vmm_container_of(link, struct vmm_private, link);

		if (own->from >= to || own->to <= from)
			continue;
		vmm_status status = await(memory, own->sequence, wait);
		if (status != VMM_OK)
			return status;
		take(own);
	}
	return VMM_OK;
}

vmm_status vmm_private_clear_slowly(struct vmm_memory *memory, const struct vmm_segment *segment,
				    uint64_t offset, uint64_t size_bytes)
{
	uint64_t from = segment->cpu_offset + offset;

	return segment->cpu_memory ? clear(memory, from, from + size_bytes, false) : VMM_OK;
}

/* What is laid over the range hides it from whoever still reads what was there, whosesoever that is. */
static vmm_status await_readers(struct vmm_memory *memory, const struct vmm_segment *segment,
				uint64_t offset, uint64_t size_bytes, bool wait)
{
	uint64_t last = 0;

	for (uint64_t i = offset / VMM_LEFT_BYTES; i <= (offset + size_bytes - 1) / VMM_LEFT_BYTES;
	     i++)
		last = vmm_max_u64(last, segment->left[i]);
	return await(memory, last, wait);
}

vmm_status vmm_private_enter_slowly(struct vmm_memory *memory, struct vmm_instance *instance,
				    uint64_t offset, bool wait)
{
	const struct vmm_allocation *a = instance->allocation;
	const struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);
	struct vmm_private *own;

	if (!segment->cpu_memory)
		return VMM_OK;
	uint64_t from = segment->cpu_offset + offset;
	vmm_status status = clear(memory, from, from + vmm_footprint_bytes(segment, a), wait);
	if (status != VMM_OK || !a->viewer || vmm_link_copies(a) > 1)
		return status;
	status = await_readers(memory, segment, offset, a->size_bytes, wait);
	if (status != VMM_OK)
		return status;
	own = vmm_calloc(1, sizeof(*own));
	if (!own)
		return VMM_NO_MEMORY;
	vmm_list_init(&own->link);
	own->from = from;
	own->to = from + a->size_bytes;
	status = vmm_os_private_lay(segment->cpu_memory, from, a->size_bytes, &own->object);
	if (!vmm_ok(status)) {
		vmm_free(own);
		return status;
	}
	instance->own = own;
	return VMM_OK;
}

void vmm_private_leave(struct vmm_memory *memory, const struct vmm_instance *instance,
		       uint64_t offset, struct vmm_private *own)
{
	struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);
	uint64_t sequence = vmm_paging_sequence(memory);
	uint64_t last = (offset + instance->allocation->size_bytes - 1) / VMM_LEFT_BYTES;

	if (!segment->left)
		return;
	for (uint64_t i = offset / VMM_LEFT_BYTES; i <= last; i++)
		segment->left[i] = sequence;
	if (vmm_likely(!own))
		return;
	own->sequence = sequence;
	vmm_list_push_back(&memory->privates, &own->link);
	vmm_private_collect_slowly(memory, false);
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

/* What waits for the GPU goes now: nobody may come for a long time whose paging would take it along. */
static void put_away(struct vmm_memory *memory)
{
	if (!vmm_list_empty(&memory->privates)) {
		const struct vmm_private *last =
			vmm_container_of(memory->privates.prev, struct vmm_private, link);

		(void)!vmm_ok(await(memory, last->sequence, true));
	}
	vmm_backing_collect(memory);
}

void vmm_memory_end_viewer(struct vmm_adapter *adapter, const struct vmm_os_viewer *viewer)
{
	struct vmm_list *link;

	vmm_paging_lock(adapter);
	vmm_list_for_each (link, &adapter->memory->allocations) {
		struct vmm_allocation *a = vmm_container_of(link, struct vmm_allocation, all);

		if (a->viewer == viewer)
			end(adapter->memory, a);
	}
	put_away(adapter->memory);
	vmm_paging_unlock(adapter);
}
