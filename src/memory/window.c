/* SPDX-License-Identifier: MIT */
/*
 * Windows of swizzling ranges: memory of the device in which a miniport shows an allocation that lies elsewhere, one today and
 * another tomorrow (SWZ-24). Who is apart gets no descriptor of that memory, but while the range is his a private object lies over
 * it, which has what the miniport wrote there when it acquired the range; under it nothing is left. With the range
 * the object goes, after the miniport has read it for the last time. Whoever kept a mapping of it has what was his own.
 *
 * Nor does anything stay that nobody apart was shown: the next one's window may be larger than what the miniport writes there.
 */
#include "memory/window.h"

static uint64_t bytes_of(const struct vmm_swizzling_range *range)
{
	return vmm_align_up(range->size_bytes, VMM_PAGE_SIZE);
}

/* It is nothing but a window: no place in a segment. */
static bool is_window(const struct vmm_memory *memory, const struct vmm_swizzling_range *range)
{
	if (range->laid)
		return true;
	if (!range->changed || !range->owner->segment)
		return false;
	const struct vmm_segment *segment = &memory->segment[range->owner->segment - 1];

	/* Of a segment of which nobody knows where it lies the range might show the very bytes. */
	return (segment->aperture || segment->bar) &&
	       !vmm_port_is_of_segment(memory->adapter->port, range->physical, bytes_of(range));
}

/* NULL: it is none, or pages of the owner's. */
static const struct vmm_os_memory *window_of(const struct vmm_memory *memory,
					     const struct vmm_swizzling_range *range,
					     uint64_t *offset)
{
	return is_window(memory, range)
		       ? vmm_port_cpu_memory(memory->adapter->port, range->physical,
					     bytes_of(range), offset)
		       : NULL;
}

/* Another range that shows some of the same window: of that owner, or of any other than that one. */
static bool meets(const struct vmm_memory *memory, const struct vmm_swizzling_range *range,
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

static const char *why_not(const struct vmm_memory *memory, const struct vmm_swizzling_range *range,
			   const struct vmm_os_memory *window)
{
	if (!window)
		return "is in a segment, or that is not known";
	if (range->size_bytes % VMM_PAGE_SIZE)
		return "ends inside a page";
	return meets(memory, range, true) ? "is part of another range's" : NULL;
}

vmm_status vmm_window_lay(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	const struct vmm_allocation *a = range->owner->allocation;
	uint64_t offset;
	const struct vmm_os_memory *window = window_of(memory, range, &offset);
	const char *why = why_not(memory, range, window);

	if (why) {
		vmm_reason(
			memory->adapter->observe, STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED,
			a->owner, range->owner->handle,
			"Q-93: the window of swizzling range %u for 0x%08x, %llu bytes at 0x%llx, %s: not for a "
			"process in another address space",
			(unsigned)(range - memory->ranges), range->owner->handle,
			(unsigned long long)range->size_bytes, (unsigned long long)range->physical,
			why);
		return STATUS_GRAPHICS_UNSWIZZLING_APERTURE_UNSUPPORTED;
	}
	/* What lies there is copied: nobody may write to it meanwhile. Under a lock paging alone can (SWZ-04). */
	if (vmm_instance_busy(range->owner, VMM_USE_WRITE, NULL, NULL))
		return VMM_PENDING;
	vmm_status status = vmm_os_private_carry(window, offset, bytes_of(range),
						 vmm_os_viewer_owner(a->viewer));
	range->laid = vmm_ok(status);
	return status;
}

void vmm_window_leave(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	uint64_t size_bytes = bytes_of(range), offset;
	const struct vmm_os_memory *window = window_of(memory, range, &offset);

	if (!window)
		return;
	if (range->laid)
		vmm_os_private_leave(window, offset, size_bytes, false);
	range->laid = false;
	if (meets(memory, range, false))
		return;
	vmm_os_private_take(window, offset, size_bytes);
	vmm_os_memory_discard(window, offset, size_bytes);
}
