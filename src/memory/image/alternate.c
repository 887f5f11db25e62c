/* SPDX-License-Identifier: MIT */
/*
 * Alternate addresses (UseAlternateVA, SWZ-24). An alternate address is a CPU mapping of an
 * instance's linear image, in addition to that of other locks. The image is read through a
 * swizzling range whose size and position the miniport may choose. The mapping lives as long as the
 * range.
 *
 * alternate_paging.c evicts and restores an instance that is locked through such an address.
 *
 * Without a range the address maps pages in system memory: the linear image that is there, pages
 * that a lock listed, or the retained system copy, which is what the CPU works on (PAG-14).
 */
#include "memory/image/image.h"
#include "memory/image/window.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

/*
 * Returns the memory object at that physical address: device memory, or the instance's own pages.
 * NULL: neither.
 */
static const struct vmm_os_memory *window_of(const struct vmm_memory *memory,
					     const struct vmm_instance *instance, uint64_t physical,
					     uint64_t size_bytes, uint64_t *offset)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	const struct vmm_backing *backing = &instance->backing;
	const struct vmm_os_memory *window =
		vmm_port_cpu_memory(memory->adapter->port, physical, size_bytes, offset);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (window || !backing->arena || vmm_backing_is_existing(backing))
		return window;
	uint64_t into = physical - vmm_backing_bus_address(memory, backing);

	if (into > backing->size_bytes || size_bytes > backing->size_bytes - into)
		return NULL;
	window = vmm_backing_memory(memory, backing, offset);
	*offset += into;
	return window;
}

bool vmm_alternate_range_is_valid(const struct vmm_memory *memory,
				  const struct vmm_instance *instance,
				  const DXGKARG_ACQUIRESWIZZLINGRANGE *answer)
{
	uint64_t physical = (uint64_t)answer->CPUTranslatedAddress.QuadPart, offset;
	uint64_t least = instance->allocation->size_bytes;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (answer->RangeSize >= least && answer->RangeSize <= UINT32_MAX - VMM_PAGE_SIZE &&
	    physical % VMM_PAGE_SIZE == 0 &&
	    window_of(memory, instance, physical, vmm_align_up(answer->RangeSize, VMM_PAGE_SIZE),
		      &offset))
		return true;
	vmm_finding(
		memory->adapter->observe, "SWZ-24", instance->allocation->owner, instance->handle,
		"DxgkDdiAcquireSwizzlingRange answered RangeSize %llu at CPUTranslatedAddress "
		"0x%llx for %llu bytes of 0x%08x: the range must cover the allocation, begin at a "
		"page boundary, and lie in a BAR or in the allocation's own pages",
		(unsigned long long)answer->RangeSize, (unsigned long long)physical,
		(unsigned long long)least, instance->handle);
	return false;
}

static vmm_status create(const struct vmm_allocation *allocation,
			 const struct vmm_os_memory *source, uint64_t offset, uint64_t size_bytes,
			 struct vmm_alternate **created)
{
	struct vmm_alternate *alternate = vmm_calloc(1, sizeof(*alternate));
	vmm_status status;

	if (!alternate)
		return VMM_NO_MEMORY;
	status = vmm_os_view_reserve_for(allocation->adapter->os, allocation->viewer, size_bytes,
					 &alternate->view);
	if (vmm_ok(status))
		status = vmm_os_view_map(&alternate->view, 0, source, offset, size_bytes);
	if (!vmm_ok(status)) {
		vmm_os_view_release(&alternate->view);
		vmm_free(alternate);
		return VMM_NO_MEMORY;
	}
	*created = alternate;
	return VMM_OK;
}

/*
 * Only a client object of that client may be mapped into an out-of-process client. A range that
 * shows the instance at its placement lies in one. A window elsewhere, in device memory that others
 * use before and after, needs vmm_window_overlay. An in-process owner gets the window
 * itself: an object that could not be removed from it (vmm_window_release) is removed now.
 */
static vmm_status make_mappable(struct vmm_memory *memory, struct vmm_swizzling_range *range,
				const struct vmm_os_memory *window, uint64_t offset,
				uint64_t size_bytes) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_os_viewer *viewer = range->owner->allocation->viewer;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_likely(!viewer))
		return vmm_os_client_object_uncover(window, offset, size_bytes);
	return vmm_os_client_object_is_owned_by(window, offset, size_bytes,
						vmm_os_viewer_owner(viewer))
		       ? VMM_OK
		       : vmm_window_overlay(memory, range);
}

vmm_status vmm_alternate_map_range(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	uint64_t size = vmm_align_up(range->size_bytes, VMM_PAGE_SIZE), offset = 0;
	const struct vmm_os_memory *window;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (range->alternate)
		return VMM_OK;
	window = window_of(memory, range->owner, range->physical, size, &offset);
	vmm_assert(window);
	status = make_mappable(memory, range, window, offset, size);
	if (status != VMM_OK)
		return status;
	status = create(range->owner->allocation, window, offset, size, &range->alternate);
	if (!vmm_ok(status))
		return status;
	range->alternate->range = (uint32_t)(range - memory->ranges);
	range->alternate->private_data = range->private_data;
	return VMM_OK;
}

vmm_status vmm_alternate_map(struct vmm_memory *memory, struct vmm_instance *instance,
			     const struct vmm_swizzling_range *range, uint32_t private_data,
			     char **address)
{
	const struct vmm_os_memory *pages;
	vmm_status status;
	uint64_t offset;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (range) {
		*address = range->alternate->view.address;
		return VMM_OK;
	}
	vmm_assert(instance->place == VMM_PLACEMENT_SYSTEM || instance->partial ||
		   instance->retained);
	if (!instance->alternate) {
		pages = vmm_backing_memory(memory, &instance->backing, &offset);
		status = create(instance->allocation, pages, offset,
				instance->allocation->size_bytes, &instance->alternate);
		if (!vmm_ok(status))
			return status;
		instance->alternate->private_data = private_data;
	}
	*address = instance->alternate->view.address;
	return VMM_OK;
}

void vmm_alternate_free(struct vmm_alternate **alternate)
{
	vmm_os_view_release(&(*alternate)->view);
	vmm_free(*alternate);
	*alternate = NULL;
}

static void end_view(struct vmm_alternate *alternate)
{
	uint64_t size_bytes = alternate->view.size_bytes;

	vmm_os_view_release(&alternate->view);
	alternate->view.size_bytes = size_bytes; /* the image's, which still exists */
}

void vmm_alternate_end(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (instance->alternate)
		end_view(instance->alternate);
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance && memory->ranges[id].alternate)
			vmm_alternate_free(&memory->ranges[id].alternate);
}

bool vmm_alternate_is_resized(const struct vmm_instance *instance)
{
	return vmm_alternate_is_special(instance) &&
	       instance->alternate->view.size_bytes != instance->allocation->size_bytes;
}

void vmm_alternate_flush(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];

		uint64_t offset = 0, size;

		if (range->owner != instance || !range->alternate)
			continue;
		/* Through the host's mapping: the client's may be in another address space. */
		size = range->alternate->view.size_bytes;
		const struct vmm_os_memory *window =
			window_of(memory, instance, range->physical, size, &offset);
		if (window)
			vmm_os_cache_flush(memory->adapter->os, window->base + offset, size);
	}
}
