/* SPDX-License-Identifier: MIT */
/*
 * CPU mappings: each instance reserves one address range, which never moves (LOCK-04). It maps the
 * segment or the backing store, wherever the content is. The range is reserved at the first lock
 * and remapped at the first lock after a move.
 */
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

vmm_status vmm_view_map(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t size = vmm_store_bytes(instance->allocation);
	const struct vmm_os_memory *source;
	uint64_t offset;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!instance->view.address) {
		status = vmm_os_view_reserve_for(memory->adapter->os, instance->allocation->viewer,
						 size, &instance->view);
		if (!vmm_ok(status))
			return status;
	}
	if (instance->view_current)
		return VMM_OK;
	if (instance->place == VMM_PLACEMENT_MEMORY && !instance->retained && !instance->partial) {
		const struct vmm_segment *segment = vmm_memory_segment(memory, instance->segment);

		if (!segment->cpu_memory) {
			status = vmm_host_map_view(memory, instance);
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
