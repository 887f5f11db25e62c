/* SPDX-License-Identifier: MIT */
/*
 * Windows of swizzling ranges: device memory in which a miniport shows an allocation that is stored
 * elsewhere, different allocations at different times (SWZ-24).
 *
 * An out-of-process client gets no descriptor of that memory. While the range is the client's, a
 * client object overlays the window. The object holds what the miniport wrote there when it
 * acquired the range, and the device memory below it is emptied. When the range is released, the
 * miniport reads the object for the last time, and then the object is removed. A client that kept a
 * mapping sees only its own former content.
 *
 * Content that was mapped in-process is removed, too: the next client's window may be larger than
 * what the miniport writes there.
 */
#include "memory/image/image.h"
#include "memory/image/window.h"

static uint64_t bytes_of(const struct vmm_swizzling_range *range)
{
	return vmm_align_up(range->size_bytes, VMM_PAGE_SIZE);
}

/* Is the range's memory a window only, not part of a segment? */
static bool is_window(const struct vmm_memory *memory, const struct vmm_swizzling_range *range)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (range->overlaid)
		return true;
	if (!range->changed || !range->owner->segment)
		return false;
	const struct vmm_segment *segment = &memory->segment[range->owner->segment - 1];

	/*
	 * If the address of the segment is not known, the range might show the segment's own bytes.
	 */
	return (segment->aperture || segment->bar) &&
	       !vmm_port_is_segment_memory(memory->adapter->port, range->physical, bytes_of(range));
}

/* Returns NULL if it is no window, or if it shows pages of the owner. */
static const struct vmm_os_memory *window_of(const struct vmm_memory *memory,
					     const struct vmm_swizzling_range *range,
					     uint64_t *offset) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	return is_window(memory, range)
		       ? vmm_port_cpu_memory(memory->adapter->port, range->physical,
					     bytes_of(range), offset)
		       : NULL;
}

/*
 * Does another range overlap the window? With of_others, one with the same owner and the same
 * extent does not count.
 */
static bool overlaps(const struct vmm_memory *memory, const struct vmm_swizzling_range *range,
		     bool of_others)
{
	for (uint32_t id = 0; id < memory->range_count; id++) {
		const struct vmm_swizzling_range *r = &memory->ranges[id];

		if (!r->owner || r == range || !r->changed ||
		    r->physical >= range->physical + bytes_of(range) ||
		    range->physical >= r->physical + bytes_of(r))
			continue;
		if (!of_others || r->owner != range->owner || r->physical != range->physical ||
		    bytes_of(r) != bytes_of(range))
			return true;
	}
	return false;
}

static const char *obstacle(const struct vmm_memory *memory,
			    const struct vmm_swizzling_range *range,
			    const struct vmm_os_memory *window)
{
	if (!window)
		return "is in a segment, or its segment's address is not known";
	if (range->size_bytes % VMM_PAGE_SIZE)
		return "ends inside a page";
	return overlaps(memory, range, true) ? "overlaps the window of another range" : NULL;
}

vmm_status vmm_window_overlay(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	const struct vmm_allocation *a = range->owner->allocation;
	uint64_t offset;
	const struct vmm_os_memory *window = window_of(memory, range, &offset);
	const char *why = obstacle(memory, range, window);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (why)
		return vmm_refuse_reason(
			memory->adapter->observe, STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED,
			a->owner, range->owner->handle,
			"Q-93: the window of swizzling range %u for 0x%08x, %llu bytes at "
			"0x%llx, %s: it cannot be mapped into an out-of-process client",
			(unsigned)(range - memory->ranges), range->owner->handle,
			(unsigned long long)range->size_bytes, (unsigned long long)range->physical,
			why);
	/*
	 * The window's content is copied, so the GPU must not write to it. Under a lock only paging
	 * can (SWZ-04).
	 */
	if (vmm_instance_busy(range->owner, VMM_USE_WRITE, NULL, NULL))
		return VMM_PENDING;
	vmm_status status = vmm_os_client_object_cover_with_content(window, offset, bytes_of(range),
								    vmm_os_viewer_owner(a->viewer));
	range->overlaid = vmm_ok(status);
	return status;
}

void vmm_window_release(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	uint64_t size_bytes = bytes_of(range), offset;
	const struct vmm_os_memory *window = window_of(memory, range, &offset);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!window)
		return;
	if (range->overlaid)
		vmm_os_client_object_release(window, offset, size_bytes, false);
	if (overlaps(memory, range, false))
		return;
	/*
	 * Without memory for the change of mappings the object stays. The next owner's object
	 * replaces it, or vmm_alternate_map_range removes it.
	 */
	(void)!vmm_ok(vmm_os_client_object_uncover(window, offset, size_bytes));
	vmm_os_memory_discard(window, offset, size_bytes);
}
