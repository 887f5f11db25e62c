/* SPDX-License-Identifier: MIT */
/*
 * NOTIFY_ALLOC: a miniport of WDDM 3.2 that keeps content in a form of its own while the GPU may use it, compressed for
 * example, asks to be told before the allocation leaves an aperture segment or the implicit segment of system memory
 * (PAG-29). What it writes then runs before the pages are unmapped.
 *
 * It must reach the bytes. In the aperture they are mapped; in system memory they are, for the time, where the aperture has
 * room: as a whole, or piece by piece. On an adapter with GPU virtual addresses the paging process's would serve instead;
 * there is none yet. Nor is there one with an IOMMU between the GPU's virtual addresses and memory, so what is flagged
 * NotifyIoMmuUnmap alone is never unmapped from one and nothing is sent.
 */
#include "memory/memory_private.h"

vmm_status vmm_notify_leaving_aperture(struct vmm_memory *memory, struct vmm_instance *instance,
				       bool *told)
{
	const struct vmm_paging_part all = {.size_bytes = instance->allocation->size_bytes,
					    .segment = instance->segment,
					    .at = instance->offset};

	*told = vmm_notify_is_wanted(instance->allocation);
	return *told ? vmm_paging_notify_alloc(memory, instance, &all) : VMM_OK;
}

/* Free space for a part of it, the larger the better; where there is none a page's is made. */
static vmm_status take_window(struct vmm_memory *memory, struct vmm_instance *instance,
			      struct vmm_paging_part *window, vmm_range_node *node)
{
	uint32_t order[VMM_PORT_SEGMENTS_MAX];
	uint32_t count = vmm_place_candidates(memory, instance->allocation,
					      vmm_resident_set(instance->allocation), order);
	struct vmm_range_request request = {.owner = instance};
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	for (uint64_t size = instance->allocation->size_bytes; size >= VMM_PAGE_SIZE;
	     size = vmm_align_up(size / 2, VMM_PAGE_SIZE)) {
		request.size_bytes = window->size_bytes = size;
		for (uint32_t i = 0; i < count; i++) {
			struct vmm_segment *segment = vmm_memory_segment(memory, order[i]);
			struct vmm_room room;

			if (!segment->aperture)
				continue;
			window->segment = order[i];
			status = vmm_segment_allocate(memory, segment, &request, &room.node,
						      &room.offset);
			if (status == VMM_NO_VIDEO_MEMORY && size == VMM_PAGE_SIZE)
				status = vmm_residency_take_room(memory, segment, &request,
								 VMM_NO_PREPARATION, &room);
			if (status == VMM_OK) {
				*node = room.node;
				window->at = room.offset;
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

static vmm_status tell_part(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_paging_part *part)
{
	vmm_status status = vmm_paging_map_part(memory, instance, part), unmapped;

	if (!vmm_ok(status))
		return status;
	status = vmm_paging_notify_alloc(memory, instance, part);
	unmapped = vmm_paging_unmap_part(memory, instance, part);
	return vmm_ok(status) ? unmapped : status;
}

/* Paging commands run in order, so one window serves for all parts, and is free again when they are written. */
vmm_status vmm_notify_leaving_system(struct vmm_memory *memory, struct vmm_instance *instance)
{
	uint64_t size = instance->allocation->size_bytes;
	struct vmm_paging_part part = {0};
	vmm_range_node node = VMM_RANGE_NONE;
	vmm_status status;

	if (!vmm_notify_is_wanted(instance->allocation))
		return VMM_OK;
	status = take_window(memory, instance, &part, &node);
	if (status != VMM_OK)
		return status;
	for (uint64_t window = part.size_bytes, done = 0; done < size && vmm_ok(status);
	     done += part.size_bytes) {
		part.offset = done;
		part.size_bytes = vmm_min_u64(window, size - done);
		status = tell_part(memory, instance, &part);
	}
	vmm_segment_free(memory, vmm_memory_segment(memory, part.segment), node);
	if (vmm_ok(status))
		vmm_residency_mark_paged(memory, instance, true);
	return status;
}
