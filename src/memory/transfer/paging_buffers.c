/* SPDX-License-Identifier: MIT */
/*
 * Paging buffers: a ring for each physical adapter, which grows while its buffers are in flight
 * instead of waiting (PAG-07). The buffers are in system memory; a miniport that asks for a
 * PagingBufferSegmentId has them mapped in that aperture (SEG-21). paging.c writes into them.
 */
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"
#include "range/range.h"

#include <string.h>

static bool is_no_space(vmm_status status)
{
	return status == VMM_NO_MEMORY || status == VMM_NO_VIDEO_MEMORY;
}

static vmm_status paging_buffer_add(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_buffer *buffer = &lane->buffer[lane->buffer_count];
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (lane->buffer_count == VMM_PAGING_BUFFERS_MAX)
		return VMM_NO_MEMORY;
	status = vmm_memory_dma_create_locked(memory->adapter, memory->caps->paging_buffer_bytes,
					      &buffer->backing, &buffer->bus_address);
	if (!vmm_ok(status))
		return status;
	buffer->address = buffer->bus_address;
	if (memory->caps->paging_private_bytes) {
		/*
		 * Zeroed and non-paged; vidmm never writes it. NULL if the miniport asked for none.
		 * (SEG-21)
		 */
		buffer->private_data = vmm_port_output_memory(memory->caps->paging_private_bytes,
							      memory->adapter->verify_driver);
		if (!buffer->private_data) {
			vmm_memory_dma_destroy_locked(memory->adapter, &buffer->backing);
			return VMM_NO_MEMORY;
		}
	}
	lane->buffer_count++;
	return VMM_OK;
}

/* Returns true also if the buffer needs no mapping, or gets none now. */
static bool is_mapped(const struct vmm_memory *memory, const struct vmm_paging_buffer *buffer)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return !memory->caps->paging_buffer_segment || buffer->segment || buffer->mapping ||
	       memory->powering_down;
}

/*
 * Maps the current buffer of the lane into the paging buffer segment, if the miniport names one.
 * The Map command is in that buffer itself and runs from its system address. It is therefore
 * submitted alone. (SEG-21)
 *
 * If the command does not fit behind those that the buffer has, the buffer itself may be the next
 * one of the lane, and is used again from its system address. It must not be mapped twice then.
 */
static vmm_status paging_buffer_map(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_paging_buffer *buffer = &lane->buffer[lane->current_buffer];
	struct vmm_dma_mapping place = {.physical = lane->physical};

	vmm_assert_held(&memory->adapter->paging_lock);
	if (is_mapped(memory, buffer))
		return VMM_OK;
	buffer->mapping = true;
	vmm_status status = vmm_dma_map_in_free_space(
		memory, &buffer->backing, 1u << (memory->caps->paging_buffer_segment - 1), &place);
	buffer->mapping = false;
	if (!vmm_ok(status))
		return status;
	vmm_memory_flush_locked(memory->adapter);
	buffer->segment = place.segment;
	buffer->range = place.range;
	buffer->address = place.address;
	return VMM_OK;
}

static void paging_buffer_free(struct vmm_memory *memory, struct vmm_paging_buffer *buffer)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_memory_dma_destroy_locked(memory->adapter, &buffer->backing);
	vmm_free(buffer->private_data);
	memset(buffer, 0, sizeof(*buffer));
}

/*
 * Makes a buffer current that is not in flight. Changes nothing if there is no memory or no
 * aperture space for it.
 */
static vmm_status paging_buffer_use(struct vmm_memory *memory, struct vmm_paging_lane *lane,
				    uint32_t index) VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t before = lane->current_buffer, end = lane->write,
		 private_end = lane->private_write;

	vmm_assert_held(&memory->adapter->paging_lock);
	lane->current_buffer = index;
	lane->start = lane->write = 0; /* commands start on a page boundary (DMA-06) */
	lane->private_start = lane->private_write = 0;
	vmm_status status = paging_buffer_map(memory, lane);
	if (is_no_space(status)) {
		lane->current_buffer = before;
		lane->start = lane->write = end;
		lane->private_start = lane->private_write = private_end;
	}
	return status;
}

/*
 * Uses one of the buffers that are not in flight. After a reset or low power some of them are not
 * mapped, and the aperture may have no space for them any more. (SEG-21)
 */
static vmm_status paging_buffer_use_idle(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t first = lane->current_buffer + 1;
	vmm_status status = VMM_NO_VIDEO_MEMORY;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < lane->buffer_count && is_no_space(status); i++) {
		uint32_t candidate = (first + i) % lane->buffer_count;

		if (vmm_timeline_done(memory->adapter, memory->adapter->paging_timeline,
				      lane->buffer[candidate].last_sequence))
			status = paging_buffer_use(memory, lane, candidate);
	}
	return status;
}

/* Adds a buffer to the ring and makes it current, or changes nothing. */
static vmm_status paging_buffer_grow(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = paging_buffer_add(memory, lane);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	status = paging_buffer_use(memory, lane, lane->buffer_count - 1);
	if (is_no_space(status))
		paging_buffer_free(memory, &lane->buffer[--lane->buffer_count]);
	return status;
}

/* Waits for the buffer that has been in flight longest of those that can be used then. */
static vmm_status paging_buffer_await(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint32_t oldest = (lane->current_buffer + 1) % lane->buffer_count;

	vmm_assert_held(&memory->adapter->paging_lock);
	while (oldest != lane->current_buffer && !is_mapped(memory, &lane->buffer[oldest]))
		oldest = (oldest + 1) % lane->buffer_count;
	vmm_status status = memory->engine->wait_locked(
		memory->adapter, memory->adapter->paging_timeline,
		lane->buffer[oldest].last_sequence, VIDMM_WAIT_PAGING_BUFFER);
	return vmm_ok(status) ? paging_buffer_use(memory, lane, oldest) : status;
}

vmm_status vmm_paging_buffer_next(struct vmm_memory *memory, struct vmm_paging_lane *lane)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(!memory->pending);
	vmm_status status = paging_buffer_use_idle(memory, lane);
	if (is_no_space(status))
		status = paging_buffer_grow(memory, lane);
	return is_no_space(status) ? paging_buffer_await(memory, lane) : status;
}

static void forget_lane(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < lane->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &lane->buffer[i];
		const struct vmm_dma_mapping place = {.physical = lane->physical,
						      .segment = buffer->segment,
						      .range = buffer->range};

		if (!buffer->segment)
			continue;
		vmm_memory_dma_unmap_locked(memory->adapter, &place);
		buffer->segment = buffer->range = 0;
		buffer->address = buffer->bus_address;
	}
	lane->current_buffer = 0;
	lane->start = lane->write = 0;
	lane->private_start = lane->private_write = 0;
	lane->pending = false;
}

/* The aperture mappings of the buffers are lost with the reset, like all others. (PAG-27) */
void vmm_paging_drop_pending(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->lane_count; i++)
		forget_lane(memory, &memory->lane[i]);
	memory->synchronous = false;
	memory->after = 0;
}

vmm_status vmm_paging_map_current(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->lane_count; i++) {
		vmm_status mapped = paging_buffer_map(memory, &memory->lane[i]);

		if (!vmm_ok(mapped))
			status = mapped;
	}
	return status;
}

static vmm_status unmap_buffer(struct vmm_memory *memory, uint32_t physical,
			       struct vmm_paging_buffer *buffer) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_segment *s = vmm_memory_segment(memory, buffer->segment);
	uint32_t segment = buffer->segment;

	vmm_assert_held(&memory->adapter->paging_lock);
	buffer->segment = 0;
	buffer->address = buffer->bus_address;
	vmm_status status = vmm_paging_unmap_range(memory, physical, segment,
						   vmm_range_offset(s->heap, buffer->range),
						   vmm_range_size(s->heap, buffer->range));
	vmm_memory_flush_locked(memory->adapter);
	vmm_segment_free(memory, s, buffer->range);
	return status;
}

/* The Unmap commands run from a buffer's system address, as the Map commands did. */
vmm_status vmm_paging_buffers_unmap(struct vmm_memory *memory)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_assert(!memory->pending);
	memory->powering_down = true;
	for (uint32_t l = 0; l < memory->lane_count; l++) {
		struct vmm_paging_lane *lane = &memory->lane[l];

		for (uint32_t i = 0; i < lane->buffer_count && vmm_ok(status); i++)
			if (lane->buffer[i].segment)
				status = unmap_buffer(memory, l, &lane->buffer[i]);
	}
	return status;
}

vmm_status vmm_paging_buffers_remap(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	memory->powering_down = false;
	return vmm_paging_map_current(memory);
}

VMM_COLD static void report_no_space(struct vmm_memory *memory)
{
	uint32_t segment = memory->caps->paging_buffer_segment;

	vmm_reason(memory->adapter->observe, VMM_NO_VIDEO_MEMORY, 0, 0,
		   "adapter start: the paging buffer of %u bytes does not fit into segment %u of "
		   "%llu bytes, its PagingBufferSegmentId (SEG-21)",
		   memory->caps->paging_buffer_bytes, segment,
		   (unsigned long long)vmm_memory_segment(memory, segment)->capacity_bytes);
}

vmm_status vmm_paging_buffers_create(struct vmm_memory *memory)
{
	vmm_status status = vmm_backing_create(memory, VMM_PAGE_SIZE, true, &memory->dummy_page);

	vmm_assert_held(&memory->adapter->paging_lock);
	while (vmm_ok(status) && memory->lane_count < memory->adapter->physical_adapters) {
		struct vmm_paging_lane *lane = &memory->lane[memory->lane_count];

		lane->physical = memory->lane_count++;
		status = paging_buffer_add(memory, lane);
		if (vmm_ok(status))
			status = paging_buffer_map(memory, lane);
	}
	if (status == VMM_NO_VIDEO_MEMORY)
		report_no_space(memory);
	return status;
}

static void destroy_lane(struct vmm_memory *memory, struct vmm_paging_lane *lane)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < lane->buffer_count; i++) {
		struct vmm_paging_buffer *buffer = &lane->buffer[i];

		/* The adapter has stopped, which ended the mapping. */
		if (buffer->segment)
			vmm_segment_free(memory, vmm_memory_segment(memory, buffer->segment),
					 buffer->range);
		paging_buffer_free(memory, buffer);
	}
	lane->buffer_count = 0;
}

void vmm_paging_buffers_destroy(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t i = 0; i < memory->lane_count; i++)
		destroy_lane(memory, &memory->lane[i]);
	vmm_backing_destroy(memory, &memory->dummy_page);
}
