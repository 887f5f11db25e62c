/* SPDX-License-Identifier: MIT */
/*
 * CPU mappings: each instance reserves one address range, which never moves (LOCK-04). It maps the
 * segment or the backing store, wherever the content is. The range is reserved at the first lock
 * and remapped at the first lock after a move.
 */
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"

/* In the order of the content: the CPU sees one contiguous range. */
static vmm_status map_extents(const struct vmm_segment *segment, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t size = instance->allocation->size_bytes;
	vmm_status status = VMM_OK;
	struct vmm_extent extent;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	for (uint64_t at = 0; at < size && vmm_ok(status); at += extent.size_bytes) {
		extent = vmm_extent_at(instance, at, size);
		status = vmm_os_view_map(&instance->view, at, segment->cpu_memory,
					 segment->cpu_offset + extent.offset, extent.size_bytes);
	}
	if (!vmm_ok(status))
		return status;
	vmm_os_view_thaw(&instance->view); /* no single call has mapped all of it */
	instance->view_current = true;
	return VMM_OK;
}

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
		if (vmm_unlikely(instance->extents != NULL))
			return map_extents(segment, instance);
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
