/* SPDX-License-Identifier: MIT */
/*
 * Extents of a placement: the contiguous ranges of a segment that an instance has there. Most
 * placements have one. Only one in a memory segment can have several (PAG-24, Q-230), and only then
 * is instance->extents set. Code that accesses content where it is walks the extents:
 *
 *	for (uint64_t at = 0; at < size; at += extent.size_bytes) {
 *		extent = vmm_extent_at(instance, at, size);
 */
#ifndef VMM_MEMORY_EXTENTS_H
#define VMM_MEMORY_EXTENTS_H

#include "memory/state/types.h"

struct vmm_extent {
	uint64_t offset, size_bytes; /* in the segment */
};

/*
 * Returns the part of the content [at, end) that is contiguous from `at` on. EXTENTS NULL: all of
 * the content is at that offset of the segment.
 */
static inline struct vmm_extent vmm_extent_of(const struct vmm_range_extents *extents,
					      uint64_t offset, uint64_t at, uint64_t end)
{
	if (vmm_likely(!extents))
		return (struct vmm_extent){offset + at, end - at};
	const struct vmm_range_extent *e = vmm_range_extent_at(extents, at);

	return (struct vmm_extent){e->offset + (at - e->from),
				   vmm_min_u64(end, e->from + e->size_bytes) - at};
}

/* The same for the placement that the instance has. */
static inline struct vmm_extent vmm_extent_at(const struct vmm_instance *instance, uint64_t at,
					      uint64_t end) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	return vmm_extent_of(instance->extents, instance->offset, at, end);
}

#endif
