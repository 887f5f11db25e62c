/* SPDX-License-Identifier: MIT */
/*
 * CPU views: one reserved address range per instance that never moves (LOCK-04); what lies behind it is the segment or
 * the backing store of the moment. It is made at the first lock and remapped lazily at the next one after a move.
 */
#include "memory/memory_private.h"

vmm_status vmm_view_show(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t size = vmm_store_bytes(instance->allocation);
	const struct vmm_os_memory *source;
	uint64_t offset;
	vmm_status status;

	if (!instance->view.address) {
		status = vmm_os_view_reserve_for(memory->adapter->os, instance->allocation->viewer,
						 size, &instance->view);
		if (!vmm_ok(status))
			return status;
	}
	if (instance->view_current)
		return VMM_OK;
	if (instance->place == VMM_PLACE_MEMORY && !instance->kept && !instance->partial) {
		const struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

		if (!segment->cpu_memory) {
			status = vmm_host_show(memory, instance);
			instance->view_current = vmm_ok(status);
			return status;
		}
		vmm_assert(vmm_link_copies(instance->allocation) == 1);
		source = segment->cpu_memory;
		offset = segment->cpu_offset + instance->offset;
	} else if (vmm_unlikely(instance->backing.section != NULL)) {
		source = &instance->backing.section->memory;
		offset = (uint64_t)(instance->backing.address - source->base);
	} else {
		source = vmm_backing_memory(memory, &instance->backing, &offset);
	}
	status = vmm_os_view_map(&instance->view, 0, source, offset, size);
	if (vmm_ok(status))
		instance->view_current = true;
	return status;
}

void vmm_view_hide(struct vmm_instance *instance)
{
	vmm_gate_shut(instance);
	if (!instance->view_current || instance->kept) /* PAG-14: the system copy stays in view */
		return;
	/*
	 * The memory behind the view gets another owner. A stale pointer then faults instead of reaching it (decision 6).
	 * While locked the caller shows the new place before anybody can look.
	 */
	if (!vmm_locks(instance))
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}
