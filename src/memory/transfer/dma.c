/* SPDX-License-Identifier: MIT */
/*
 * Memory of DMA buffers and paging buffers: pages of system memory, and their mapping into free
 * space of an aperture segment (DMA-05).
 */
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "range/range.h"

vmm_status vmm_memory_dma_create_locked(struct vmm_adapter *adapter, uint64_t size_bytes,
					struct vmm_backing *backing, uint64_t *bus_address)
{
	/* NT-23: the bytes behind the buffer are in its last page, or in one more. */
	const uint64_t behind = vmm_unlikely(adapter->verify_driver) ? VMM_PORT_CANARY_BYTES : 0;
	vmm_status status = vmm_backing_create(
		adapter->memory, vmm_align_up(size_bytes + behind, VMM_PAGE_SIZE), true, backing);

	vmm_assert_held(&adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	*bus_address = vmm_backing_bus_address(adapter->memory, backing);
	if (behind)
		vmm_port_canary_fill(backing->address + size_bytes);
	return status;
}

void vmm_memory_dma_destroy_locked(struct vmm_adapter *adapter, struct vmm_backing *backing)
{
	vmm_assert_held(&adapter->paging_lock);
	vmm_backing_destroy(adapter->memory, backing);
}

/* DMA buffers live long: allocated from the end, they do not fragment the space of allocations. */
struct vmm_range_request vmm_dma_request(struct vmm_backing *backing)
{
	return (struct vmm_range_request){
		.size_bytes = backing->size_bytes, .flags = VMM_RANGE_FROM_END, .owner = backing};
}

vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
{
	const struct vmm_range_request request = vmm_dma_request(backing);

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		vmm_range_node range;
		uint64_t offset;

		if (!(segment_set & 1u << i) || !memory->segment[i].aperture)
			continue;
		if (!vmm_ok(vmm_segment_allocate(memory, &memory->segment[i], &request, &range,
						 &offset)))
			continue;
		vmm_status status =
			vmm_paging_map_buffer(memory, place->physical, backing, i + 1, offset);
		if (!vmm_ok(status)) {
			vmm_segment_free(memory, &memory->segment[i], range);
			return status;
		}
		place->segment = i + 1;
		place->range = range;
		place->address = memory->segment[i].port->gpu_base + offset;
		return VMM_OK;
	}
	return VMM_NO_VIDEO_MEMORY;
}

void vmm_memory_dma_unmap_locked(struct vmm_adapter *adapter, const struct vmm_dma_mapping *place)
{
	struct vmm_segment *s = vmm_memory_segment(adapter->memory, place->segment);

	vmm_assert_held(&adapter->paging_lock);
	(void)!vmm_paging_unmap_range(adapter->memory, place->physical, place->segment,
				      vmm_range_offset(s->heap, place->range),
				      vmm_range_size(s->heap, place->range));
	vmm_segment_free(adapter->memory, s, place->range);
}
