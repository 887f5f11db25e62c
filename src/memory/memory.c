/* SPDX-License-Identifier: MIT */
/*
 * The module's state: creation and destruction, the paging lock, memory and aperture mappings of
 * DMA buffers.
 */
#include "memory/arena.h"
#include "memory/memory_private.h"

vmm_status vmm_memory_create(struct vmm_adapter *adapter, const struct vmm_memory_engine *engine,
			     uint64_t system_limit_bytes)
{
	struct vmm_memory *memory = vmm_calloc(1, sizeof(*memory));
	vmm_status status;

	if (!memory)
		return VMM_NO_MEMORY;
	memory->adapter = adapter;
	memory->engine = engine;
	memory->caps = vmm_port_caps(adapter->port);
	memory->system_limit_bytes = system_limit_bytes;
	vmm_list_init(&memory->deferred);
	vmm_list_init(&memory->closed);
	vmm_list_init(&memory->orphans);
	vmm_list_init(&memory->uploads);
	vmm_list_init(&memory->partials);
	vmm_list_init(&memory->allocations);
	vmm_list_init(&memory->queued_offers);
	vmm_list_init(&memory->context_allocations);
	vmm_list_init(&memory->paging_queues);
	vmm_list_init(&memory->departures);
	vmm_list_init(&memory->budgets);
	vmm_list_init(&memory->vas);
	vmm_list_init(&memory->power_returns);
	vmm_list_init(&memory->peaks.readers);
	adapter->memory = memory;
	memory->arenas = vmm_calloc(VMM_ARENAS_MAX, sizeof(*memory->arenas));
	memory->touched = vmm_calloc(VMM_TOUCHED_MAX, sizeof(struct vmm_instance *));
	status = memory->arenas && memory->touched ? VMM_OK : VMM_NO_MEMORY;
	if (vmm_ok(status))
		status = vmm_segments_create(memory);
	if (vmm_ok(status)) {
		vmm_paging_lock(adapter);
		status = vmm_paging_buffers_create(memory);
		vmm_paging_commit(adapter);
	}
	if (!vmm_ok(status))
		vmm_memory_destroy(adapter);
	return status;
}

void vmm_memory_destroy(struct vmm_adapter *adapter)
{
	struct vmm_memory *memory = adapter->memory;

	vmm_trims_finish(memory);
	vmm_swizzle_finish(memory);
	vmm_budgets_finish(memory);
	vmm_peak_readers_finish(memory);
	vmm_paging_lock(adapter);
	vmm_paging_buffers_destroy(memory);
	vmm_paging_unlock(adapter);
	vmm_backing_collect(memory);
	vmm_segments_destroy(memory);
	if (memory->arenas)
		vmm_arenas_finish(memory);
	adapter->memory = NULL;
	vmm_pool_finish(&memory->pool);
	vmm_free(memory->touched);
	vmm_free(memory);
}

/*
 * A DDI that runs under the lock during a reset would be refused, as for a removed adapter. So the
 * reset is waited for first. A reset itself waits for the threads inside the miniport, which
 * therefore do not wait for the reset.
 */
VMM_NO_THREAD_SAFETY_ANALYSIS void vmm_paging_lock(struct vmm_adapter *adapter)
{
	if (vmm_unlikely(atomic_load(&adapter->recovering)) &&
	    !vmm_port_blocks_reset(adapter->port))
		vmm_await_recovery(adapter);
	vmm_os_mutex_lock(&adapter->paging_lock);
}

VMM_NO_THREAD_SAFETY_ANALYSIS bool vmm_paging_trylock(struct vmm_adapter *adapter)
{
	return vmm_os_mutex_trylock(&adapter->paging_lock);
}

VMM_NO_THREAD_SAFETY_ANALYSIS void vmm_paging_unlock(struct vmm_adapter *adapter)
{
	/*
	 * Instances already carry the sequence number of pending commands, and a thread may wait
	 * only for queued packets.
	 */
	vmm_assert(!adapter->memory || !adapter->memory->pending || adapter->memory->resetting ||
		   atomic_load(&adapter->removed));
	vmm_os_mutex_unlock(&adapter->paging_lock);
}

void vmm_paging_commit(struct vmm_adapter *adapter)
{
	vmm_assert_held(&adapter->paging_lock);
	if (vmm_unlikely(adapter->memory->pending))
		vmm_memory_flush_locked(adapter);
	vmm_paging_unlock(adapter);
	adapter->memory->engine->kick(adapter);
}

void vmm_paging_unlock_idle(struct vmm_adapter *adapter)
{
	vmm_paging_unlock(adapter);
	adapter->memory->engine->hand_over(adapter);
}

vmm_status vmm_memory_dma_create_locked(struct vmm_adapter *adapter, uint64_t size_bytes,
					struct vmm_backing *backing, uint64_t *bus_address)
{
	vmm_status status = vmm_backing_create(
		adapter->memory, vmm_align_up(size_bytes, VMM_PAGE_SIZE), true, backing);

	vmm_assert_held(&adapter->paging_lock);
	if (vmm_ok(status))
		*bus_address = vmm_backing_bus_address(adapter->memory, backing);
	return status;
}

void vmm_memory_dma_destroy_locked(struct vmm_adapter *adapter, struct vmm_backing *backing)
{
	vmm_assert_held(&adapter->paging_lock);
	vmm_backing_destroy(adapter->memory, backing);
}

/* DMA buffers live long: allocated from the end, they do not fragment the space of allocations. */
static struct vmm_range_request dma_request(struct vmm_backing *backing)
{
	return (struct vmm_range_request){
		.size_bytes = backing->size_bytes, .flags = VMM_RANGE_FROM_END, .owner = backing};
}

vmm_status vmm_dma_map_in_free_space(struct vmm_memory *memory, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
{
	const struct vmm_range_request request = dma_request(backing);

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

vmm_status vmm_memory_dma_map_locked(struct vmm_adapter *adapter, struct vmm_backing *backing,
				     uint32_t segment_set, struct vmm_dma_mapping *place)
{
	struct vmm_memory *memory = adapter->memory;
	const struct vmm_range_request request = dma_request(backing);
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

void vmm_memory_dma_unmap_locked(struct vmm_adapter *adapter, const struct vmm_dma_mapping *place)
{
	struct vmm_segment *s = vmm_memory_segment(adapter->memory, place->segment);

	vmm_assert_held(&adapter->paging_lock);
	(void)!vmm_paging_unmap_range(adapter->memory, place->physical, place->segment,
				      vmm_range_offset(s->heap, place->range),
				      vmm_range_size(s->heap, place->range));
	vmm_segment_free(adapter->memory, s, place->range);
}
