/* SPDX-License-Identifier: MIT */
/*
 * NotifyAlloc operations (PAG-29): notify the miniport before an allocation leaves an aperture
 * segment or the system memory that counts as a segment (PAG-24). A miniport of WDDM 3.2 asks for
 * this if it stores content in another form while the GPU can use it, for example compressed. The
 * commands that it writes for the notification run before the pages are unmapped.
 *
 * The GPU must reach the bytes while these commands run. An adapter with GPU virtual addresses has
 * them mapped into the system paging process, in chunks (paging_virtual.c). On others they are
 * mapped in an aperture segment, or content in system memory is mapped into free space of the
 * aperture for that time: as a whole, or part by part.
 *
 * Allocations with NotifyIoMmuUnmap alone get no notification: that flag is for adapters with
 * GpuVaIoMmu addressing, which do not start (PAG-29).
 */
#include "memory/placement/placement.h"
#include "memory/residency/residency.h"
#include "memory/state/state.h"
#include "memory/transfer/paging.h"

/*
 * Allocates the largest available part of an aperture; if there is no free page, evicts other
 * allocations for one page.
 */
static vmm_status take_window(struct vmm_memory *memory, struct vmm_instance *instance,
			      struct vmm_paging_part *window, vmm_range_node *node)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count =
		vmm_placement_candidates(memory, instance->allocation,
					 vmm_allocation_resident_set(instance->allocation), order);
	struct vmm_range_request request = {.owner = instance};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint64_t size = instance->allocation->size_bytes; size >= VMM_PAGE_SIZE;
	     size = vmm_align_up(size / 2, VMM_PAGE_SIZE)) {
		request.size_bytes = window->size_bytes = size;
		for (uint32_t i = 0; i < count; i++) {
			struct vmm_segment *segment = vmm_memory_segment(memory, order[i]);
			struct vmm_free_space space;

			if (!segment->aperture)
				continue;
			window->segment = order[i];
			status = vmm_segment_allocate(memory, segment, &request, &space.node,
						      &space.offset);
			if (status == VMM_NO_VIDEO_MEMORY && size == VMM_PAGE_SIZE)
				status = vmm_residency_take_space(memory, segment, &request,
								  VMM_NO_PREPARATION, &space);
			if (status == VMM_OK) {
				*node = space.node;
				window->at = space.offset;
				return VMM_OK;
			}
			if (status != VMM_NO_VIDEO_MEMORY && status != VMM_PENDING)
				return status;
		}
		if (size == VMM_PAGE_SIZE)
			break;
	}
	return status;
}

static vmm_status notify_by_address(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_paging_part all = {.size_bytes = instance->allocation->size_bytes};
	vmm_status status = vmm_paging_notify_alloc(memory, instance, &all);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_ok(status))
		vmm_paging_mark_instance(memory, instance, true);
	return status;
}

/*
 * Paging commands run in order. One window therefore serves all parts one after the other, and its
 * range may be freed as soon as the commands are written.
 */
vmm_status vmm_notify_leaving_system(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t size = instance->allocation->size_bytes;
	struct vmm_paging_part part = {0};
	vmm_range_node node = VMM_RANGE_NONE;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_notify_is_wanted(instance->allocation))
		return VMM_OK;
	if (memory->caps->gpummu.supported)
		return notify_by_address(memory, instance);
	status = take_window(memory, instance, &part, &node);
	if (status != VMM_OK)
		return status;
	for (uint64_t window = part.size_bytes, done = 0; done < size && vmm_ok(status);
	     done += part.size_bytes) {
		part.offset = done;
		part.size_bytes = vmm_min_u64(window, size - done);
		status = vmm_paging_with_part(memory, instance, &part, vmm_paging_notify_alloc);
	}
	vmm_segment_free(memory, vmm_memory_segment(memory, part.segment), node);
	if (vmm_ok(status))
		vmm_paging_mark_instance(memory, instance, true);
	return status;
}
