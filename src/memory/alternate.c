/* SPDX-License-Identifier: MIT */
/*
 * Alternate addresses (UseAlternateVA, SWZ-24): the linear image through a swizzling range whose size and place the
 * miniport may choose itself, at an address of its own beside that of the view. It lives with its range. What is evicted
 * while the CPU has it locked by such an address is carried out by SPECIAL_LOCK_TRANSFER into pages that are then shown at
 * the same address, and goes back the same way (SWZ-25, LKR-07); with that the address ends.
 *
 * Where the linear image is in system memory already, or no range can be had, the address shows those pages; so also of a
 * system copy that stays, which is what the CPU works on (PAG-14).
 */
#include "memory/memory_private.h"
#include "memory/private.h"
#include "memory/window.h"

/* What lies there: memory of the device, or pages of the instance itself (behind an aperture). NULL: something else. */
static const struct vmm_os_memory *window_of(const struct vmm_memory *memory,
					     const struct vmm_instance *instance, uint64_t physical,
					     uint64_t size_bytes, uint64_t *offset)
{
	const struct vmm_backing *backing = &instance->backing;
	const struct vmm_os_memory *window =
		vmm_port_cpu_memory(memory->adapter->port, physical, size_bytes, offset);

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

	if (answer->RangeSize >= least && answer->RangeSize <= UINT32_MAX - VMM_PAGE_SIZE &&
	    physical % VMM_PAGE_SIZE == 0 &&
	    window_of(memory, instance, physical, vmm_align_up(answer->RangeSize, VMM_PAGE_SIZE),
		      &offset))
		return true;
	vmm_finding(
		memory->adapter->observe, "SWZ-24", instance->allocation->owner, instance->handle,
		"DxgkDdiAcquireSwizzlingRange answered RangeSize %llu at CPUTranslatedAddress 0x%llx for %llu bytes of "
		"0x%08x: not whole, not at a page, or neither in a BAR nor the allocation's own pages",
		(unsigned long long)answer->RangeSize, (unsigned long long)physical,
		(unsigned long long)least, instance->handle);
	return false;
}

static vmm_status make(const struct vmm_allocation *allocation, const struct vmm_os_memory *source,
		       uint64_t offset, uint64_t size_bytes, struct vmm_alternate **made)
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
	*made = alternate;
	return VMM_OK;
}

/*
 * a client that is apart sees what is its own alone. Where a range shows it where it lies that is so; a window that is elsewhere,
 * in memory of the device that others use before and after, is made so.
 */
static bool may_be_shown(const struct vmm_instance *owner, const struct vmm_os_memory *window,
			 uint64_t offset, uint64_t size_bytes)
{
	return vmm_likely(!owner->allocation->viewer) ||
	       vmm_os_private_is_of(window, offset, size_bytes,
				    vmm_os_viewer_owner(owner->allocation->viewer));
}

vmm_status vmm_alternate_show_range(struct vmm_memory *memory, struct vmm_swizzling_range *range)
{
	uint64_t size = vmm_align_up(range->size_bytes, VMM_PAGE_SIZE), offset = 0;
	const struct vmm_os_memory *window;
	vmm_status status;

	if (range->alternate)
		return VMM_OK;
	window = window_of(memory, range->owner, range->physical, size, &offset);
	vmm_assert(window);
	status = may_be_shown(range->owner, window, offset, size) ? VMM_OK
								  : vmm_window_lay(memory, range);
	if (status != VMM_OK)
		return status;
	status = make(range->owner->allocation, window, offset, size, &range->alternate);
	if (!vmm_ok(status))
		return status;
	range->alternate->range = (uint32_t)(range - memory->ranges);
	range->alternate->private_data = range->private_data;
	return VMM_OK;
}

vmm_status vmm_alternate_show(struct vmm_memory *memory, struct vmm_instance *instance,
			      uint32_t private_data, char **address)
{
	const struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, private_data);
	const struct vmm_os_memory *pages;
	vmm_status status;
	uint64_t offset;

	if (range) {
		*address = range->alternate->view.address;
		return VMM_OK;
	}
	vmm_assert(instance->place == VMM_PLACE_SYSTEM || instance->partial || instance->kept);
	if (!instance->alternate) {
		pages = vmm_backing_memory(memory, &instance->backing, &offset);
		status = make(instance->allocation, pages, offset, instance->allocation->size_bytes,
			      &instance->alternate);
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
	alternate->view.size_bytes = size_bytes; /* of the image, which stays */
}

void vmm_alternate_end(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (instance->alternate)
		end_view(instance->alternate);
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++)
		if (memory->ranges[id].owner == instance && memory->ranges[id].alternate)
			vmm_alternate_free(&memory->ranges[id].alternate);
}

bool vmm_alternate_is_foreign(const struct vmm_instance *instance)
{
	return vmm_alternate_is_special(instance) &&
	       instance->alternate->view.size_bytes != instance->allocation->size_bytes;
}

/* The commands of the way out; on failure nothing has changed. */
static vmm_status carry_out(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_alternate *alternate, const struct vmm_backing *pages)
{
	vmm_status status;

	instance->linear = vmm_instance_is_swizzled(instance); /* SWZ-19 */
	vmm_coherence_to_gpu(memory, instance, (enum vmm_place)instance->place);
	status = vmm_paging_special(memory, instance, alternate, pages, false);
	if (vmm_ok(status) && instance->place == VMM_PLACE_APERTURE)
		status = vmm_paging_unmap(memory, instance);
	if (!vmm_ok(status))
		instance->linear = false;
	else
		vmm_residency_mark_paged(memory, instance, true);
	return status;
}

/* The range's address shows these pages from now on; they are the instance's only ones (SWZ-25). */
static void become_special(struct vmm_memory *memory, struct vmm_instance *instance,
			   struct vmm_swizzling_range *range, const struct vmm_backing *pages)
{
	vmm_alternate_drop(instance); /* an older one, which nobody has locked */
	instance->alternate = range->alternate;
	instance->alternate->special = true;
	range->alternate = NULL;
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	instance->backing = *pages;
}

/* The pages are what the CPU goes on with, at the address that it has. */
static vmm_status change_over(struct vmm_memory *memory, struct vmm_instance *instance,
			      struct vmm_swizzling_range *range, const struct vmm_backing *pages)
{
	struct vmm_alternate *alternate = range->alternate;
	uint64_t offset;
	const struct vmm_os_memory *source = vmm_backing_memory(memory, pages, &offset);
	vmm_status status =
		vmm_os_view_map(&alternate->view, 0, source, offset, alternate->view.size_bytes);

	if (!vmm_ok(status))
		vmm_os_view_thaw(&alternate->view);
	become_special(memory, instance, range, pages);
	vmm_swizzle_release(memory, instance); /* until now it was read through them */
	return status;
}

vmm_status vmm_alternate_leave(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, instance->lock_data);
	uint64_t size = range->alternate->view.size_bytes;
	bool larger = size != instance->allocation->size_bytes;
	struct vmm_backing pages = {0};
	vmm_status status;

	/* What queued work reads it must find in its own form (LOCK-50). */
	if (larger && vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL))
		return VMM_NOT_SUPPORTED;
	/* The transfer is of the allocation's size; beyond it nothing of a former owner shows. */
	status = vmm_backing_create_for(memory, instance->allocation, size, larger, &pages);
	if (!vmm_ok(status))
		return status;
	/* LOCK-04, PAG-16: stores of the CPU block while the content moves. */
	status = vmm_os_view_freeze(&range->alternate->view);
	if (!vmm_ok(status))
		goto out_pages;
	status = carry_out(memory, instance, range->alternate, &pages);
	if (!vmm_ok(status))
		goto out_freeze;
	(void)!memory->engine->wait_locked(memory->adapter, memory->adapter->paging_timeline,
					   vmm_memory_flush_locked(memory->adapter),
					   VIDMM_WAIT_LOCK);
	return change_over(memory, instance, range, &pages);
out_freeze:
	vmm_os_view_thaw(&range->alternate->view);
out_pages:
	/* A part of the way may have been written into a paging buffer. */
	vmm_backing_destroy_after(memory, &pages, vmm_paging_sequence(memory));
	return status;
}

vmm_status vmm_alternate_abandon(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, instance->lock_data);
	struct vmm_alternate *alternate = range ? range->alternate : NULL;
	const struct vmm_os_memory *source;
	struct vmm_backing pages = {0};
	uint64_t offset;

	if (!alternate)
		return VMM_OK;
	vmm_status status = vmm_backing_create_for(memory, instance->allocation,
						   alternate->view.size_bytes, true, &pages);
	if (vmm_ok(status)) {
		source = vmm_backing_memory(memory, &pages, &offset);
		status = vmm_os_view_map(&alternate->view, 0, source, offset,
					 alternate->view.size_bytes);
	}
	if (!vmm_ok(status)) {
		vmm_os_view_unmap(&alternate->view);
		vmm_backing_destroy_after(memory, &pages, 0);
		return status;
	}
	become_special(memory, instance, range, &pages);
	instance->linear =
		vmm_instance_is_swizzled(instance); /* it goes back as it came (SWZ-25) */
	return VMM_OK;
}

/* Where it goes back to an aperture, new pages are mapped there first. */
static vmm_status map_new_pages(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_backing pages = {0}, old = instance->backing;
	vmm_status status = vmm_backing_create_for(memory, instance->allocation,
						   instance->allocation->size_bytes, true, &pages);

	if (!vmm_ok(status))
		return status;
	instance->backing = pages;
	status = vmm_paging_map(memory, instance);
	if (vmm_ok(status))
		return VMM_OK;
	instance->backing = old;
	vmm_backing_destroy_after(memory, &pages, vmm_paging_sequence(memory));
	return status;
}

vmm_status vmm_alternate_return(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_backing old = instance->backing;
	bool aperture = instance->place == VMM_PLACE_APERTURE;
	vmm_status status = aperture ? map_new_pages(memory, instance) : VMM_OK;

	if (!vmm_ok(status))
		return status;
	status = vmm_paging_special(memory, instance, instance->alternate, &old, true);
	if (!vmm_ok(status)) {
		if (aperture) {
			(void)!vmm_paging_unmap(memory, instance);
			vmm_backing_destroy_after(memory, &instance->backing,
						  vmm_paging_sequence(memory));
		}
		instance->backing = old;
		return status;
	}
	if (!aperture)
		instance->backing = (struct vmm_backing){0};
	vmm_residency_mark_paged(memory, instance, true);
	instance->linear = false; /* SWZ-20 */
	vmm_backing_destroy_after(memory, &old, vmm_paging_sequence(memory));
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
	vmm_alternate_drop(instance); /* SWZ-24 */
	return VMM_OK;
}

void vmm_alternate_flush(struct vmm_memory *memory, const struct vmm_instance *instance)
{
	for (uint32_t id = 0; instance->range_count && id < memory->range_count; id++) {
		const struct vmm_swizzling_range *range = &memory->ranges[id];

		uint64_t offset = 0, size;

		if (range->owner != instance || !range->alternate)
			continue;
		/* By our own mapping: the client's may be in another address space. */
		size = range->alternate->view.size_bytes;
		const struct vmm_os_memory *window =
			window_of(memory, instance, range->physical, size, &offset);
		if (window)
			vmm_os_cache_flush(memory->adapter->os, window->base + offset, size);
	}
}
