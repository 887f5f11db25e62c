/* SPDX-License-Identifier: MIT */
/*
 * System copies that stay (PermanentSysMem, and memory of the caller's own): the CPU always works on the system copy
 * (PAG-14). While the instance is in a memory segment, one of the two copies may be newer, never both in part: the GPU's,
 * which comes back before the CPU goes in (PAG-15) or when it leaves (PAG-13); or the CPU's, in the pages that a lock
 * named, which follow at the unlock (LOCK-22) or, where the GPU reads at that moment, before its next use.
 */
#include "memory/memory_private.h"

#include <string.h>

enum { READ_ONLY = 0x001, BITS = 64 };

vmm_status vmm_kept_create(struct vmm_memory *memory, struct vmm_instance *instance,
			   const void *system_memory, struct vmm_section *section)
{
	const struct vmm_allocation *allocation = instance->allocation;
	uint64_t pages = vmm_store_bytes(allocation) >> VMM_PAGE_SHIFT;
	struct vmm_kept *kept;
	vmm_status status;

	if (!(allocation->flags & VMM_ALLOCATION_KEPT) && !vmm_is_shared_with_kmd(allocation))
		return VMM_OK;
	/* First the pages, of which there is a limit; then the note about each. */
	status = section ? vmm_section_lock(memory, section, allocation->size_bytes,
					    &instance->backing)
		 : vmm_is_existing(allocation)
			 ? vmm_existing_lock(memory, system_memory, allocation->size_bytes,
					     &instance->backing)
			 : vmm_residency_give_backing(memory, instance);
	if (!vmm_ok(status))
		return status;
	if (section) /* of a process apart; otherwise NULL */
		instance->backing.seen_at = (char *)(uintptr_t)system_memory;
	kept = vmm_calloc(1, sizeof(*kept) + (pages + BITS - 1) / BITS * sizeof(kept->pages[0]));
	if (!kept) {
		vmm_backing_destroy(memory, &instance->backing);
		return VMM_NO_MEMORY;
	}
	kept->instance = instance;
	kept->page_count = pages;
	vmm_list_init(&kept->waiting);
	instance->kept = kept;
	if (vmm_is_existing(allocation) || vmm_is_shared_with_kmd(allocation))
		instance->place = VMM_PLACE_SYSTEM; /* it has content: what is in the memory */
	return VMM_OK;
}

void vmm_kept_free(struct vmm_instance *instance)
{
	vmm_free(instance->kept);
	instance->kept = NULL;
}

static void forget_pages(struct vmm_kept *kept)
{
	if (kept->some)
		memset(kept->pages, 0,
		       (kept->page_count + BITS - 1) / BITS * sizeof(kept->pages[0]));
	kept->all = kept->some = false;
}

void vmm_kept_left_segment(struct vmm_instance *instance)
{
	instance->gpu_wrote = false;
	if (instance->kept)
		forget_pages(instance->kept);
}

vmm_status vmm_kept_bring_back(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = vmm_paging_transfer(memory, instance, false);

	if (!vmm_ok(status))
		return status;
	vmm_residency_mark_paged(memory, instance, true);
	instance->gpu_wrote = false;
	/* PAG-22: what one adapter wrote is on the others before a GPU uses it again. */
	if (vmm_unlikely(vmm_link_is_mirrored(instance->allocation)))
		instance->kept->all = instance->handover = true;
	return VMM_OK;
}

void vmm_kept_locked(struct vmm_instance *instance, const struct vmm_lock_request *request,
		     bool content)
{
	struct vmm_kept *kept = instance->kept;

	if (!kept)
		return;
	kept->open |= !(request->flags & READ_ONLY);
	if (instance->place != VMM_PLACE_MEMORY)
		return;
	if (!content &&
	    instance->gpu_wrote) { /* REN-15: the system copy, as it is, is now the content */
		instance->gpu_wrote = false;
		kept->all = true;
	}
	vmm_assert(!instance->gpu_wrote);
	if (request->flags & READ_ONLY) /* LOCK-06 */
		return;
	if (!request->page_count)
		kept->all = true;
	for (uint32_t i = 0; i < request->page_count; i++)
		kept->pages[request->pages[i] / BITS] |= 1ull << request->pages[i] % BITS;
	kept->some |= request->page_count != 0;
}

static bool is_set(const struct vmm_kept *kept, uint64_t page)
{
	return page < kept->page_count && (kept->pages[page / BITS] >> page % BITS & 1);
}

/* One transfer for each run of neighbours. */
static vmm_status upload_pages(struct vmm_memory *memory, struct vmm_kept *kept)
{
	vmm_status status = VMM_OK;

	for (uint64_t first = 0; first < kept->page_count && vmm_ok(status); first++) {
		uint64_t end = first;

		while (is_set(kept, end))
			end++;
		if (end == first)
			continue;
		status = vmm_paging_transfer_part(memory, kept->instance, true,
						  first << VMM_PAGE_SHIFT,
						  (end - first) << VMM_PAGE_SHIFT);
		first = end;
	}
	return status;
}

/* The GPU does not use the instance. On failure all of it is still due. */
static vmm_status upload(struct vmm_memory *memory, struct vmm_kept *kept)
{
	struct vmm_instance *instance = kept->instance;
	vmm_status status;

	vmm_coherence_to_gpu(memory, instance, VMM_PLACE_SYSTEM);
	status = kept->all ? vmm_paging_transfer(memory, instance, true)
			   : upload_pages(memory, kept);
	/* LOCK-08: no use by the GPU. What the CPU writes meanwhile follows with the next update. */
	vmm_mark_used(&instance->updated, vmm_paging_sequence(memory));
	instance->handover = !vmm_ok(status);
	if (vmm_ok(status))
		forget_pages(kept);
	return status;
}

/*
 * From 2.0 on the GPU may use what is locked, and it may come into its segment meanwhile (LKR-09): what the CPU wrote after
 * the copy that was made then is still due.
 */
static void note_late_writes(struct vmm_kept *kept)
{
	const struct vmm_instance *instance = kept->instance;

	if (kept->open && instance->allocation->adapter->wddm2 &&
	    instance->place == VMM_PLACE_MEMORY && !instance->gpu_wrote)
		kept->all = true;
	kept->open = false;
}

bool vmm_kept_unlocked(struct vmm_instance *instance)
{
	struct vmm_kept *kept = instance->kept;

	if (!kept || vmm_locks(instance))
		return false;
	note_late_writes(kept);
	if (!(kept->all || kept->some))
		return false;
	instance->handover = true;
	return true;
}

void vmm_kept_upload_soon(struct vmm_memory *memory, struct vmm_instance *instance)
{
	if (vmm_kept_unlocked(instance) && vmm_instance_unused(instance))
		vmm_list_push_back(&memory->uploads, &instance->kept->waiting);
}

void vmm_kept_upload_all(struct vmm_memory *memory)
{
	while (!vmm_list_empty(&memory->uploads)) {
		struct vmm_kept *kept =
			vmm_container_of(memory->uploads.next, struct vmm_kept, waiting);

		vmm_list_remove(&kept->waiting);
		(void)!upload(memory, kept); /* then it is tried again before the GPU uses it */
	}
}

vmm_status vmm_hand_over(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_kept *kept = instance->kept;
	vmm_status status = VMM_OK;

	if (vmm_unlikely(instance->partial != NULL))
		status = vmm_partial_settle(memory, instance);
	if (status != VMM_OK)
		return status;
	if (kept && (kept->all || kept->some)) {
		/* What was submitted before the lock may still read the old content (LOCK-15). */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		return upload(memory, kept);
	}
	instance->handover = false;
	vmm_coherence_to_gpu(memory, instance, (enum vmm_place)instance->place);
	return VMM_OK;
}
