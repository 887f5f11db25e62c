/* SPDX-License-Identifier: MIT */
/*
 * Retained system copies (PermanentSysMem, and existing memory of the caller). The CPU always uses
 * the system copy (PAG-14).
 *
 * While the instance is in a memory segment, either copy may be newer, but never parts of both:
 * - The GPU's copy is newer: it is copied back before the CPU accesses the content (PAG-15) or at
 * eviction (PAG-13).
 * - The CPU's copy is newer in the pages that a lock named: they are uploaded at the unlock
 * (LOCK-22), or before the next GPU use if the GPU is reading at that time.
 */
#include "base/lock_flags.h"
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

#include <string.h>

enum { BITS = 64 };

vmm_status vmm_retained_create(struct vmm_memory *memory, struct vmm_instance *instance,
			       const void *system_memory, struct vmm_section *section)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint64_t pages = vmm_store_bytes(allocation) >> VMM_PAGE_SHIFT;
	struct vmm_retained_copy *retained;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!(allocation->flags & VMM_ALLOCATION_RETAINED) && !vmm_is_shared_with_kmd(allocation))
		return VMM_OK;
	/* The pages come first because they are limited; then the record of which are dirty. */
	status = section ? vmm_section_lock(memory, section, allocation->size_bytes,
					    &instance->backing)
		 : vmm_is_existing(allocation)
			 ? vmm_existing_lock(memory, system_memory, allocation->size_bytes,
					     &instance->backing)
			 : vmm_residency_ensure_backing(memory, instance);
	if (!vmm_ok(status))
		return status;
	if (section)
		/* The memory belongs to an out-of-process client. */
		instance->backing.client_address = (char *)(uintptr_t)system_memory;
	retained = vmm_calloc(1, sizeof(*retained) +
					 (pages + BITS - 1) / BITS * sizeof(retained->pages[0]));
	if (!retained) {
		vmm_backing_destroy(memory, &instance->backing);
		return VMM_NO_MEMORY;
	}
	retained->instance = instance;
	retained->page_count = pages;
	vmm_list_init(&retained->waiting);
	instance->retained = retained;
	if (vmm_is_existing(allocation) || vmm_is_shared_with_kmd(allocation))
		instance->place = VMM_PLACEMENT_SYSTEM; /* its content is what the memory holds */
	return VMM_OK;
}

void vmm_retained_free(struct vmm_instance *instance)
{
	vmm_free(instance->retained);
	instance->retained = NULL;
}

static void clear_dirty_pages(struct vmm_retained_copy *retained)
{
	if (retained->some)
		memset(retained->pages, 0,
		       (retained->page_count + BITS - 1) / BITS * sizeof(retained->pages[0]));
	retained->all = retained->some = false;
}

void vmm_retained_left_segment(struct vmm_instance *instance)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	instance->gpu_wrote = false;
	if (instance->retained)
		clear_dirty_pages(instance->retained);
}

vmm_status vmm_retained_restore(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = vmm_paging_transfer(memory, instance, false);

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!vmm_ok(status))
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	instance->gpu_wrote = false;
	/* Mirrored link: the other adapters get the content before a GPU uses it again (PAG-22). */
	if (vmm_unlikely(vmm_link_is_mirrored(instance->allocation)))
		instance->retained->all = instance->handover = true;
	return VMM_OK;
}

/* Notes the pages that the lock may write: those of the page list, or all. (LOCK-22) */
void vmm_retained_note_lock(struct vmm_instance *instance, const struct vmm_lock_request *request,
			    bool content)
{
	struct vmm_retained_copy *retained = instance->retained;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (!retained)
		return;
	retained->open |= !(request->flags & VMM_LOCK_READ_ONLY);
	if (instance->place != VMM_PLACEMENT_MEMORY)
		return;
	/* REN-15: the old content is not wanted, so the system copy becomes the current one. */
	if (!content && instance->gpu_wrote) {
		instance->gpu_wrote = false;
		retained->all = true;
	}
	vmm_assert(!instance->gpu_wrote);
	if (request->flags & VMM_LOCK_READ_ONLY) /* LOCK-06 */
		return;
	if (!request->page_count)
		retained->all = true;
	for (uint32_t i = 0; i < request->page_count; i++)
		retained->pages[request->pages[i] / BITS] |= 1ull << request->pages[i] % BITS;
	retained->some |= request->page_count != 0;
}

static bool is_set(const struct vmm_retained_copy *retained, uint64_t page)
{
	return page < retained->page_count && (retained->pages[page / BITS] >> page % BITS & 1);
}

/* Uploads dirty pages with one transfer for each run of adjacent pages. */
static vmm_status upload_pages(struct vmm_memory *memory, struct vmm_retained_copy *retained)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint64_t first = 0; first < retained->page_count && vmm_ok(status); first++) {
		uint64_t end = first;

		while (is_set(retained, end))
			end++;
		if (end == first)
			continue;
		status = vmm_paging_transfer_part(memory, retained->instance, true,
						  first << VMM_PAGE_SHIFT,
						  (end - first) << VMM_PAGE_SHIFT);
		first = end;
	}
	return status;
}

/*
 * Uploads what the CPU wrote. The GPU does not use the instance. On failure all of it stays
 * pending.
 */
static vmm_status upload(struct vmm_memory *memory, struct vmm_retained_copy *retained)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_instance *instance = retained->instance;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_SYSTEM);
	status = retained->all ? vmm_paging_transfer(memory, instance, true)
			       : upload_pages(memory, retained);
	/*
	 * The upload does not count as a GPU use (LOCK-08). CPU writes made meanwhile are uploaded
	 * next time.
	 */
	vmm_mark_used(&instance->updated, vmm_paging_sequence(memory));
	instance->handover = !vmm_ok(status);
	if (vmm_ok(status))
		clear_dirty_pages(retained);
	return status;
}

/*
 * From 2.0 on the GPU may use a locked instance, which may also be paged in meanwhile (LKR-09).
 * What the CPU wrote after that page-in's copy is still pending.
 */
static void note_late_writes(struct vmm_retained_copy *retained)
{
	const struct vmm_instance *instance = retained->instance;

	if (retained->open && instance->allocation->adapter->model->gpu_uses_locked &&
	    instance->place == VMM_PLACEMENT_MEMORY && !instance->gpu_wrote)
		retained->all = true;
	retained->open = false;
}

bool vmm_retained_note_unlock(struct vmm_instance *instance)
{
	struct vmm_retained_copy *retained = instance->retained;

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (!retained || vmm_locks(instance))
		return false;
	note_late_writes(retained);
	if (!(retained->all || retained->some))
		return false;
	instance->handover = true;
	return true;
}

void vmm_retained_upload_soon(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_retained_note_unlock(instance) && vmm_instance_unused(instance))
		vmm_list_push_back(&memory->uploads, &instance->retained->waiting);
}

void vmm_retained_upload_all(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	while (!vmm_list_empty(&memory->uploads)) {
		struct vmm_retained_copy *retained =
			vmm_container_of(memory->uploads.next, struct vmm_retained_copy, waiting);

		vmm_list_remove(&retained->waiting);
		/* on failure it is retried before the GPU uses it */
		(void)!upload(memory, retained);
	}
}

vmm_status vmm_hand_over_to_gpu(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_retained_copy *retained = instance->retained;
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_unlikely(instance->partial != NULL))
		status = vmm_partial_write_back(memory, instance);
	if (status != VMM_OK)
		return status;
	if (retained && (retained->all || retained->some)) {
		/* Packets submitted before the lock may still read the old content (LOCK-15). */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		return upload(memory, retained);
	}
	instance->handover = false;
	vmm_coherence_to_gpu(memory, instance, (enum vmm_placement)instance->place);
	return VMM_OK;
}
