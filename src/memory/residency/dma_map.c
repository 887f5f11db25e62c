/* SPDX-License-Identifier: MIT */
/* Maps a DMA buffer into an aperture segment, from which it evicts allocations if necessary. */
#include "memory/residency/residency.h"
#include "memory/transfer/paging.h"

vmm_status vmm_memory_dma_map_locked(struct vmm_adapter *adapter, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
{
	struct vmm_memory *memory = adapter->memory;
	const struct vmm_range_request request = vmm_dma_request(backing);
	struct vmm_dma_mapping found = {.physical = place->physical};
	vmm_status status = vmm_dma_map_in_free_space(memory, backing, segment_set, &found);

	vmm_assert_held(&adapter->paging_lock);
	/* Allocations that fill the aperture must not prevent submissions: evict some. (PAG-01) */
	for (uint32_t i = 0; i < memory->segment_count && status == VMM_NO_VIDEO_MEMORY; i++)
		if ((segment_set & 1u << i) && memory->segment[i].aperture)
			status = vmm_residency_make_space(memory, &memory->segment[i], &request);
	if (vmm_ok(status) && status != VMM_PENDING && !found.segment)
		status = vmm_dma_map_in_free_space(memory, backing, segment_set, &found);
	if (status != VMM_OK)
		return status;
	*place = found;
	return VMM_OK;
}
