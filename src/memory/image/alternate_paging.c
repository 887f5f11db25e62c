/* SPDX-License-Identifier: MIT */
/*
 * Paging of content that is locked through an alternate address (alternate.c). Such an instance is
 * evicted by the operation SPECIAL_LOCK_TRANSFER. The system pages that receive its content are
 * mapped at the alternate address. The same operation pages the content in again; then the
 * alternate address ends (SWZ-25, LKR-07).
 */
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

/* Writes the commands that evict the instance to PAGES. On failure its state is unchanged. */
static vmm_status write_eviction(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_alternate *alternate,
				 const struct vmm_backing *pages)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	/* The image leaves unswizzled (SWZ-19). */
	instance->linear = vmm_instance_is_swizzled(instance);
	vmm_coherence_to_gpu(memory, instance, (enum vmm_placement)instance->place);
	status = vmm_paging_special(memory, instance, alternate, pages, false);
	if (vmm_ok(status) && instance->place == VMM_PLACEMENT_APERTURE)
		status = vmm_paging_unmap(memory, instance);
	if (!vmm_ok(status))
		instance->linear = false;
	else
		vmm_paging_mark_instance(memory, instance, true);
	return status;
}

/*
 * PAGES become the instance's only backing store, and the range's alternate address becomes its own
 * (SWZ-25).
 */
static void set_special(struct vmm_memory *memory, struct vmm_instance *instance,
			struct vmm_swizzling_range *range, const struct vmm_backing *pages)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_alternate_drop(instance); /* an older address, which no lock uses */
	instance->alternate = range->alternate;
	instance->alternate->special = true;
	range->alternate = NULL;
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	instance->backing = *pages;
}

/* Maps PAGES at the alternate address that the CPU already has. */
static vmm_status remap_to(struct vmm_memory *memory, struct vmm_instance *instance,
			   struct vmm_swizzling_range *range, const struct vmm_backing *pages)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_alternate *alternate = range->alternate;
	uint64_t offset;
	const struct vmm_os_memory *source = vmm_backing_memory(memory, pages, &offset);
	uint64_t size = alternate->view.size_bytes;
	vmm_status status = vmm_os_view_map(&alternate->view, 0, source, offset, size);

	vmm_assert_held(&memory->adapter->paging_lock);
	/* What the CPU saw is not the content any more. Another attempt costs little. */
	if (!vmm_ok(status))
		status = vmm_os_view_map(&alternate->view, 0, source, offset, size);
	if (!vmm_ok(status))
		vmm_view_lose(instance, &alternate->view);
	set_special(memory, instance, range, pages);
	vmm_swizzle_release(memory, instance); /* until now the CPU read through the ranges */
	return status;
}

vmm_status vmm_alternate_evict(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_swizzling_range *range = vmm_swizzle_find(memory, instance, instance->lock_data);
	uint64_t size = range->alternate->view.size_bytes;
	bool larger = size != instance->allocation->size_bytes;
	struct vmm_backing pages = {0};
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * Only the miniport understands a larger image. Queued work needs the allocation's own
	 * form, so it stays (LOCK-50).
	 */
	if (larger && vmm_instance_busy(instance, VMM_USE_ANY, NULL, NULL))
		return VMM_NOT_SUPPORTED;
	/*
	 * The transfer covers the allocation's size. Pages beyond it are zeroed, as they may have
	 * had another owner.
	 */
	status = vmm_backing_create_for(memory, instance->allocation, size, larger, &pages);
	if (!vmm_ok(status))
		return status;
	/* CPU stores block while the content moves (LOCK-04, PAG-16). */
	status = vmm_os_view_freeze(&range->alternate->view);
	if (!vmm_ok(status))
		goto out_pages;
	status = write_eviction(memory, instance, range->alternate, &pages);
	if (!vmm_ok(status))
		goto out_freeze;
	(void)!memory->engine->wait_locked(memory->adapter, memory->adapter->paging_timeline,
					   vmm_memory_flush_locked(memory->adapter),
					   VIDMM_WAIT_LOCK);
	return remap_to(memory, instance, range, &pages);
out_freeze:
	vmm_os_view_thaw(&range->alternate->view);
out_pages:
	/* A paging buffer may already hold commands that write to these pages. */
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

	vmm_assert_held(&memory->adapter->paging_lock);
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
	set_special(memory, instance, range, &pages);
	/* It comes back by SPECIAL_LOCK_TRANSFER (SWZ-25). */
	instance->linear = vmm_instance_is_swizzled(instance);
	return VMM_OK;
}

/*
 * Back into an aperture: gives the instance a new backing store and maps it there, before the
 * transfer.
 */
static vmm_status map_new_pages(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_backing pages = {0}, old = instance->backing;
	vmm_status status = vmm_backing_create_for(memory, instance->allocation,
						   instance->allocation->size_bytes, true, &pages);

	vmm_assert_held(&memory->adapter->paging_lock);
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

vmm_status vmm_alternate_restore(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_backing old = instance->backing;
	bool aperture = instance->place == VMM_PLACEMENT_APERTURE;
	vmm_status status = aperture ? map_new_pages(memory, instance) : VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
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
	vmm_paging_mark_instance(memory, instance, true);
	instance->linear = false; /* swizzled again in its segment (SWZ-20) */
	vmm_backing_destroy_after(memory, &old, vmm_paging_sequence(memory));
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
	vmm_alternate_drop(instance); /* the address ends with the return (SWZ-24) */
	return VMM_OK;
}
