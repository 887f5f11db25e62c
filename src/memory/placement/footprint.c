/* SPDX-License-Identifier: MIT */
/*
 * Footprint: the bytes that an allocation occupies in a segment. In most segments that is its size.
 * A segment with PitchAlignment requires PitchAlignedSize (SEG-10). A segment of 64 KiB pages
 * requires whole pages (SEG-11). A protected allocation occupies whole units of the protected range
 * (ALF-26). The backing store always has the allocation's size.
 */
#include "memory/placement/placement.h"

uint64_t vmm_footprint_protected_units(const struct vmm_segment *segment, uint64_t size_bytes)
{
	return vmm_align_up(size_bytes,
			    vmm_max_u64(segment->port->vpr.alignment, segment->port->page_bytes));
}

uint64_t vmm_footprint_bytes(const struct vmm_segment *segment,
			     const struct vmm_allocation *allocation)
{
	uint64_t bytes = vmm_unlikely(segment->port->flags.PitchAlignment) ? allocation->pitch_bytes
									   : allocation->size_bytes;

	if (vmm_unlikely(allocation->in_vpr))
		return vmm_footprint_protected_units(segment, bytes);
	return vmm_align_up(bytes, segment->port->page_bytes);
}

uint64_t vmm_footprint_largest(const struct vmm_memory *memory,
			       const struct vmm_allocation *allocation)
{
	uint32_t set = allocation->read_set | allocation->write_set;
	uint64_t bytes = allocation->size_bytes;

	for (uint32_t i = 0; i < memory->segment_count; i++)
		if (set & 1u << i)
			bytes = vmm_max_u64(bytes,
					    vmm_footprint_bytes(&memory->segment[i], allocation));
	return bytes;
}

/* An allocation without PitchAlignedSize cannot be in a PitchAlignment segment (SEG-10). */
uint32_t vmm_footprint_excluded_set(const struct vmm_memory *memory, uint64_t pitch_bytes)
{
	return pitch_bytes ? 0 : memory->pitched_set;
}

struct vmm_flags_verdict vmm_footprint_check(const struct vmm_memory *memory,
					     const DXGK_ALLOCATIONINFO *info)
{
	uint32_t read = info->SupportedReadSegmentSet, write = info->SupportedWriteSegmentSet;
	uint32_t closed = vmm_footprint_excluded_set(memory, info->PitchAlignedSize);
	struct vmm_flags_verdict verdict = {NULL, NULL};

	if (((read | write) & memory->large_page_set) && info->Alignment % VMM_LARGE_PAGE_SIZE)
		verdict = (struct vmm_flags_verdict){
			"SEG-11",
			"Alignment is not a multiple of 64 KiB, the page size of a segment of its "
			"sets"};
	if (!(read & ~closed) || !(write & ~closed))
		verdict = (struct vmm_flags_verdict){
			"SEG-10",
			"PitchAlignedSize is 0, and a segment set contains PitchAlignment "
			"segments only"};
	else if (((read | write) & memory->pitched_set) && info->PitchAlignedSize &&
		 (info->PitchAlignedSize < info->Size ||
		  info->PitchAlignedSize > UINT64_MAX - VMM_LARGE_PAGE_SIZE))
		verdict = (struct vmm_flags_verdict){
			"SEG-10", "PitchAlignedSize is less than Size, or too large to be aligned"};
	if (info->EvictionSegmentSet & memory->pitched_set)
		verdict = (struct vmm_flags_verdict){
			"SEG-10", "EvictionSegmentSet contains a PitchAlignment segment"};
	return verdict;
}

void vmm_footprint_describe(const struct vmm_memory *memory, struct vmm_allocation *allocation,
			    uint64_t pitch_aligned_bytes)
{
	uint32_t closed = vmm_footprint_excluded_set(memory, pitch_aligned_bytes);

	allocation->pitch_bytes = vmm_align_up(pitch_aligned_bytes, VMM_PAGE_SIZE);
	allocation->read_set &= ~closed;
	allocation->write_set &= ~closed;
}
