/* SPDX-License-Identifier: MIT */
/*
 * Segments: allocation of their address ranges, and the amount of graphics memory (SEG-04, SEG-05).
 * The miniport may lower the limits: CommitLimit for one aperture segment,
 * ApertureSegmentCommitLimit for all apertures together.
 */
#include "memory/state/state.h"
#include "range/range.h"

#define MIN_GRAPHICS_BYTES ((uint64_t)64 << 20)

static uint64_t commit_limit(const struct vmm_port_segment *segment)
{
	return vmm_min_u64(segment->size_bytes, segment->commit_limit_bytes);
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t total;

	return vmm_add_overflows(a, b, &total) ? UINT64_MAX : total;
}

static void sum_segments(struct vmm_memory *memory, uint64_t *apertures)
{
	*apertures = 0;
	for (uint32_t i = 0; i < memory->caps->segment_count; i++) {
		const struct vmm_port_segment *segment = &memory->caps->segment[i];
		uint64_t *part = segment->flags.Aperture ? apertures
				 : segment->flags.PopulatedFromSystemMemory
					 ? &memory->dedicated_system_bytes
					 : &memory->dedicated_video_bytes;

		*part = saturating_add(*part, commit_limit(segment));
	}
}

/*
 * Computes the limit of system memory that all apertures may map (SEG-05). An
 * ApertureSegmentCommitLimit of 0 sets no limit, like a CommitLimit of 0 (SEG-04).
 */
static vmm_status compute_shared_limit(struct vmm_memory *memory)
{
	uint64_t for_graphics = vmm_max_u64(memory->system_limit_bytes / 2, MIN_GRAPHICS_BYTES);
	uint64_t limit = memory->caps->aperture_commit_limit_bytes, apertures;

	sum_segments(memory, &apertures);
	if (memory->dedicated_system_bytes > for_graphics)
		return vmm_refuse_rule(
			memory->adapter->observe, VMM_INVALID_PARAMETER, "SEG-05", 0, 0,
			"memory segments take %llu bytes of system memory "
			"(PopulatedFromSystemMemory), but graphics may use only %llu of %llu",
			(unsigned long long)memory->dedicated_system_bytes,
			(unsigned long long)for_graphics,
			(unsigned long long)memory->system_limit_bytes);
	memory->shared_system_bytes =
		vmm_min_u64(vmm_min_u64(apertures, limit ? limit : UINT64_MAX),
			    for_graphics - memory->dedicated_system_bytes);
	if (!apertures || memory->shared_system_bytes >= VMM_PAGE_SIZE)
		return VMM_OK;
	return vmm_refuse_rule(
		memory->adapter->observe, VMM_INVALID_PARAMETER, "SEG-05", 0, 0,
		"no page can be mapped through an aperture: ApertureSegmentCommitLimit is %llu, "
		"and %llu bytes of system memory are left for graphics",
		(unsigned long long)limit,
		(unsigned long long)(for_graphics - memory->dedicated_system_bytes));
}

/* Allocates the invalid ranges permanently, so that nothing is placed there (SEG-26). */
static vmm_status reserve_invalid_ranges(struct vmm_segment *segment)
{
	vmm_status status = VMM_OK;

	for (uint32_t i = 0; i < segment->port->invalid_count && vmm_ok(status); i++) {
		const struct vmm_port_range *range = &segment->port->invalid[i];
		const struct vmm_range_request request = {.size_bytes = range->size_bytes,
							  .low = range->offset,
							  .high = range->offset +
								  range->size_bytes};
		vmm_range_node node;
		uint64_t offset;

		status = vmm_range_allocate(segment->heap, &request, &node, &offset);
		vmm_assert(!vmm_ok(status) || offset == range->offset);
		segment->invalid_bytes += range->size_bytes;
	}
	return status;
}

static vmm_status segment_init(struct vmm_memory *memory, uint32_t index)
{
	struct vmm_segment *segment = &memory->segment[index];
	uint64_t size;

	segment->port = &memory->caps->segment[index];
	segment->aperture = segment->port->flags.Aperture;
	for (uint32_t c = 0; c < VMM_CLASS_COUNT; c++)
		vmm_list_init(&segment->lru[c]);
	if (!segment->aperture && segment->port->flags.CpuVisible)
		segment->cpu_memory = vmm_port_segment_memory(memory->adapter->port, index + 1,
							      &segment->cpu_offset);
	segment->bar = segment->cpu_memory;
	if (!segment->bar && memory->caps->swizzling_range_count)
		segment->bar = vmm_port_hidden_memory(memory->adapter->port, index + 1,
						      &segment->cpu_offset);
	/* An aperture never maps more than its commit limit: the heap has that size (SEG-04). */
	size = segment->aperture
		       ? vmm_min_u64(commit_limit(segment->port), memory->shared_system_bytes)
		       : segment->port->size_bytes;
	segment->capacity_bytes = vmm_align_down(size, VMM_PAGE_SIZE);
	if (segment->bar) {
		segment->last_reader =
			vmm_calloc(segment->capacity_bytes / VMM_LAST_READER_BYTES + 1,
				   sizeof(*segment->last_reader));
		if (!segment->last_reader)
			return VMM_NO_MEMORY;
	}
	vmm_status status =
		vmm_range_heap_create(segment->capacity_bytes, VMM_PAGE_SIZE, &segment->heap);
	if (!vmm_ok(status)) {
		vmm_free(segment->last_reader);
		return status;
	}
	status = reserve_invalid_ranges(segment);
	if (!vmm_ok(status)) {
		vmm_range_heap_destroy(segment->heap);
		vmm_free(segment->last_reader);
	}
	return status;
}

/* Counts the segment that segment_init() initialized. */
static void add_segment(struct vmm_memory *memory)
{
	uint32_t index = memory->segment_count++;
	const DXGK_SEGMENTFLAGS flags = memory->segment[index].port->flags;

	if (flags.PitchAlignment)
		memory->pitched_set |= 1u << index;
	if (flags.Use64KBPages)
		memory->large_page_set |= 1u << index;
}

vmm_status vmm_segments_create(struct vmm_memory *memory)
{
	vmm_status status = compute_shared_limit(memory);

	while (vmm_ok(status) && memory->segment_count < memory->caps->segment_count) {
		status = segment_init(memory, memory->segment_count);
		if (vmm_ok(status))
			add_segment(memory);
	}
	return status;
}

void vmm_segments_destroy(struct vmm_memory *memory)
{
	for (uint32_t i = 0; i < memory->segment_count; i++) {
		vmm_assert(memory->segment[i].residents == 0);
		vmm_free(memory->segment[i].last_reader);
		vmm_range_heap_destroy(memory->segment[i].heap);
	}
	vmm_assert(memory->mapped_bytes == 0);
}

vmm_status vmm_segment_allocate(struct vmm_memory *memory, struct vmm_segment *segment,
				const struct vmm_range_request *request, vmm_range_node *node,
				uint64_t *offset)
{
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_segment_is_over_limit(memory, segment, request->size_bytes))
		return VMM_NO_VIDEO_MEMORY;
	status = vmm_range_allocate(segment->heap, request, node, offset);
	if (segment->aperture && vmm_ok(status))
		memory->mapped_bytes += request->size_bytes;
	return status;
}

void vmm_segment_free(struct vmm_memory *memory, struct vmm_segment *segment, vmm_range_node node)
{
	if (segment->aperture)
		memory->mapped_bytes -= vmm_range_size(segment->heap, node);
	vmm_range_free(segment->heap, node);
}

vmm_status vmm_segment_allocate_extents(struct vmm_segment *segment,
					const struct vmm_range_request *request,
					uint64_t unit_bytes, struct vmm_range_extents **extents)
{
	vmm_assert(!segment->aperture);
	return vmm_range_allocate_extents(segment->heap, request, unit_bytes, extents);
}

vmm_status vmm_segment_allocate_again(struct vmm_segment *segment, struct vmm_instance *owner,
				      struct vmm_range_extents *extents)
{
	vmm_status status = VMM_OK;
	uint32_t i = 0;

	for (; i < extents->count && vmm_ok(status); i++) {
		struct vmm_range_extent *e = &extents->extent[i];
		const struct vmm_range_request request = {.size_bytes = e->size_bytes,
							  .low = e->offset,
							  .high = e->offset + e->size_bytes,
							  .owner = owner};
		uint64_t offset;

		status = vmm_range_allocate(segment->heap, &request, &e->node, &offset);
	}
	if (vmm_ok(status))
		return VMM_OK;
	for (i--; i-- > 0;)
		vmm_range_free(segment->heap, extents->extent[i].node);
	return status;
}

void vmm_segment_free_placement(struct vmm_memory *memory, struct vmm_segment *segment,
				struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!instance->extents))
		vmm_segment_free(memory, segment, instance->range);
	else
		vmm_range_free_extents(segment->heap, instance->extents);
	instance->extents = NULL;
	instance->range = VMM_RANGE_NONE;
}

uint32_t vmm_segment_apertures(const struct vmm_memory *memory)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (memory->segment[i].aperture)
			set |= 1u << i;
	return set;
}
