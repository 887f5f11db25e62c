/* SPDX-License-Identifier: MIT */
/*
 * Before power goes, content leaves the segments that will not keep it; what is in the others stays (PNP-06). Nobody is
 * at work: no packet is prepared or with the GPU, no client is inside. Whatever cannot leave with its content keeps the
 * power on: a change of power loses nothing (PNP-05).
 */
#include "memory/memory_private.h"
#include "memory/va_private.h"

/* SEG-23, C-09: all of it must lie at or below the end of what the system keeps. */
static bool ends_in_kept_memory(const struct vmm_segment *segment,
				const struct vmm_instance *instance)
{
	uint64_t last = segment->port->gpu_base + instance->offset +
			vmm_footprint_bytes(segment, instance->allocation) - 1;

	return last <= segment->port->system_memory_end;
}

/* SEG-22 */
static bool keeps_all(const struct vmm_segment *segment, enum vmm_power_loss loss)
{
	return loss == VMM_POWER_STANDBY ? segment->port->flags.PreservedDuringStandby
					 : segment->port->flags.PreservedDuringHibernate;
}

static bool stays(const struct vmm_segment *segment, const struct vmm_instance *instance,
		  enum vmm_power_loss loss)
{
	return loss == VMM_POWER_HIBERNATE &&
	       segment->port->flags.PartiallyPreservedDuringHibernate &&
	       ends_in_kept_memory(segment, instance);
}

static struct vmm_instance *next_to_leave(struct vmm_segment *segment, uint32_t class_index,
					  enum vmm_power_loss loss)
{
	struct vmm_list *link;

	if (keeps_all(segment, loss))
		return NULL;
	vmm_list_for_each (link, &segment->lru[class_index]) {
		struct vmm_instance *i = vmm_container_of(link, struct vmm_instance, lru);

		if (!stays(segment, i, loss))
			return i;
	}
	return NULL;
}

static vmm_status wait_for_paging(struct vmm_memory *memory)
{
	struct vmm_adapter *adapter = memory->adapter;
	uint64_t last = vmm_memory_flush_locked(adapter);

	return memory->engine->wait_locked(adapter, adapter->paging_timeline, last,
					   VIDMM_WAIT_POWER);
}

/* From 2.0 on what the CPU has locked, and could see in no aperture, is used by the GPU where it is (LOCK-45, LKR-09). */
static bool is_held_where_it_is(const struct vmm_memory *memory,
				const struct vmm_instance *instance)
{
	return memory->caps->wddm2 && vmm_locks(instance) &&
	       !vmm_resident_reaches_aperture(instance->allocation);
}

static vmm_status leave(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_allocation *a = instance->allocation;
	uint8_t segment = instance->segment;
	uint64_t offset = instance->offset;
	vmm_status status = vmm_residency_evict(memory, instance, VIDMM_RESIDENCY_POWER);

	if (status == VMM_OK && (a->pinned || is_held_where_it_is(memory, instance))) {
		a->home_segment = segment;
		a->home_offset = offset;
		vmm_list_push_back(&memory->away, &instance->lru);
	}
	if (vmm_ok(status) && status != VMM_PENDING)
		return status;
	vmm_reason(
		memory->adapter->observe, status, a->owner, instance->handle,
		"0x%08x (%llu bytes, %s) cannot leave segment %u with its content, so the adapter keeps its power",
		instance->handle, (unsigned long long)a->size_bytes,
		vmm_locks(instance) ? "locked" : "not locked", segment);
	return status == VMM_PENDING ? VMM_UNSUCCESSFUL : status;
}

static vmm_status clear_class(struct vmm_memory *memory, uint32_t class_index,
			      enum vmm_power_loss loss)
{
	vmm_status status = VMM_OK;

	vmm_recency_settle(memory);
	for (uint32_t s = 0; s < memory->segment_count && vmm_ok(status); s++) {
		struct vmm_instance *i;

		while (vmm_ok(status) &&
		       (i = next_to_leave(&memory->segment[s], class_index, loss)) != NULL)
			status = leave(memory, i);
	}
	return status;
}

static bool unmaps_paging_buffers(struct vmm_memory *memory, enum vmm_power_loss loss)
{
	uint32_t id = memory->caps->paging_buffer_segment;

	return id && !keeps_all(vmm_memory_segment(memory, id), loss);
}

vmm_status vmm_memory_power_down(struct vmm_adapter *adapter, enum vmm_power_loss loss)
{
	struct vmm_memory *memory = adapter->memory;
	vmm_status status = VMM_OK;

	vmm_os_mutex_lock(&adapter->paging_lock);
	/* PAG-18: what is pinned goes too, and first, so that it is in nobody's way out (PAG-20). */
	for (uint32_t c = VMM_CLASS_COUNT; c-- > 0 && vmm_ok(status);)
		status = clear_class(memory, c, loss);
	if (vmm_ok(status))
		status = wait_for_paging(memory);
	if (vmm_ok(status) && unmaps_paging_buffers(memory, loss)) {
		status = vmm_paging_buffers_unmap(memory);
		if (vmm_ok(status))
			status = wait_for_paging(memory);
	}
	vmm_backing_collect(memory);
	vmm_paging_unlock(adapter);
	return status;
}

/* To where it was, under the CPU's hands: stores block while the content moves (LOCK-04). */
static void return_locked(struct vmm_memory *memory, struct vmm_instance *instance)
{
	bool shown = !instance->kept; /* else the CPU has the system copy (PAG-14) */

	if (shown && !vmm_ok(vmm_os_view_freeze(&instance->view)))
		return;
	vmm_status status = vmm_residency_pin_again(memory, instance);
	if (status == VMM_OK)
		status = wait_for_paging(memory);
	if (shown && (!vmm_ok(status) || !vmm_ok(vmm_view_show(memory, instance))))
		vmm_os_view_thaw(&instance->view);
}

/*
 * One that the CPU has locked is not moved under it into a segment (LKR-08); it follows when the GPU uses it. Otherwise only
 * a dead adapter fails here, and it has no use for places any more.
 */
static void return_away(struct vmm_memory *memory)
{
	while (!vmm_list_empty(&memory->away)) {
		struct vmm_instance *i =
			vmm_container_of(memory->away.next, struct vmm_instance, lru);

		vmm_list_remove(&i->lru);
		if (!vmm_locks(i))
			(void)!vmm_ok(vmm_residency_pin_again(memory, i));
		else if (is_held_where_it_is(memory, i))
			return_locked(memory, i);
	}
}

void vmm_memory_power_up(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_os_mutex_lock(&adapter->paging_lock);
	if (memory->powering_down)
		(void)!vmm_ok(vmm_paging_buffers_remap(memory));
	vmm_va_rewrite(memory);
	return_away(memory);
	vmm_paging_unlock(adapter);
}
