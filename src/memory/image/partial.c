/* SPDX-License-Identifier: MIT */
/*
 * Locks with a page list for which no swizzling range is available (LOCK-21). The instance stays in
 * its memory segment; only the listed pages are copied to system memory, and unswizzled by the
 * transfer. They are copied back at the unlock; or, if the GPU reads the instance at that moment,
 * before its next use.
 *
 * Until then the system copy is valid for the listed pages, and the segment for all others. A lock
 * of other pages adds to the list. An eviction transfers the other pages, too; the instance is then
 * like any other that was unswizzled for the CPU (SWZ-09).
 */
#include "base/lock_flags.h"
#include "memory/image/image.h"
#include "memory/state/state.h"
#include "memory/store/store.h"
#include "memory/transfer/paging.h"

enum { BITS = 64 };

struct vmm_partial {
	struct vmm_instance *instance;
	struct vmm_list waiting; /* in memory->partials */
	bool written;            /* a lock without ReadOnly was granted */
	uint64_t page_count;
	uint64_t pages[]; /* listed pages: one bit per page */
};

static bool is_listed(const struct vmm_partial *partial, uint64_t page)
{
	return partial->pages[page / BITS] >> page % BITS & 1;
}

/*
 * Transfers all pages that are listed, or all that are not: one transfer per run of consecutive
 * pages.
 */
static vmm_status transfer_pages(struct vmm_memory *memory, struct vmm_instance *instance,
				 const struct vmm_partial *partial, bool listed, bool in)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_status status = VMM_OK;
	uint64_t end;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint64_t first = 0; first < partial->page_count && vmm_ok(status); first = end) {
		for (end = first; end < partial->page_count; end++)
			if (is_listed(partial, end) != is_listed(partial, first))
				break;
		if (is_listed(partial, first) == listed)
			status = vmm_paging_transfer_part(memory, instance, in,
							  first << VMM_PAGE_SHIFT,
							  (end - first) << VMM_PAGE_SHIFT);
	}
	return status;
}

static void unmap_view(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (instance->view_current)
		vmm_os_view_unmap(&instance->view);
	instance->view_current = false;
}

bool vmm_partial_covers(const struct vmm_instance *instance, const struct vmm_lock_request *request)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	for (uint32_t i = 0; i < request->page_count; i++)
		if (!is_listed(instance->partial, request->pages[i]))
			return false;
	return request->page_count != 0;
}

static struct vmm_partial *create_list(const struct vmm_instance *instance,
				       const struct vmm_lock_request *request)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	uint64_t pages = instance->allocation->size_bytes >> VMM_PAGE_SHIFT;
	struct vmm_partial *partial = vmm_calloc(
		1, sizeof(*partial) + (pages + BITS - 1) / BITS * sizeof(partial->pages[0]));

	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	if (!partial)
		return NULL;
	partial->page_count = pages;
	vmm_list_init(&partial->waiting);
	for (uint32_t i = 0; i < request->page_count; i++)
		partial->pages[request->pages[i] / BITS] |= 1ull << request->pages[i] % BITS;
	return partial;
}

/*
 * Transfers the first pages. From here on the instance has a system copy in addition to its
 * placement.
 */
static vmm_status transfer_first(struct vmm_memory *memory, struct vmm_instance *instance,
				 struct vmm_partial *partial) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	/*
	 * The CPU can access all pages of the store, so those that are not listed must not contain
	 * data of a former owner.
	 */
	vmm_status status =
		vmm_backing_create_for(memory, instance->allocation,
				       instance->allocation->size_bytes, true, &instance->backing);

	if (!vmm_ok(status))
		return status;
	vmm_swizzle_release(memory, instance); /* SWZ-12 */
	vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_MEMORY);
	/* others are transferred without Unswizzle */
	instance->linear = vmm_instance_is_swizzled(instance);
	partial->instance = instance;
	status = transfer_pages(memory, instance, partial, true, false);
	if (!vmm_ok(status)) {
		instance->linear = false;
		vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
		return status;
	}
	unmap_view(instance);
	instance->partial = partial;
	return VMM_OK;
}

/* Transfers the pages of `more` that are not listed yet. */
static vmm_status transfer_more(struct vmm_memory *memory, struct vmm_instance *instance,
				struct vmm_partial *more) VMM_REQUIRES(vmm_paging_lock_class)
{
	struct vmm_partial *partial = instance->partial;
	uint64_t words = (partial->page_count + BITS - 1) / BITS;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	for (uint64_t i = 0; i < words; i++)
		more->pages[i] &= ~partial->pages[i];
	status = transfer_pages(memory, instance, more, true, false);
	for (uint64_t i = 0; i < words && vmm_ok(status); i++)
		partial->pages[i] |= more->pages[i];
	return status;
}

vmm_status vmm_partial_take(struct vmm_memory *memory, struct vmm_instance *instance,
			    const struct vmm_lock_request *request)
{
	struct vmm_partial *partial = create_list(instance, request);
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (!partial)
		return VMM_NO_MEMORY;
	status = instance->partial ? transfer_more(memory, instance, partial)
				   : transfer_first(memory, instance, partial);
	if (instance->partial != partial)
		vmm_free(partial);
	if (!vmm_ok(status))
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	instance->handover = true; /* also if the lock fails after this */
	return VMM_OK;
}

void vmm_partial_note_lock(struct vmm_instance *instance, uint32_t flags)
{
	instance->partial->written |= !(flags & VMM_LOCK_READ_ONLY); /* LOCK-06 */
}

static void free_partial(struct vmm_instance *instance) VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&instance->allocation->adapter->paging_lock);
	vmm_list_remove(&instance->partial->waiting);
	vmm_free(instance->partial);
	instance->partial = NULL;
}

static void drop_copy(struct vmm_memory *memory, struct vmm_instance *instance)
	VMM_REQUIRES(vmm_paging_lock_class)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	unmap_view(instance);
	vmm_alternate_drop(instance); /* it maps these pages */
	instance->linear = false;
	vmm_backing_destroy_after(memory, &instance->backing, vmm_paging_sequence(memory));
	free_partial(instance);
}

vmm_status vmm_partial_write_back(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_status status = VMM_OK;

	vmm_assert_held(&memory->adapter->paging_lock);
	if (instance->partial->written) {
		/*
		 * Packets that were submitted before the lock may still read the old content.
		 * (LOCK-15)
		 */
		if (!vmm_instance_unused(instance))
			return VMM_PENDING;
		vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_SYSTEM);
		status = transfer_pages(memory, instance, instance->partial, true, true);
		/*
		 * The transfer counts as no GPU use (LOCK-08). A CPU lock waits for it, so that it
		 * sees the new content.
		 */
		vmm_mark_used(&instance->updated, vmm_paging_sequence(memory));
		vmm_mark_used(&instance->written[memory->adapter->paging_timeline],
			      vmm_paging_sequence(memory));
		if (!vmm_ok(status))
			return status;
	}
	drop_copy(memory, instance);
	return VMM_OK;
}

void vmm_partial_unlocked(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_locks(instance))
		return;
	vmm_list_remove(&instance->partial->waiting);
	vmm_list_push_back(&memory->partials, &instance->partial->waiting);
}

void vmm_partial_write_back_all(struct vmm_memory *memory)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	while (!vmm_list_empty(&memory->partials)) {
		struct vmm_partial *partial =
			vmm_container_of(memory->partials.next, struct vmm_partial, waiting);

		vmm_list_remove(&partial->waiting);
		/* if refused: done before the next GPU use */
		(void)!vmm_partial_write_back(memory, partial->instance);
	}
}

vmm_status vmm_partial_evict(struct vmm_memory *memory, struct vmm_instance *instance)
{
	struct vmm_adapter *adapter = memory->adapter;
	vmm_status status;

	vmm_assert_held(&memory->adapter->paging_lock);
	vmm_coherence_to_gpu(memory, instance, VMM_PLACEMENT_MEMORY);
	/* The listed pages stay in system memory, where the CPU may be writing them. */
	status = transfer_pages(memory, instance, instance->partial, false, false);
	instance->handover = true;
	if (!vmm_ok(status))
		return status;
	vmm_paging_mark_instance(memory, instance, true);
	free_partial(instance);
	if (!vmm_locks(instance))
		return VMM_OK;
	/* The CPU may have read pages beside the locked ones, which get their content only now. */
	status = memory->engine->wait_locked(adapter, adapter->paging_timeline,
					     vmm_memory_flush_locked(adapter), VIDMM_WAIT_LOCK);
	vmm_coherence_to_cpu(memory, instance, false);
	return status;
}

void vmm_partial_drop(struct vmm_memory *memory, struct vmm_instance *instance)
{
	vmm_assert_held(&memory->adapter->paging_lock);
	if (vmm_locks(instance)) /* the adapter stops: the CPU keeps its pages */
		free_partial(instance);
	else
		drop_copy(memory, instance);
}
